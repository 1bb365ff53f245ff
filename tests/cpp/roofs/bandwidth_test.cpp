#include "roofs/cpu/bandwidth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "roofs/possible.h"

namespace roofprof {
namespace {

using Seconds = std::chrono::duration<double>;

void expect_sane(const std::vector<Bandwidth>& kernels) {
  ASSERT_EQ(kernels.size(), 3u);
  std::set<std::string> names;
  for (const auto& kernel : kernels) {
    names.insert(kernel.kernel);
    testing::expect_possible_bandwidth(kernel.bytes_per_second);  // more: the work was optimised away
    EXPECT_GE(kernel.spread, 0);
    EXPECT_LE(kernel.spread, 1);
    EXPECT_GE(kernel.repeats, 3);
  }
  EXPECT_EQ(names, (std::set<std::string>{"copy", "read", "triad"}));
  EXPECT_TRUE(std::ranges::is_sorted(kernels, std::ranges::greater{}, &Bandwidth::bytes_per_second));
}

TEST(Bandwidth, OfWorkingSetsInAndBeyondCaches) {
  expect_sane(measure_bandwidth(32 << 10, Seconds(0.1)));
  expect_sane(measure_bandwidth(64 << 20, Seconds(0.1)));
}

TEST(Bandwidth, ATinyWorkingSetIsRoundedUpToOneStep) {
  expect_sane(measure_bandwidth(0, Seconds(0.05)));
  expect_sane(measure_bandwidth(1000, Seconds(0.05)));
}

}  // namespace
}  // namespace roofprof
