#pragma once
// What a device is asked while a model runs on it. No header of the vendor's is needed to ask.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/device_data.h"

namespace roofprof {

// One sentence: what cannot be collected and why, then what to do, where something can be done.
class CollectorError : public std::runtime_error {
 public:
  explicit CollectorError(const std::string& found, std::string advice = {})
      : std::runtime_error(advice.empty() ? found : found + ": " + advice), found_(found), advice_(std::move(advice)) {}
  const std::string& found() const { return found_; }
  const std::string& advice() const { return advice_; }

 private:
  std::string found_;
  std::string advice_;
};

// What counters are wanted, each kind in passes of its own.
struct CounterRequest {
  bool memory = true;           // DRAM, L2 and L1 bytes and time: one pass
  bool executed_flops = false;  // of CUDA cores and of tensor cores: further passes
  CounterRanges ranges = CounterRanges::kernels;
  std::int64_t expected_launches = 0;  // of one run of the body; room is made for more
  std::optional<int> device = {};      // to count on, "cuda:1" is 1; else the current one. One alone can be counted
};

// One at a time in a process: what it collects is the process's. Usable again after a failure.
class DeviceCollector {
 public:
  virtual ~DeviceCollector() = default;

  // Stand-ins of tests tell of a device that there is not.
  virtual bool simulated() const { return false; }
  // Waits for all that was launched on all devices. Throws CollectorError where a device is lost.
  virtual void synchronize() = 0;

  // Records what devices run from now on. Throws CollectorError where that is not possible (another profiler is at
  // work, no CUPTI); nothing is left changed then.
  virtual void start_tracing() = 0;
  // Null while nothing is traced. Valid until tracing stops.
  virtual LaunchMarker* marker() = 0;
  // Synchronizes and returns what was recorded; also after a device was lost, with what there is and a note.
  virtual DeviceTrace stop_tracing() = 0;

  // Runs the body once for each pass that the counters need and returns their values. The body is handed the marker for
  // ranges of modules, else null. Throws CollectorError (no permission, another profiler, a chip that is not
  // supported); what the body throws comes through. Nothing is left changed then.
  virtual CounterTrace count(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body) = 0;
};

// The collector of a device such as "cuda:0". Null where there is none for that kind of device; throws CollectorError
// where there should be (no driver, no CUPTI, built without it).
std::unique_ptr<DeviceCollector> make_collector(const std::string& device);

}  // namespace roofprof
