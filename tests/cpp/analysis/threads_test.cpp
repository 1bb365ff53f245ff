// Several threads that run a model at once: their times add up, but the whole took its wall time.

#include <gtest/gtest.h>

#include <algorithm>

#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

// Two threads, each of which ran the layer for 100 us; the block took 120 us of wall time.
struct Threaded : ProfileBuilder {
  ModuleId layer = module("layer", "Linear");

  Threaded() {
    data.run.mode = Mode::block;
    op("aten::linear", layer, work_of(60'000'000, 1'000), 190'000, 2);  // lower bound 60 us
    time(layer, {200'000}, 2);
    data.run.runs.total_ns = {120'000};
  }
};

bool says_so(const testing::Derived& report) {
  return std::ranges::any_of(report.coverage().notes, [](const auto& note) { return note.code == "threads-overlap"; });
}

TEST(Threads, TheTotalIsJudgedByItsWallTime) {
  const auto report = Threaded().derived();
  const auto& total = report.total();
  EXPECT_EQ(total.time_ns, 200'000) << "which adds up";
  EXPECT_EQ(total.wall_ns, 120'000);
  EXPECT_EQ(total.lower_bound_time_ns, 60'000);
  EXPECT_EQ(total.wasted_time_ns, 60'000);
  EXPECT_DOUBLE_EQ(*total.percent_of_roof, 50);
  EXPECT_DOUBLE_EQ(*total.achieved_flops, 60e6 / 120e-6);
  EXPECT_DOUBLE_EQ(*total.achieved_bandwidth, 1'000 / 120e-6);
  EXPECT_EQ(total.self.wasted_time_ns, total.wasted_time_ns);
  EXPECT_TRUE(says_so(report));
}

TEST(Threads, RowsKeepTheTimesOfTheirThreads) {
  const auto report = Threaded().derived();
  for (const auto* path : {"", "layer"}) {
    EXPECT_EQ(report.row(path).time_ns, 200'000);
    EXPECT_EQ(report.row(path).wasted_time_ns, 140'000);
    EXPECT_DOUBLE_EQ(*report.row(path).percent_of_roof, 30);
  }
}

TEST(Threads, InTurnAddUpAndStreamsOfADeviceAreNone) {
  Threaded net;
  net.data.run.runs.total_ns = {199'000};  // the clocks of threads are not one
  const auto report = net.derived();
  EXPECT_EQ(report.total().wasted_time_ns, 140'000);
  EXPECT_FALSE(says_so(report));
  Threaded on_device;
  on_device.data.device.make();
  EXPECT_FALSE(says_so(on_device.derived()));
}

}  // namespace
}  // namespace roofprof
