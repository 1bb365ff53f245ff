#pragma once
// The environment of a GPU profile: what a reader must know to compare its figures with another GPU's.

#include <string>

#include "roofprof/report.h"

namespace roofprof {

// Of a device such as "cuda:0"; empty for any other kind. Keys in snake_case that begin with "gpu_", units in their
// names; what driver and NVML do not tell is left out, and `gpu_problem` says in a sentence why most of it is. Makes no
// context.
Environment gpu_environment(const std::string& device);

}  // namespace roofprof
