// What goes wrong on a simulated GPU: each thing is one sentence of the report's, which has what is left.

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/profiler_legacy.h>
#include <torch/nn.h>

#include <cstdlib>
#include <optional>
#include <thread>

#include "run/profiler_device/simulated_gpu.h"

namespace roofprof {
namespace {

using namespace testing;

class WhatGoesWrong : public WithFakes {
 protected:
  void TearDown() override {
    expect_nothing_held();
    WithFakes::TearDown();
  }
  Report run(Counters counters = Counters::automatic) {
    const KernelsOfOps bound({{"aten::relu", {"simulated_relu", kRelu, 3e6}}});
    return RooflineProfiler(model_, on_the_gpu(counters)).run(torch::rand({4}));
  }
  // Then everything works again.
  void expect_times(const Report& report) { EXPECT_EQ(report.row("").time_ns, kRelu) << all_notes(report); }
  void expect_wall_times_alone(const Report& report) {
    EXPECT_FALSE(report.row("").time_ns.has_value());
    EXPECT_TRUE(report.kernels().empty());
    EXPECT_TRUE(report.row("").wall_ns.has_value());
    EXPECT_EQ(report.run_times_ns().size(), 3U);
    EXPECT_EQ(report.total().flops, 4) << "what is counted does not need the device";
  }

  static constexpr long long kRelu = 2000;
  torch::nn::ReLU model_;
};

TEST_F(WhatGoesWrong, AnotherProfilerThatTheProcessRunsUnder) {
  fake_fail("cuptiSubscribe", 39, 0);
  setenv("NSYS_PROFILING_SESSION_ID", "7", 1);
  const auto report = run();
  unsetenv("NSYS_PROFILING_SESSION_ID");
  expect_wall_times_alone(report);
  EXPECT_EQ(notes_with(report, "another profiler is at work"), 1) << all_notes(report);
  fake_fail("cuptiSubscribe", 0, 0);
  expect_times(run());
}

// As torch.profiler is after its first use, up to torch 2.14.
TEST_F(WhatGoesWrong, ASubscriberThatDoesNothing) {
  fake_fail("cuptiSubscribe", 39, 0);
  const auto report = run();
  expect_times(report);
  EXPECT_EQ(report.row("").dram_bytes, 3'000'000) << all_notes(report);
  EXPECT_EQ(notes_with(report, "another client holds CUPTI's callbacks"), 1) << all_notes(report);
}

TEST_F(WhatGoesWrong, TorchsProfilerThatBeginsWithinABlock) {
  using namespace torch::autograd::profiler;
  const KernelsOfOps bound({{"aten::relu", {"simulated_relu", kRelu, 3e6}}});
  const auto report = RooflineProfiler(model_, on_the_gpu()).run([&] {
    model_->forward(torch::rand({4}));
    enableProfilerLegacy(ProfilerConfig(ProfilerState::CPU));
  });
  disableProfilerLegacy();
  EXPECT_EQ(notes_with(report, "torch.profiler began while this was profiled"), 1) << all_notes(report);
}

TEST_F(WhatGoesWrong, TracingThatCannotBegin) {
  fake_fail("cuptiActivityEnable", 27, 3);
  const auto report = run();
  expect_wall_times_alone(report);
  EXPECT_EQ(notes_with(report, "no kernel times"), 1) << all_notes(report);
  fake_fail("cuptiActivityEnable", 0, 0);
  expect_times(run());
}

TEST_F(WhatGoesWrong, ADeviceThatIsLostBetweenRuns) {
  fake_fail("cuCtxSynchronize", 999, 12);
  const auto report = run();
  EXPECT_EQ(notes_with(report, "the device is lost"), 1) << all_notes(report);
  EXPECT_LT(report.run_times_ns().size(), 3U);
  expect_times(report);
}

TEST_F(WhatGoesWrong, NoPermissionForCounters) {
  fake_set("permitted", 0);
  const auto report = run();
  expect_times(report);
  EXPECT_FALSE(report.row("").dram_bytes.has_value());
  EXPECT_EQ(notes_with(report, "no permission"), 1) << all_notes(report);
  fake_set("permitted", 1);
  EXPECT_EQ(run().row("").dram_bytes, 3'000'000);
}

TEST_F(WhatGoesWrong, NoKernelAtAll) {
  const auto report = RooflineProfiler(model_, on_the_gpu(Counters::automatic)).run(torch::rand({4}));
  EXPECT_EQ(notes_with(report, "the device ran no kernel"), 1) << all_notes(report);
  EXPECT_FALSE(report.row("").dram_bytes.has_value());
  EXPECT_EQ(report.row("").kernel_count, 0);
}

TEST_F(WhatGoesWrong, AKernelThatMustNotRunAlone) {
  const KernelsOfOps bound({{"aten::relu", {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", kRelu, 3e6}}});
  const auto report = RooflineProfiler(model_, on_the_gpu(Counters::automatic)).run(torch::rand({4}));
  expect_times(report);
  EXPECT_FALSE(report.row("").dram_bytes.has_value());
  EXPECT_EQ(notes_with(report, "no counters: "), 1) << all_notes(report);
  EXPECT_EQ(fake_calls("cuptiRangeProfiler*"), 0);
}

TEST_F(WhatGoesWrong, TorchsProfilerIsActive) {
  using namespace torch::autograd::profiler;
  enableProfilerLegacy(ProfilerConfig(ProfilerState::CPU));
  const auto report = run();
  disableProfilerLegacy();
  expect_wall_times_alone(report);
  EXPECT_EQ(notes_with(report, "torch.profiler is active"), 1) << all_notes(report);
  expect_times(run());
}

}  // namespace
}  // namespace roofprof
