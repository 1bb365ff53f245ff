#pragma once
// Describes the GPU of a measurement: whether torch can use it, its facts, and its memory, which is given back
// afterwards.

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>

#include "device/nvidia/driver.h"

namespace roofprof {

// Returns "cuda" (the current one) or "cuda:<index>" as torch's device. Throws std::invalid_argument, one sentence,
// where the device does not exist or torch cannot use it.
c10::Device usable_gpu(const std::string& device);

// Returns the driver's facts about a device; empty where it gives none.
std::optional<cuda::NvidiaDevice> gpu_facts(c10::Device device);

// Returns the bytes that can be allocated on a device now, what torch caches included; on the CPU a small fixed number.
std::int64_t free_bytes(c10::Device device);

// Gives back what torch's allocators have cached since this was made: all that they cache, as they cannot tell it
// apart, and only if it has become more. What cuBLAS keeps for its work stays, as after any product.
class MemoryGivenBack {
 public:
  explicit MemoryGivenBack(c10::Device device);
  ~MemoryGivenBack();
  MemoryGivenBack(const MemoryGivenBack&) = delete;
  MemoryGivenBack& operator=(const MemoryGivenBack&) = delete;

 private:
  c10::Device device_;
  std::int64_t reserved_before_ = 0;
};

}  // namespace roofprof
