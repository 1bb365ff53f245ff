#pragma once
// The environment of a GPU profile: what a reader must know to compare its figures with another GPU's.

#include <string>

#include "roofprof/report.h"

namespace roofprof {

// Returns the environment of a device such as "cuda:0"; empty for any other kind. Keys are in snake_case and begin with
// "gpu_"; their names hold the units. Values that driver and NVML do not report are left out, and `gpu_problem` says in
// a sentence why most are missing. Makes no context.
Environment gpu_environment(const std::string& device);

}  // namespace roofprof
