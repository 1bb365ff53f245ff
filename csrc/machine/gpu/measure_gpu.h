#pragma once
// Measuring the roofs of a GPU: measure_ceilings("cuda:0").

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/nvidia/driver.h"
#include "machine/common/measured_ceilings.h"
#include "machine/gpu/peaks.h"
#include "machine/gpu/timer.h"

namespace roofprof {

// Takes about fifteen seconds. Memory, settings and random numbers are as before afterwards. Throws
// std::invalid_argument where the GPU does not exist or torch cannot use it. Call it under DispatchDefaults.
MeasuredCeilings measure_gpu(const std::string& device, const std::function<void(std::string_view)>& progress);

// The sizes and options of a measurement. measure_gpu sets the device and the facts about it, and keeps the other
// defaults.
struct RoofOptions {
  PeakOptions peaks;  // with the device and the timer, which all roofs use
  std::optional<cuda::NvidiaDevice> facts = {};
  std::int64_t array_bytes = std::int64_t{1} << 30;  // of DRAM's arrays, at least, where the memory allows it
  std::int64_t link_bytes = std::int64_t{256} << 20;
};

// The roofs of a device that torch can use. Leaves memory to torch's caches.
MeasuredCeilings measure_roofs(const RoofOptions& options, const std::function<void(std::string_view)>& progress);

// A memory level with the best of the rates; its method names the others. `rates` is not empty, the best is first.
MemoryCeiling memory_ceiling(const std::string& level, std::int64_t capacity_bytes, const std::vector<Rate>& rates,
                             const std::string& over);

// Calls body(size), and halves the size as long as memory is too small for it and it is at least `least`. Returns false
// if no size fits.
bool with_memory(std::int64_t size, std::int64_t least, const std::function<void(std::int64_t)>& body);

}  // namespace roofprof
