#pragma once
// Roofs that the user gives to a program in place of measured ones.

#include <optional>

#include "machine/common/measured_ceilings.h"

namespace roofprof {

// Returns the roofs that the environment variable ROOFPROF_CEILINGS names: those of a file, or none for "off". Empty
// where it is not set. Throws std::runtime_error, naming the variable and what is wrong with the file.
std::optional<MeasuredCeilings> given_ceilings();

}  // namespace roofprof
