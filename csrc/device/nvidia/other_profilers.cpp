#include "device/nvidia/other_profilers.h"

#include <array>
#include <cstdlib>

namespace roofprof::cuda {
namespace {

struct Sign {
  const char* variable;
  const char* tool;
};

// The variables that the tools set for the processes that they start. An injected library comes last: the other tools
// work through one, too.
constexpr std::array kSigns = {
    Sign{"NSYS_PROFILING_SESSION_ID", "Nsight Systems"},
    Sign{"NV_NSIGHT_INJECTION_PORT_BASE", "Nsight Compute"},
    Sign{"NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "Nsight Compute"},
    Sign{"NVPROF_ID", "nvprof"},
    Sign{"CUDA_INJECTION64_PATH", "a library that the driver loads"},
};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::vector<std::string> profilers_in_environment() {
  std::vector<std::string> found;
  std::string last;
  for (const Sign& sign : kSigns) {
    if (!is_set(sign.variable) || last == sign.tool) continue;
    const bool is_injection = &sign == &kSigns.back();
    if (is_injection && !found.empty()) continue;
    last = sign.tool;
    found.push_back(last + " (" + sign.variable +
                    (is_injection ? std::string("=") + std::getenv(sign.variable) : " is set") + ")");
  }
  return found;
}

}  // namespace roofprof::cuda
