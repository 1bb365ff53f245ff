#pragma once
// The result of a measurement of roofs.

#include <string>
#include <vector>

#include "roofprof/ceilings.h"
#include "roofprof/report.h"

namespace roofprof {

struct MeasuredCeilings {
  Ceilings ceilings;
  std::vector<std::string> notes;  // what looks odd, and memory levels that were left out
};

}  // namespace roofprof
