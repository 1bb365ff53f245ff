#pragma once
// Measuring the roofs of the CPU: measure_ceilings("cpu").

#include <functional>
#include <string_view>

#include "machine/common/measured_ceilings.h"

namespace roofprof {

// Call it under DispatchDefaults.
MeasuredCeilings measure_cpu(const std::function<void(std::string_view)>& progress);

}  // namespace roofprof
