// The cost of observing a launch, from made-up wall times.

#include "run/observing_cost.h"

#include <gtest/gtest.h>

#include <array>

namespace roofprof::run {
namespace {

std::int64_t added(std::array<std::int64_t, 3> bare, std::array<TimedLaunches, 3> observed) {
  std::size_t round = 0;
  return added_to_a_launch(3, [&] { return bare[round]; }, [&] { return observed[round++]; });
}

TEST(ObservingCost, IsTheMedianOfWhatARoundAddsToALaunch) {
  // 3, 50 and 5 us for each of 10 launches.
  EXPECT_EQ(added({100'000, 100'000, 120'000}, {{{130'000, 10}, {600'000, 10}, {170'000, 10}}}), 5'000);
  EXPECT_EQ(added({100'000, 100'000, 100'000}, {{{90'000, 10}, {80'000, 10}, {95'000, 10}}}), 1) << "never negative";
  EXPECT_EQ(added({100, 100, 100}, {{{200, 10}, {200, 0}, {200, 10}}}), 0) << "not known: one launched nothing";
}

}  // namespace
}  // namespace roofprof::run
