#pragma once
// Checks roofs that come from outside; finds levels among them.

#include <string>

#include "roofprof/ceilings.h"

namespace roofprof {

// Returns why they cannot be right, as a sentence: "bytes_per_second of DRAM is -1, not a positive number"; empty where
// they can be used.
std::string impossible_roof(const Ceilings& ceilings);

// Returns the largest cache, which all of the device shares; null where none has a roof.
const MemoryCeiling* last_cache(const Ceilings& ceilings);

}  // namespace roofprof
