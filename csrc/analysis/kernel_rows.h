#pragma once
// The kernels of a report.

#include <vector>

#include "core/profile_data.h"

namespace roofprof {

// In the data's order.
std::vector<KernelRow> kernel_rows(const ProfileData& data);

}  // namespace roofprof
