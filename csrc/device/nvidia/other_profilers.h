#pragma once
// Finds other profilers of this process, as far as it is possible without torch.

#include <string>
#include <vector>

namespace roofprof::cuda {

// Returns the tools of NVIDIA's that this process was started under, by the environment variables that they set:
// "Nsight Systems (NSYS_PROFILING_SESSION_ID is set)". It cannot find a subscriber that CUPTI has already: only an
// attempt to subscribe shows that, with a separate error.
std::vector<std::string> profilers_in_environment();

}  // namespace roofprof::cuda
