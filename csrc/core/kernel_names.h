#pragma once
// Names of kernels as people read them.

#include <string>

namespace roofprof {

// Returns the name without a C++ compiler's mangling. Names that no such compiler made (Triton's, cuBLAS's) stay, and
// so does what this machine's C++ library cannot read.
std::string demangled(const std::string& name);

}  // namespace roofprof
