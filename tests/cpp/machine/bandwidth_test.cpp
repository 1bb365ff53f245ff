#include "machine/cpu/bandwidth.h"

#include <gtest/gtest.h>

#include "machine/common/bandwidth_curve.h"
#include "machine/possible.h"

namespace roofprof {
namespace {

TEST(Bandwidth, WorkingSetsRiseByTheSquareRootOfTwo) {
  EXPECT_EQ(working_sets_up_to(65536), (std::vector<std::int64_t>{16384, 23170, 32768, 46341, 65536}));
  EXPECT_EQ(working_sets_up_to(0), std::vector<std::int64_t>{16384});
}

TEST(MeasuringBandwidth, EveryKernelHasAPossibleRateOverEveryWorkingSet) {
  BandwidthSweep sweep(1 << 20);
  const auto points = best_of({sweep.round(), sweep.round(), sweep.round()});
  ASSERT_EQ(points.size(), working_sets_up_to(1 << 20).size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].working_set_bytes, working_sets_up_to(1 << 20)[i]);
    for (const double rate : {points[i].read, points[i].triad, points[i].copy, points[i].write, points[i].update}) {
      testing::expect_possible_bandwidth(rate);  // more: the work was optimised away
    }
  }
}

}  // namespace
}  // namespace roofprof
