#pragma once
// What measuring on a GPU needs, looked at without measuring: for `roofprof doctor`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/interface/finding.h"

namespace roofprof {

// Each finding comes after those that it depends on. Never throws: that there is no GPU is a finding too. To ask for
// counters, it makes a context on the first device for as long as it looks.
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
