#pragma once
// What measuring on a GPU needs, looked at without measuring: for `roofprof doctor`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roofprof {

struct Finding {
  std::string what;  // "this build", "driver", "cuda:0", "NVML", "CUPTI", "kernel times", "counters", "other profilers"
  std::string found;   // in words; what stands in the way, where something does
  std::string advice;  // what to do; empty: nothing needs to be done
};

// In the order in which one thing needs the other. Never throws; where there is no GPU that is what was found. Makes a
// context on the first device for as long as it looks, to ask for its counters.
std::vector<Finding> doctor();

namespace cuda {

// "580.65.06" of /proc/driver/nvidia/version; empty where it is not told.
std::string kernel_module_version(std::string_view proc_version);

// What /proc/driver/nvidia/params says: whether counters are for administrators only; empty where it does not say.
std::optional<bool> counters_need_admin(std::string_view proc_params);

// Whether "CapEff:" of /proc/self/status has CAP_SYS_ADMIN.
bool has_sys_admin(std::string_view proc_status);

}  // namespace cuda
}  // namespace roofprof
