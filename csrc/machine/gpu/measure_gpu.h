#pragma once
// Measuring the roofs of a GPU: measure_ceilings("cuda:0").

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/interface/collector.h"
#include "device/nvidia/driver.h"
#include "machine/common/measurement.h"
#include "machine/gpu/peaks.h"
#include "machine/gpu/target.h"

namespace roofprof {

// Moving bytes on a device and to it, with the bytes that count: those that the program asks for.

// Returns the trials over three arrays of that many bytes each: copy (a = b, 2N bytes), triad (a = b + s * c, 3N), read
// (a sum, N), write (a fill, N) and update (a = s * a, 2N).
std::vector<Trial> dram_trials(std::int64_t array_bytes, c10::Device device);

// Returns the trials over a working set of that many bytes, which each call goes through many times, so that starting
// kernels does not count: read (sums of overlapping rows, one for each multiprocessor), copy (one half into the other,
// over and over), triad (one half added to the other), write (zeros) and update (of the whole in place).
std::vector<Trial> cache_trials(std::int64_t working_set_bytes, std::int64_t multiprocessors, c10::Device device);

// Returns the working sets of a cache's curve: a quarter of the cache to twice the cache, each the square root of two
// times the one before.
std::vector<std::int64_t> curve_working_sets(std::int64_t cache_bytes);

// Returns the point of a curve with the rates of the five trials.
BandwidthPoint bandwidth_point(std::int64_t working_set_bytes, const std::vector<Rate>& rates);

// Returns the trials between the host and the device, N bytes each way: "pinned to device", "device to pinned",
// "pageable to device", "device to pageable"; only those of pageable memory where `device` is the CPU. Pinned memory
// that torch caches stays.
std::vector<Trial> link_trials(std::int64_t bytes, c10::Device device);

// Takes about twenty-five seconds. Memory, settings and random numbers are as before afterwards. Throws
// std::invalid_argument where the GPU does not exist or torch cannot use it. Call it under DispatchDefaults.
MeasuredCeilings measure_gpu(const std::string& device, const std::function<void(std::string_view)>& progress);

// The sizes and options of a measurement. measure_gpu sets the device and the facts about it, and keeps the other
// defaults.
struct RoofOptions {
  PeakOptions peaks;  // with the device and the timer, which all roofs use
  std::optional<cuda::NvidiaDevice> facts = {};
  // Makes the collector that finds the kernels behind the peaks and the bytes that the L2 counts, once all rates are
  // known. Throws CollectorError.
  std::function<std::unique_ptr<DeviceCollector>()> collector = {};
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
