#pragma once
// Other profilers of this process, as far as can be told without torch.

#include <string>
#include <vector>

namespace roofprof::cuda {

// Tools of NVIDIA's that this process was started under, by the environment variables that they set:
// "Nsight Systems (NSYS_PROFILING_SESSION_ID is set)". That CUPTI has a subscriber already is not in here: only
// subscribing tells, with an error of its own.
std::vector<std::string> profilers_in_environment();

}  // namespace roofprof::cuda
