#pragma once
// What a measurement of roofs returns.

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
