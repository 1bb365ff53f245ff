#pragma once
// The kernels of a report.

#include <vector>

#include "core/profile_data.h"

namespace roofprof {

// Longest total first; of equal ones the first launched.
std::vector<KernelRow> kernel_rows(const ProfileData& data);

}  // namespace roofprof
