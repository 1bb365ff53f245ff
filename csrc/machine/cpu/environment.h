#pragma once
// The environment of a CPU profile: what a reader must know to compare its figures with another machine's.

#include "roofprof/report.h"

namespace roofprof {

// Keys in snake_case with units in their names; what the system does not tell is left out, except `governor`, which
// then says so. Sizes of caches are those of one cache.
Environment cpu_environment();

// The CPU's model name; the architecture where the system names no model.
std::string cpu_model();

}  // namespace roofprof
