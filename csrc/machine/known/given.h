#pragma once
// Roofs that whoever starts a program gives it, in place of this machine's own.

#include <optional>

#include "machine/common/measured_ceilings.h"

namespace roofprof {

// Those that the environment variable ROOFPROF_CEILINGS names: a file of roofs, or "off" for none at all. Empty where
// it is not set. Throws std::runtime_error, naming the variable and what is wrong with the file.
std::optional<MeasuredCeilings> given_ceilings();

}  // namespace roofprof
