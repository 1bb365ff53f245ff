#pragma once
// Measuring the roofs of this machine.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "roofprof/ceilings.h"

namespace roofprof {

struct MeasuredCeilings {
  Ceilings ceilings;
  std::vector<std::string> notes;  // what looks odd, and memory levels that were left out
};

// Measures the roofs of a device ("cpu") with as many threads as torch uses now; takes about ten seconds, and at most
// twenty. `progress` is told what is being measured, a line at a time. Neither the random number generators nor any
// mode of torch change, and no observer of torch's ops sees what runs.
// Throws std::invalid_argument for a device that cannot be measured.
MeasuredCeilings measure_ceilings(const std::string& device,
                                  const std::function<void(std::string_view)>& progress = {});

}  // namespace roofprof
