// What ran within one region, by hand: closed forms and sums.

#include "analysis/within.h"

#include <gtest/gtest.h>

#include "analysis/region_rows.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::Derived;
using testing::ProfileBuilder;
using testing::work_of;

constexpr RegionId kPrefill = 1;
constexpr RegionId kDecode = 2;
constexpr RegionId kStep = 3;

// A layer whose op ran in each region and in none, 1,000 FLOPs and 100 ns for each call; two runs.
ProfileBuilder looped() {
  ProfileBuilder net;
  const ModuleId layer = net.module("layer", "Linear");
  net.data.tree.regions = {
      {kNoRegion, "prefill", 1, {700, 800}}, {kNoRegion, "decode", 2, {900, 950}}, {kDecode, "step", 3, {500, 550}}};
  const auto add = [&](RegionId region, std::int64_t calls) {
    net.op("aten::linear", layer, work_of(1'000 * calls, 100 * calls), 100 * calls, calls).owner.region = region;
    net.time(layer, {200 * calls, 210 * calls}, calls);
    net.data.times.make().modules.back().owner.region = region;
  };
  add(kPrefill, 5);
  add(kDecode, 1);
  add(kStep, 3);
  add(kNoRegion, 2);
  net.data.tree.modules[index_of(layer)].output_shapes = {{1, 2}};
  return net;
}

TEST(Within, HasWhatRanInTheRegionAndInThoseInsideIt) {
  const auto net = looped();
  const Derived decode(within_region(net.data, "decode"));
  EXPECT_EQ(decode.row("layer").flops, 4'000);
  EXPECT_EQ(decode.row("layer").calls, 4);
  EXPECT_EQ(decode.row("layer").time_ns, 800);
  EXPECT_EQ(decode.total().op_time_ns, 400);
  EXPECT_EQ(decode.total().wall_ns, 900);
  EXPECT_EQ(decode.data().run.runs.total_ns, (std::vector<std::int64_t>{900, 950}));
  EXPECT_EQ(decode.data().roofs, net.data.roofs);
  EXPECT_EQ(decode.rows().size(), net.derived().rows().size());
  EXPECT_TRUE(decode.row("layer").output_shapes.empty()) << "the last call may have been elsewhere";
  EXPECT_EQ(Derived(within_region(net.data, "step")).total().flops, 3'000);
  EXPECT_EQ(Derived(within_region(net.data, "decode/step")).total().flops, 3'000);
  EXPECT_EQ(Derived(within_region(decode.data(), "step")).total().flops, 3'000);
}

TEST(Within, PartsAndTheRestAddUpToTheTotal) {
  const auto net = looped();
  const auto whole = net.derived();
  const auto regions = region_rows(net.data);
  std::vector<std::string> paths;
  std::int64_t flops = 0;
  std::int64_t time_ns = 0;
  for (const auto& row : regions) {
    paths.push_back(row.path);
    flops += row.self.flops;
    time_ns += *row.self.time_ns;
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"prefill", "decode", "decode/step", "(no region)"}));
  EXPECT_EQ(flops, whole.total().flops);
  EXPECT_EQ(time_ns, whole.total().time_ns);
  EXPECT_EQ(regions[1].flops, 4'000);
  EXPECT_EQ(regions[1].self.flops, 1'000);
  EXPECT_EQ(regions[1].calls, 2);
  EXPECT_EQ(regions[2].depth, 1);
  EXPECT_EQ(regions[2].wall_ns, 500);
  EXPECT_FALSE(regions[3].wall_ns.has_value());
  const auto groups = net.derived().group(std::vector<std::string>{"scope"});
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[0].scope, "prefill");
  EXPECT_EQ(groups[2].scope, "decode/step");
  EXPECT_EQ(groups[3].scope, "");
}

TEST(Within, WithoutWallTimesHasNoTimesAtAll) {
  auto net = looped();
  net.data.tree.regions[kStep - 1].wall_ns.clear();
  const Derived step(within_region(net.data, "step"));
  EXPECT_EQ(step.total().flops, 3'000);
  EXPECT_FALSE(step.total().time_ns.has_value());
  EXPECT_FALSE(step.total().op_time_ns.has_value());
  EXPECT_FALSE(step.total().wall_ns.has_value());
  const auto regions = region_rows(net.data);
  EXPECT_FALSE(regions[2].time_ns.has_value());
  EXPECT_TRUE(regions[1].time_ns.has_value());
  EXPECT_FALSE(regions[1].self.time_ns.has_value()) << "it holds what the step's would be";
}

TEST(Within, KeepsKernelsAndTheirOps) {
  auto net = looped();
  for (std::int64_t op = 0; op < 4; ++op) {
    KernelBucket kernel;
    kernel.name = "gemm";
    kernel.owner.module = 3;
    kernel.op = "aten::linear";
    kernel.bucket = op;
    kernel.owner.region = net.data.counts.ops[static_cast<std::size_t>(op)].owner.region;
    kernel.instances = 1;
    kernel.total_ns = 10;
    net.data.device.make().kernels.push_back(kernel);
  }
  const auto decode = within_region(net.data, "decode");
  ASSERT_EQ(decode.device->kernels.size(), 2);
  EXPECT_EQ(decode.counts.ops[static_cast<std::size_t>(decode.device->kernels[0].bucket)].owner.region, kDecode);
  EXPECT_EQ(decode.counts.ops[static_cast<std::size_t>(decode.device->kernels[1].bucket)].owner.region, kStep);
}

TEST(Within, RefusesWhatIsNotThereAndRegionsThatContradictThemselves) {
  auto net = looped();
  try {
    within_region(net.data, "prefil");
    FAIL() << "no exception";
  } catch (const std::out_of_range& error) {
    EXPECT_NE(std::string(error.what()).find("the closest are 'prefill'"), std::string::npos) << error.what();
  }
  EXPECT_THROW(within_region(ProfileBuilder().data, "prefill"), std::out_of_range);
  net.data.counts.ops.front().owner.region = 9;
  EXPECT_THROW(net.derived(), std::invalid_argument);
  net = looped();
  net.data.tree.regions.front().parent = 2;
  EXPECT_THROW(net.derived(), std::invalid_argument);
}

}  // namespace
}  // namespace roofprof
