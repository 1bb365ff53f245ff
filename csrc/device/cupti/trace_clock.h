#pragma once
// The clock of CUPTI's timestamps, which another client may have replaced.

#include <cstdint>
#include <string>

#include "device/cupti/api.h"

namespace roofprof::cupti {

// What cuptiGetTimestamp counts.
enum class ClockUnit : std::uint8_t {
  nanoseconds,  // CUPTI's own: CLOCK_REALTIME, or CLOCK_MONOTONIC_RAW under WSL
  cpu_ticks,    // the processor's time stamp counter: torch's profiler puts it there with its first use, for good
  unknown
};
ClockUnit clock_unit(const Api& api);  // throws CuptiError

// From start() to end() CUPTI's timestamps are nanoseconds.
class TraceClock {
 public:
  // Before any kind of record is enabled. A counter of ticks is replaced by CLOCK_REALTIME, which works while CUPTI's
  // own clock is left alone: with a clock of a client's, some versions write records without a start. Throws
  // CollectorError where the timestamps are nothing known, or stay ticks.
  void start(const Api& api);
  // Whether they still are. Asked when a trace ends: records are converted then, all by the clock that is there.
  bool holds(const Api& api) const;
  // After the last record. Who had put ticks there gets them back. What could not be done, in CUPTI's code; 0: nothing.
  int end(const Api& api);

 private:
  bool replaced_ = false;
};

}  // namespace roofprof::cupti
