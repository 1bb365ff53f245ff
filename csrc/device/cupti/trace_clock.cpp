#include "device/cupti/trace_clock.h"

#include <atomic>
#include <ctime>
#include <utility>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace roofprof::cupti {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond + static_cast<std::uint64_t>(time.tv_nsec);
}

bool within_a_second(std::uint64_t a, std::uint64_t b) { return (a > b ? a - b : b - a) < kSecond; }

// CUPTI's callbacks carry no pointer.
std::atomic<std::uint64_t (*)()> real_time = nullptr;
std::uint64_t CUPTIAPI tell_real_time() { return real_time.load(std::memory_order_relaxed)(); }

#ifdef __x86_64__
constexpr bool kHasTicks = true;
std::uint64_t CUPTIAPI tell_ticks() { return __rdtsc(); }
#else
constexpr bool kHasTicks = false;
std::uint64_t CUPTIAPI tell_ticks() { return 0; }
#endif

bool is_in_nanoseconds(const Api& api) { return clock_unit(api) == ClockUnit::nanoseconds; }

}  // namespace

std::uint64_t machines_real_time() { return read_clock(CLOCK_REALTIME); }

ClockUnit clock_unit(const Api& api) {
  std::uint64_t timestamp = 0;
  ROOFPROF_CUPTI(api, cuptiGetTimestamp, &timestamp);
  if (within_a_second(timestamp, api.real_time())) return ClockUnit::nanoseconds;
  if (within_a_second(timestamp, read_clock(CLOCK_MONOTONIC_RAW))) return ClockUnit::nanoseconds;
  // A second and less, as ticks are shorter.
  if (kHasTicks && within_a_second(timestamp, tell_ticks())) return ClockUnit::cpu_ticks;
  return ClockUnit::unknown;
}

void TraceClock::start(const Api& api) {
  const ClockUnit found = clock_unit(api);
  if (found == ClockUnit::nanoseconds) return;
  // A clock that could not be put back is not replaced.
  if (found == ClockUnit::cpu_ticks && api.cuptiActivityRegisterTimestampCallback != nullptr) {
    real_time.store(api.real_time, std::memory_order_relaxed);
    replaced_ = api.cuptiActivityRegisterTimestampCallback(&tell_real_time) == CUPTI_SUCCESS;
    if (replaced_ && is_in_nanoseconds(api)) return;
    if (std::exchange(replaced_, false)) api.cuptiActivityRegisterTimestampCallback(&tell_ticks);
  }
  throw CollectorError("another profiler in this process has replaced CUPTI's clock, and kernel times would be wrong",
                       "profile before that profiler is used, or in a process without it");
}

bool TraceClock::holds(const Api& api) const {
  try {
    return is_in_nanoseconds(api);
  } catch (const CuptiError&) {  // nothing is known of it, and the trace says so
    return true;
  }
}

int TraceClock::end(const Api& api) {
  if (!std::exchange(replaced_, false) || !holds(api)) return CUPTI_SUCCESS;
  return api.cuptiActivityRegisterTimestampCallback(&tell_ticks);
}

}  // namespace roofprof::cupti
