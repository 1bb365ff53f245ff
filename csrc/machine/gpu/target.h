#pragma once
// Describes the GPU of a measurement: whether torch can use it, its facts, and its memory, which is given back
// afterwards.

#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/nvidia/driver.h"

namespace roofprof {

// Measures how long work takes on a device, and at what rate it runs.

// Seconds that `calls` calls of a body take on a device, from the beginning of the first to the end of the last.
using Timer = std::function<double(int calls, const std::function<void()>& body)>;

// Returns a timer: by events on the device's current stream where it is an accelerator, by the clock on the CPU.
Timer timer_of(c10::Device device);

// Waits until the device has done all its work.
void synchronize(c10::Device device);

// Something to repeat, and how much it does: operations, or bytes moved.
struct Trial {
  std::string name;
  double work = 0;  // of one call
  std::function<void()> run;
};

struct Rate {
  std::string name;
  double per_second = 0;  // the best repeat
  double spread = 0;      // (max - min) / max over the repeats
  int repeats = 0;
};

// Returns the rate of a trial: it makes a call for warm-up, then up to seven repeats, at least three, each of as many
// calls as fill its part of the budget.
Rate measured_rate(const Trial& trial, const Timer& timer, std::chrono::duration<double> budget);

// Measures all trials, each with an equal part of the budget. Returns their rates, best first.
std::vector<Rate> measured_rates(const std::vector<Trial>& trials, const Timer& timer,
                                 std::chrono::duration<double> budget);

// Returns "cuda" (the current one) or "cuda:<index>" as torch's device. Throws std::invalid_argument, one sentence,
// where the device does not exist or torch cannot use it.
c10::Device usable_gpu(const std::string& device);

// Returns the driver's facts about a device; empty where it gives none.
std::optional<cuda::NvidiaDevice> gpu_facts(c10::Device device);

// Throws CollectorError where torch.profiler is active: CUPTI serves one client, and does not say when torch's profiler
// becomes it.
void refuse_beside_torchs_profiler();

// Returns the bytes that can be allocated on a device now, what torch caches included; on the CPU a small fixed number.
std::int64_t free_bytes(c10::Device device);

// Gives back what torch's allocators have cached since this was made: all that they cache, as they cannot distinguish
// it, and only if it has become more. What cuBLAS keeps for its work stays, as after any product.
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
