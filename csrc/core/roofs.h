#pragma once
// Checks roofs that come from outside.

#include <string>

#include "roofprof/ceilings.h"

namespace roofprof {

// Returns why they cannot be right, as a sentence: "bytes_per_second of DRAM is -1, not a positive number"; empty where
// they can be used.
std::string impossible_roof(const Ceilings& ceilings);

}  // namespace roofprof
