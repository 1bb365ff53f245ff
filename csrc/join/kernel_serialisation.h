#pragma once
// Decides whether kernels may run one after the other, as counting them one by one makes them do.

#include <string>
#include <string_view>

#include "core/device_data.h"

namespace roofprof {

// A kernel that waits for one on another device, and alone would wait for ever: by its name (mangled or not) one of
// NCCL's, NVSHMEM's, torch's symmetric memory's or vLLM's.
bool must_not_be_serialised(std::string_view kernel_name);

// Returns why the traced kernels must not be counted one by one, and what to do instead, in a sentence; empty: they may
// be. Names do not show cooperative launches. These may be counted so: their blocks wait for each other only.
std::string why_not_kernel_by_kernel(const DeviceTrace& trace);

}  // namespace roofprof
