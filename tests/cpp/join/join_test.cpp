// A whole profile from what was observed, by hand: what comes from where, and in which order it is said.

#include "join/join.h"

#include <gtest/gtest.h>

#include "core/note_codes.h"
#include "support/device_builder.h"
#include "support/pass_builder.h"

namespace roofprof {
namespace {

using testing::op_in_pass;

// One layer on a GPU that took 4 us in the first timed pass and 5 us in the second.
struct OnDevice : testing::ObservedBuilder {
  ModuleId layer = module("layer", "Linear");

  OnDevice() {
    observed.run.device = "cuda:0";
    observed.counting = pass(9'000);
    observed.timed = {pass(4'000), pass(5'000)};
    observed.run.runs.bare_ns = {8'000, 8'500};
    observed.run.runs.warmup = 3;
    observed.launches = {{}, {{1, {layer, Phase::forward}, 1}, "aten::linear"}};
    observed.on_device.emplace();
    observed.on_device->compute_capability = "9.0";
  }

  Pass pass(std::int64_t kernel_ns) const {
    testing::RunBuilder run;
    run.kernel("gemm", 1, 0, kernel_ns);
    Pass pass;
    pass.ops = {op_in_pass(1, "aten::linear", layer, 1, 70)};
    pass.clocks = {{{kModel, Phase::forward}, 1, 900}, {{layer, Phase::forward}, 1, 100}};
    pass.wall_ns = 2 * kernel_ns;
    pass.device = std::make_shared<const DeviceTrace>(run.run.trace);
    return pass;
  }
};

TEST(Join, PutsTogetherWhatWasObserved) {
  OnDevice net;
  net.observed.run.partial = true;
  net.observed.run.runs.steps = 7;
  net.observed.run.environment = {{"torch", "2.11.0"}};
  const auto data = join(net.observed);
  EXPECT_EQ(data.run.device, "cuda:0");
  EXPECT_TRUE(data.run.partial);
  EXPECT_EQ(data.tree.modules, net.observed.tree.modules);
  EXPECT_EQ(data.run.runs, (Runs{{8'000, 10'000}, 0, {8'000, 8'500}, 3, 7, {}, {}}));
  EXPECT_EQ(data.run.environment, net.observed.run.environment);
  EXPECT_EQ(data.roofs, net.observed.roofs);
  EXPECT_TRUE(data.notes.empty());
}

// A layer whose call traced it as well: once more the work, on tensors without data.
struct Traced : testing::ObservedBuilder {
  ModuleId layer = module("layer", "Linear");

  explicit Traced(std::int64_t calls_on_data) {
    auto traced = op_in_pass(2, "aten::linear", layer, 3, 20);
    traced.without_data = true;
    auto unsized = op_in_pass(3, "aten::mm", layer, 1, 20);
    unsized.without_data = true;
    unsized.costed = false;
    unsized.work = {};
    observed.counting.ops = {traced, unsized};
    if (calls_on_data > 0) observed.counting.ops.push_back(op_in_pass(1, "aten::linear", layer, calls_on_data, 20));
    observed.counting.clocks = {{{kModel, Phase::forward}, 1, 900}, {{layer, Phase::forward}, 1, 100}};
    observed.counting.failures = {{"aten::mm", "no size"}};
  }
};

TEST(Join, TracingIsNoWorkOfACallThatHasData) {
  const Traced net(1);
  const testing::Derived report(join(net.observed));
  EXPECT_EQ(report.total().flops, 1'000);
  EXPECT_FALSE(report.total().incomplete);
  ASSERT_EQ(report.coverage().notes.size(), 1U);
  EXPECT_EQ(report.coverage().notes.front().code, "traced-meanwhile");
  EXPECT_TRUE(report.coverage().notes.front().text.starts_with("4 operator calls on tensors without data"));
}

TEST(Join, WithoutAnyDataItIsTheWork) {
  const Traced net(0);
  EXPECT_EQ(testing::Derived(join(net.observed)).total().flops, 3'000);
  Traced on_meta(1);  // what it computes with data there is by the way
  on_meta.observed.holds_data = false;
  EXPECT_EQ(testing::Derived(join(on_meta.observed)).total().flops, 4'000);
}

TEST(Join, TimesOfADeviceReplaceTheClocks) {
  const OnDevice net;
  const auto data = join(net.observed);
  EXPECT_TRUE(data.device);
  EXPECT_EQ(data.device->compute_capability, "9.0");
  ASSERT_EQ(data.counts.ops.size(), 1);
  EXPECT_EQ(data.counts.ops[0].time_ns, 4'000);
  ASSERT_EQ(data.times->modules.size(), 2);
  EXPECT_EQ(data.times->modules[1].self_ns, (std::vector<std::int64_t>{4'000, 5'000}));
  EXPECT_EQ(data.times->modules[1].host_self_ns, (std::vector<std::int64_t>{100, 100}));
  ASSERT_EQ(data.device->kernels.size(), 1);
  EXPECT_EQ(data.device->kernels[0].bucket, 0);
}

TEST(Join, APassWithoutATraceLeavesTheTimesOfWholeRunsAlone) {
  OnDevice net;
  net.observed.timed[1].device = nullptr;
  net.observed.on_device->notes = {make_note("no-kernel-times", "no CUPTI")};
  const auto data = join(net.observed);
  EXPECT_FALSE(data.device);
  EXPECT_EQ(data.counts.ops[0].time_ns, std::nullopt);
  for (const auto& time : data.times->modules) EXPECT_TRUE(time.self_ns.empty());
  EXPECT_EQ(data.run.runs.total_ns.size(), 2);
  EXPECT_EQ(data.notes, net.observed.on_device->notes);
}

}  // namespace
}  // namespace roofprof
