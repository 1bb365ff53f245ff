// The rows of regions, by hand.

#include "join/attribution.h"

#include <gtest/gtest.h>

#include "analysis/within.h"
#include "join/join.h"
#include "support/pass_builder.h"

namespace roofprof {
namespace {

TEST(Regions, AreRowsBelowTheRowTheyWereOpenedIn) {
  testing::ObservedBuilder net;
  const ModuleId layer = net.module("layer", "Linear");
  const ModuleId first = layer + 1;
  const auto rows =
      modules_with_regions(net.observed.tree.modules, {{layer, "part"}, {kModel, "loss"}, {first, "inner"}});
  ASSERT_EQ(rows.size(), 7);
  EXPECT_EQ(rows[4].path, "layer.part");
  EXPECT_EQ(rows[4].parent, layer);
  EXPECT_EQ(rows[5].path, "loss") << "the model's own path is empty";
  EXPECT_EQ(rows[6].path, "layer.part.inner") << "a region in a region";
  EXPECT_EQ(rows[6].parent, first);
  for (std::size_t id = 4; id < rows.size(); ++id) {
    EXPECT_EQ(rows[id].type, kRegionType);
    EXPECT_FALSE(rows[id].has_forward);
  }
}

TEST(Regions, HaveTheWorkThatWasCountedInThem) {
  testing::ObservedBuilder net;
  const ModuleId layer = net.module("layer", "Linear");
  net.observed.regions = {{layer, "part"}};
  net.observed.counting.ops = {testing::op_in_pass(1, "aten::linear", layer + 1, 2, 5)};
  const testing::Derived report = net.derived();
  EXPECT_EQ(report.row("layer.part").flops, 2'000);
  EXPECT_EQ(report.row("layer").flops, 2'000);
  EXPECT_EQ(report.row("layer").self.flops, 0);
}

TEST(Regions, HavePathsWithCallsAndWallTimes) {
  Pass counting;
  counting.regions = {{1, 1, 90}, {2, 3, 60}};
  Pass timed = counting;
  timed.regions = {{1, 1, 95}, {2, 3, 65}};
  const std::vector<RegionPath> regions = {{kNoRegion, "decode"}, {1, "step"}};
  const auto paths = region_paths(regions, counting, {counting, timed});
  ASSERT_EQ(paths.size(), 2);
  EXPECT_EQ(paths[0].wall_ns, (std::vector<std::int64_t>{90, 95}));
  EXPECT_EQ(paths[1].wall_ns, (std::vector<std::int64_t>{60, 65}));
  EXPECT_EQ(paths[1].calls, 3);
  EXPECT_EQ(paths[1].parent, 1);
}

TEST(Regions, HaveNoWallTimesWhereARunOpenedThemLessOften) {
  Pass counting;
  counting.regions = {{1, 2, 90}};
  Pass fewer = counting;
  fewer.regions = {{1, 1, 90}};
  const std::vector<RegionPath> regions = {{kNoRegion, "inside"}};
  EXPECT_TRUE(region_paths(regions, counting, {counting, fewer}).front().wall_ns.empty());
  EXPECT_TRUE(region_paths(regions, counting, {Pass{}, counting}).front().wall_ns.empty());
  EXPECT_EQ(region_paths(regions, counting, {}).front().calls, 2);
}

TEST(Regions, TellTheSameWorkOfAModuleApart) {
  testing::ObservedBuilder net;
  const ModuleId layer = net.module("layer", "Linear");
  net.observed.tree.regions = {{kNoRegion, "prefill"}, {kNoRegion, "decode"}};
  auto& counting = net.observed.counting;
  for (const RegionId region : {1, 2}) {
    auto op = testing::op_in_pass(1, "aten::linear", layer, region, 10 * region);
    op.owner.region = region;
    counting.ops.push_back(op);
    counting.clocks.push_back({{layer, Phase::forward, region}, region, 100 * region});
    counting.regions.push_back({region, 1, 200 * region});
  }
  counting.wall_ns = 700;
  net.observed.timed = {counting};
  const auto data = join(net.observed);
  const testing::Derived decode(within_region(data, "decode"));
  EXPECT_EQ(decode.row("layer").flops, 2'000);
  EXPECT_EQ(decode.row("layer").calls, 2);
  EXPECT_EQ(decode.row("layer").time_ns, 200);
  EXPECT_EQ(decode.row("layer").op_time_ns, 20);
  EXPECT_EQ(decode.total().wall_ns, 400);
  EXPECT_EQ(net.derived().row("layer").time_ns, 300);
}

}  // namespace
}  // namespace roofprof
