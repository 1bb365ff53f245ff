#pragma once
// Measuring the roofs of this machine.

#include <string>

#include "machine/common/measured_ceilings.h"

namespace roofprof {

// Measures the roofs of a device ("cpu", "cuda:0") with as many threads as torch uses now; takes at most twenty
// seconds. Calls `progress` with what is being measured, a line at a time. Neither the random number generators nor any
// mode of torch change, and no observer of torch's ops sees what runs. Throws std::invalid_argument for a device that
// cannot be measured.
MeasuredCeilings measure_ceilings(const std::string& device, const Progress& progress = {});

// Returns the device with its index: without one for the CPU, with the current one's for "cuda".
std::string named_device(const std::string& device);

}  // namespace roofprof
