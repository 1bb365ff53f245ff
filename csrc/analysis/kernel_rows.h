#pragma once
// The kernels of a report.

#include <string>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Returns a row for each kernel, in the data's order.
std::vector<KernelRow> kernel_rows(const Profile& data);

// Returns a kernel of compiled code as if it were one op, without its time.
OpBucket bucket_of(const CompiledKernel& kernel, const Profile& data);

// Returns why rows are missing, as a sentence that begins with "no kernels"; empty where there are some.
std::string why_no_kernels(const Profile& data);

}  // namespace roofprof
