#pragma once
// Checks what measuring on a GPU needs, without measuring: for `roofprof doctor`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/interface/collector.h"

namespace roofprof {

// Returns the findings; each comes after those that it depends on. Never throws: a missing GPU is a finding too. To ask
// for counters, it makes a context on the first device for as long as it looks.
std::vector<Examined> doctor();

namespace cuda {

// Returns the version in /proc/driver/nvidia/version, "580.65.06"; empty where the file has none.
std::string kernel_module_version(std::string_view proc_version);

// Returns whether counters are for administrators only, as /proc/driver/nvidia/params says; empty where it does not
// say.
std::optional<bool> counters_need_admin(std::string_view proc_params);

// Returns whether a process with "CapEff:" of its /proc/self/status may read what is for administrators only: with
// CAP_SYS_ADMIN, and from a driver of version 565 on with CAP_PERFMON.
bool may_profile(std::string_view proc_status, std::string_view module_version);

}  // namespace cuda
}  // namespace roofprof
