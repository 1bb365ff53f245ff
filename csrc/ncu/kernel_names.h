#pragma once
// Names of kernels in one form, whichever program demangled them: Nsight Compute and traces write them differently.

#include <string>
#include <string_view>

namespace roofprof::ncu {

// Returns the name without return type, parameters, spaces and types of template arguments that are numbers:
// "at::native::kernel<4,float>" for both "void at::native::kernel<(int)4, float>(int, T2)" and
// "void at::native::kernel<4, float>(int, float)". Mangled names are demangled.
std::string plain_name(std::string_view name);

// Returns the function's own name, "kernel": all that `ncu --print-kernel-base function` leaves.
std::string function_name(std::string_view name);

}  // namespace roofprof::ncu
