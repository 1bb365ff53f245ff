#pragma once
// Whether kernels can be run one after the other, as counting them one by one does.

#include <string>
#include <string_view>

#include "core/device_data.h"

namespace roofprof {

// A kernel that waits for one on another device, and alone would wait for ever: by its name (mangled or not) one of
// NCCL's, NVSHMEM's, torch's symmetric memory's or vLLM's.
bool must_not_be_serialised(std::string_view kernel_name);

// Why what was traced must not be counted kernel by kernel, and what to do instead, in a sentence; empty: it may be
// counted so. Cooperative launches cannot be told by their names, and may: their blocks wait for each other only.
std::string why_not_kernel_by_kernel(const DeviceTrace& trace);

}  // namespace roofprof
