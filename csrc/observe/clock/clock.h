#pragma once
// The observer's clock: the processor's time stamp counter where there is one, because it is read before and after
// every op.

#include <c10/util/ApproximateClock.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace roofprof::observe {

using Ticks = std::int64_t;

inline Ticks now_ticks() { return static_cast<Ticks>(c10::getApproximateTime()); }

// Returns the time on a clock that all processes of a host share.
inline std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One moment by both clocks.
struct ClockReading {
  std::int64_t ns = 0;
  Ticks ticks = 0;
};

// On a busy machine this thread may have to wait between two readings: those that lie closest together count.
inline ClockReading read_both_clocks() {
  constexpr int kTries = 5;
  ClockReading closest;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries; ++i) {
    const auto before = steady_ns();
    const auto ticks = now_ticks();
    const auto apart = steady_ns() - before;
    if (apart < least) closest = {before + apart / 2, ticks};
    least = std::min(least, apart);
  }
  return closest;
}

// Nanoseconds per tick, from how far both clocks went since the process first asked.
inline double ns_per_tick() {
  static const ClockReading first = read_both_clocks();
  // Below a millisecond the ratio would rest on the reading's own latency.
  constexpr std::int64_t kMillisecond = 1'000'000;
  while (steady_ns() - first.ns < kMillisecond) {
  }
  const auto now = read_both_clocks();
  const auto ticks = now.ticks - first.ticks;
  return ticks > 0 ? static_cast<double>(now.ns - first.ns) / static_cast<double>(ticks) : 1.0;
}

}  // namespace roofprof::observe
