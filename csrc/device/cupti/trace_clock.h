#pragma once
// The clock of CUPTI's timestamps, which another client may have replaced.

#include <cstdint>
#include <string>

#include "device/cupti/api.h"

namespace roofprof::cupti {

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

}  // namespace roofprof::cupti
