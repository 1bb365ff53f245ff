#pragma once
// Kernel times by CUPTI's activity records.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/device_data.h"
#include "device/cupti/activity_inbox.h"
#include "device/cupti/api.h"
#include "device/cupti/launch_calls.h"
#include "device/interface/collector.h"

namespace roofprof::cupti {

// The clock of CUPTI's timestamps, which another client may have replaced.

// The unit of cuptiGetTimestamp.
enum class ClockUnit : std::uint8_t {
  nanoseconds,  // CUPTI's own: CLOCK_REALTIME, or CLOCK_MONOTONIC_RAW under WSL
  cpu_ticks,    // the processor's time stamp counter: torch's profiler puts it there with its first use, for good
  unknown
};
ClockUnit clock_unit(const Api& api);  // throws CuptiError

// Keeps CUPTI's timestamps in nanoseconds from start() to end().
class TraceClock {
 public:
  // Call it before any kind of record is enabled. It replaces a counter of ticks by CLOCK_REALTIME, and leaves CUPTI's
  // own clock alone: with a client's clock in its place, some versions write records without a start. Throws
  // CollectorError where the timestamps are in no known unit, or stay ticks.
  void start(const Api& api);
  // Returns whether they still are nanoseconds. Asked when a trace ends: records are converted then, all by the clock
  // that is in place.
  bool holds(const Api& api) const;
  // Called after the last record. Puts ticks back where another profiler had put them. Returns CUPTI's code if that
  // failed, else 0.
  int end(const Api& api);

 private:
  bool replaced_ = false;
};

// Records a trace. A process has one trace at a time, because CUPTI's records are the process's. The destructor ends a
// trace under way.
class Tracer {
 public:
  // `synchronize` waits for the devices and throws CollectorError where one is lost.
  Tracer(const Api& api, std::function<void()> synchronize, TraceLimits limits = {});
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Starts a trace. Throws CollectorError (another profiler is at work); nothing is enabled or subscribed then.
  void start(Recorded recorded = Recorded::all);
  // Returns null while nothing is traced, or launches alone.
  LaunchMarker* marker();
  // Waits for the devices and throws away what was recorded so far.
  void forget();
  // Waits for the devices and returns the records. Errors become notes. Throws CollectorError where the times are not
  // to be trusted; the trace has ended then.
  DeviceTrace stop();

 private:
  void begin();
  void subscribe();
  bool watch_graphs();
  bool watch_launches();
  void enable(std::span<const CUpti_ActivityKind> kinds);
  void disable_calls();
  void skip_calls_that_launch_nothing();
  std::int64_t now() const;
  bool wait_at_the_end(DeviceTrace& trace);
  void flush(DeviceTrace& trace);
  void release(std::vector<Note>& notes);

  const Api& api_;
  std::function<void()> synchronize_;
  TraceLimits limits_;
  bool tracing_ = false;
  Recorded recorded_ = Recorded::all;
  TraceClock clock_;
  CUpti_SubscriberHandle subscriber_ = nullptr;  // held while something is watched
  bool callbacks_taken_ = false;                 // by another subscriber
  bool graphs_watched_ = false;
  bool launches_watched_ = false;  // else CUPTI gets the ids, and records calls with them
  bool calls_missed_ = false;      // kernels came of calls that were not known to launch: all are recorded from then on
  std::vector<Call> calls_;        // looked up once
  std::vector<CUpti_ActivityKind> enabled_;
  std::int64_t start_ns_ = 0;
};

}  // namespace roofprof::cupti
