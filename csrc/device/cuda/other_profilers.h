#pragma once
// Other profilers of this process, as far as can be told without torch.

#include <string>
#include <vector>

namespace roofprof::cuda {

// Tools of NVIDIA's that this process was started under, by the environment variables that they set:
// "Nsight Systems (NSYS_PROFILING_SESSION_ID is set)".
std::vector<std::string> profilers_in_environment();

// One sentence for a note or an error, with what to do; empty where there is none. That CUPTI has a subscriber already
// is not in here: only subscribing tells, with an error of its own.
std::string other_profiler_at_work();

}  // namespace roofprof::cuda
