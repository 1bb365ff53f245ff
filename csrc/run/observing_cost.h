#pragma once
// Measures the time that observing adds to a launch on this machine.

#include <cstdint>
#include <functional>

namespace roofprof::run {

// The wall time of some launches, and how many they were.
struct TimedLaunches {
  std::int64_t wall_ns = 0;
  std::int64_t launches = 0;
};

// Returns the time that observing adds to a launch, at least 1 ns: the median over rounds, in each of which the same is
// done bare, with its wall time, and then observed. 0 where an observed round launched nothing.
std::int64_t added_to_a_launch(int rounds, const std::function<std::int64_t()>& bare,
                               const std::function<TimedLaunches()>& observed);

}  // namespace roofprof::run
