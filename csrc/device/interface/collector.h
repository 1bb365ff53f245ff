#pragma once
// The interface through which the profiler uses a device while a model runs on it. No vendor header is needed here.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/collector_error.h"
#include "core/device_data.h"

namespace roofprof {

// Names the counters that are requested; each kind needs separate passes.
struct CounterRequest {
  bool memory = true;           // DRAM, L2 and L1 bytes and time: one pass
  bool executed_flops = false;  // of CUDA cores and of tensor cores: further passes
  CounterRanges ranges = CounterRanges::kernels;
  std::int64_t expected_launches = 0;  // of one run of the body; room is made for more
  std::optional<int> device = {};      // the one to count on, 1 for "cuda:1"; empty: the current one
};

// The content of a trace.
enum class Recorded : std::uint8_t {
  all,      // kernels, copies and fills with the LaunchId that each was launched under
  launches  // these alone, which costs less: no LaunchId is known
};

// Collects what runs on a device. A process uses one at a time: what it collects is the process's. It can be used again
// after a failure.
class DeviceCollector {
 public:
  virtual ~DeviceCollector() = default;

  // Returns whether the device is a fake, as in tests: no hardware ran.
  virtual bool simulated() const { return false; }
  // Returns whether its records' times pass as the host's do; false: they are simulated, or of another time.
  virtual bool by_host_clock() const { return true; }
  // Waits for all launches on all devices. Throws CollectorError where a device is lost.
  virtual void synchronize() = 0;

  // Records what devices run from now on. Throws CollectorError if that is not possible (another profiler is at work,
  // no CUPTI); then nothing has changed.
  virtual void start_tracing(Recorded recorded) = 0;
  void start_tracing() { start_tracing(Recorded::all); }
  // Returns null while nothing is traced, or launches alone. Valid until tracing stops.
  virtual LaunchMarker* marker() = 0;
  // Returns true if a running trace can throw its records away.
  virtual bool can_forget() const { return false; }
  // Waits for all launches and throws away what was recorded of them; the trace goes on. Throws CollectorError where a
  // device is lost.
  virtual void forget() {}
  // Synchronizes and returns what was recorded. After a device was lost, it returns what there is, with a note. Throws
  // CollectorError where the times are not to be trusted (another profiler took the clock); tracing has ended then.
  virtual DeviceTrace stop_tracing() = 0;

  // Runs the body once for each pass that the counters need, more often where they do not take all ranges at once, and
  // returns their values. The body is given a marker for ranges of modules and in such further runs, else null. Throws
  // CollectorError (no permission, another profiler, a chip that is not supported), or what the body throws; then
  // nothing has changed.
  virtual CounterTrace count(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body) = 0;
};

// Returns the collector of a device such as "cuda:0". Null for kinds of devices without one; throws CollectorError
// where a collector should exist but cannot (no driver, no CUPTI, built without it).
std::unique_ptr<DeviceCollector> make_collector(const std::string& device);
// Does the same, but ignores ROOFPROF_REPLAY_DEVICE and ROOFPROF_RECORD_DEVICE, by which developers replace or wrap it.
std::unique_ptr<DeviceCollector> hardware_collector(const std::string& device);

// One line of `roofprof doctor`.

struct Examined {
  std::string what;  // "this build", "driver", "cuda:0", "NVML", "CUPTI", "kernel times", "counters", "other profilers"
  std::string found;   // in words; what is in the way, if anything is
  std::string advice;  // what to do; empty: nothing needs to be done
};

}  // namespace roofprof
