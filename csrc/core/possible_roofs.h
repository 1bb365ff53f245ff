#pragma once
// Whether roofs that come from outside can be ones.

#include <string>

#include "roofprof/ceilings.h"

namespace roofprof {

// Why not, as a sentence: "bytes_per_second of DRAM is -1, not a positive number"; empty where they can be used.
std::string impossible_roof(const Ceilings& ceilings);

}  // namespace roofprof
