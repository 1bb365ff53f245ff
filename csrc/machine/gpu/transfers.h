#pragma once
// Moving bytes on a device and to it, with the bytes that count: those that the program asks for.

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "machine/gpu/timer.h"

namespace roofprof {

// Returns the trials over three arrays of that many bytes each: copy (a = b, 2N bytes), triad (a = b + s * c, 3N) and
// read (a sum, N).
std::vector<Trial> dram_trials(std::int64_t array_bytes, c10::Device device);

// Returns the trials over a working set of that many bytes, which each call goes through many times, so that starting
// kernels does not count: read (sums of overlapping rows) and copy (one half into the other, over and over).
std::vector<Trial> cache_trials(std::int64_t working_set_bytes, c10::Device device);

// Returns the trials between the host and the device, N bytes each way: "pinned to device", "device to pinned",
// "pageable to device", "device to pageable"; only those of pageable memory where `device` is the CPU. Pinned memory
// that torch caches stays.
std::vector<Trial> link_trials(std::int64_t bytes, c10::Device device);

}  // namespace roofprof
