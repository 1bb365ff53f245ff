#pragma once
// The observer's clock: the processor's time stamp counter where there is one, because it is read before and after
// every op.

#include <c10/util/ApproximateClock.h>

#include <chrono>
#include <cstdint>

namespace roofprof::observe {

using Ticks = std::int64_t;

inline Ticks now_ticks() { return static_cast<Ticks>(c10::getApproximateTime()); }

// On a clock that all processes of a host share.
inline std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Nanoseconds per tick, from how far both clocks went since the process first asked.
inline double ns_per_tick() {
  using Steady = std::chrono::steady_clock;
  struct Anchor {
    Steady::time_point time = Steady::now();
    Ticks ticks = now_ticks();
  };
  static const Anchor anchor;
  // Below a millisecond the ratio would rest on the reading's own latency.
  while (Steady::now() - anchor.time < std::chrono::milliseconds(1)) {
  }
  const auto elapsed = std::chrono::duration<double, std::nano>(Steady::now() - anchor.time).count();
  const auto ticks = now_ticks() - anchor.ticks;
  return ticks > 0 ? elapsed / static_cast<double>(ticks) : 1.0;
}

}  // namespace roofprof::observe
