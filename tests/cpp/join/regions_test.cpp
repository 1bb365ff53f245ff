// The rows of regions, by hand.

#include "join/regions.h"

#include <gtest/gtest.h>

#include "support/pass_builder.h"

namespace roofprof {
namespace {

TEST(Regions, AreRowsBelowTheRowTheyWereOpenedIn) {
  testing::ObservedBuilder net;
  const ModuleId layer = net.module("layer", "Linear");
  const ModuleId first = layer + 1;
  const auto rows = modules_with_regions(net.observed.modules, {{layer, "part"}, {kModel, "loss"}, {first, "inner"}});
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

}  // namespace
}  // namespace roofprof
