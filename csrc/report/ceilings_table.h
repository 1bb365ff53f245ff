#pragma once
// The roofs of a machine as a table of their own.

#include <cstddef>
#include <string>

#include "roofprof/ceilings.h"

namespace roofprof {

// A line for each roof with its value, spread, source, date and method; "no roofs" where there is none.
std::string ceilings_table(const Ceilings& ceilings, std::size_t width = 120);

}  // namespace roofprof
