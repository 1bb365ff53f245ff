// Busy and idle, drawn by hand.

#include <gtest/gtest.h>

#include "support/device_builder.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::RunBuilder;
using testing::work_of;

TEST(DeviceTimeline, BusyIsTheUnionOfStreamsAndTimeTheirSum) {
  DeviceProfileBuilder builder;
  const auto a = builder.module("a", "A");
  const auto b = builder.module("b", "B");
  RunBuilder run;
  //  a: 0----100      150-200
  //  b:    50---------150    180-----250
  const auto in_a = run.owner(a);
  const auto in_b = run.owner(b);
  run.kernel("x", in_a, 1'000, 1'100).stream = 7;
  run.kernel("y", in_b, 1'050, 1'150).stream = 8;
  run.kernel("x", in_a, 1'150, 1'200).stream = 7;
  run.kernel("y", in_b, 1'180, 1'250).stream = 8;
  const testing::Derived report = builder.derived_of({run.run});
  EXPECT_EQ(report.row("b").time_ns, 170);
  EXPECT_EQ(report.row("b").busy_ns, 170);
  EXPECT_EQ(report.row("").time_ns, 320);
  EXPECT_EQ(report.row("").self.busy_ns, 0);
  EXPECT_EQ(report.total().busy_ns, 250);
  EXPECT_EQ(report.total().idle_ns, 0);
  EXPECT_DOUBLE_EQ(report.total().utilization.value_or(0), 100);
}

TEST(DeviceTimeline, AGapIsChargedToTheLaunchThatEndedIt) {
  DeviceProfileBuilder builder;
  const auto parent = builder.module("p", "P");
  const auto slow = builder.module("p.slow", "Slow", parent);
  const auto fast = builder.module("p.fast", "Fast", parent);
  RunBuilder run;
  const auto in_slow = run.owner(slow);
  const auto in_fast = run.owner(fast);
  run.kernel("x", in_fast, 130, 150);  // 30 after the trace's start: nobody's
  run.kernel("x", in_slow, 200, 210);  // 50
  run.kernel("x", in_slow, 205, 240);  // none
  run.kernel("x", in_fast, 240, 250);  // none
  run.run.trace.start_ns = 100;
  run.run.trace.end_ns = 270;  // 20 after the last: nobody's
  const testing::Derived report = builder.derived_of({run.run});
  EXPECT_EQ(report.row("p.fast").idle_ns, 0);
  EXPECT_EQ(report.row("p.slow").idle_ns, 50);
  EXPECT_EQ(report.row("p").self.idle_ns, 0);
  EXPECT_EQ(report.row("").idle_ns, 50);
  EXPECT_EQ(report.row("").idle_before_ns, std::nullopt);
  EXPECT_EQ(report.total().idle_before_ns, 30);
  EXPECT_EQ(report.total().idle_between_ns, 50);
  EXPECT_EQ(report.total().idle_after_ns, 20);
  EXPECT_EQ(report.total().idle_ns, 30 + 50 + 20);
  EXPECT_DOUBLE_EQ(report.row("p.slow").utilization.value_or(0), 100.0 * 40 / 90);
}

// Nothing of what ran meanwhile is a row's, and the device was not idle.
TEST(DeviceTimeline, WorkOfOthersIsNoIdleTime) {
  DeviceProfileBuilder builder;
  const auto a = builder.module("a", "A");
  RunBuilder run;
  const auto place = run.owner(a);
  run.kernel("x", place, 130, 150);
  run.kernel("x", place, 200, 240);
  run.run.trace.start_ns = 100;
  run.run.trace.end_ns = 270;
  const auto device = run.run.trace.records.front().device;
  run.run.trace.others = {{device, 90, 110},      // until 110: 20 of the 30 before the first launch are left
                          {device, 160, 180},     // of the 50 between the two 150-160 and 185-200 are left
                          {device, 170, 185},     // beside the one before
                          {device, 230, 250},     // until 250: 20 after the last launch are left
                          {device + 1, 0, 300}};  // on another device
  const testing::Derived report = builder.derived_of({run.run});
  EXPECT_EQ(report.row("a").idle_ns, 25);
  EXPECT_EQ(report.total().idle_before_ns, 20);
  EXPECT_EQ(report.total().idle_between_ns, 25);
  EXPECT_EQ(report.total().idle_after_ns, 20);
  EXPECT_EQ(report.total().busy_ns, 60);
}

// Ten kernels of 40 ns, 60 ns apart, and a long one of another module.
Profile mostly_waiting() {
  DeviceProfileBuilder builder;
  const auto tiny = builder.module("tiny", "Tiny");
  const auto large = builder.module("large", "Large");
  const auto tiny_op = builder.op_index("aten::add", tiny, work_of(0, 100));
  const auto large_op = builder.op_index("aten::mm", large, work_of(8'000'000, 1'000));
  RunBuilder run;
  const auto in_tiny = run.owner(tiny, "aten::add", tiny_op);
  run.run.trace.start_ns = 1'000;
  for (std::int64_t i = 0; i < 10; ++i)
    run.kernel("add", in_tiny, 1'060 + 100 * i, 1'100 + 100 * i);  // 60 wait, the first time nobody's; 40 run
  run.kernel("gemm", run.owner(large, "aten::mm", large_op), 2'100, 12'000);
  return testing::with_runs(std::move(builder.data), {run.run});
}

TEST(DeviceTimeline, ADeviceThatMostlyWaitsIsOverhead) {
  auto data = mostly_waiting();
  data.device.make().timeline.idle_basis = IdleBasis::bare;
  const testing::Derived report(std::move(data));
  EXPECT_EQ(to_string(report.row("tiny").bound), "overhead");
  EXPECT_DOUBLE_EQ(report.row("tiny").utilization.value_or(0), 100.0 * 400 / (400 + 9 * 60));
  EXPECT_EQ(to_string(report.row("").bound), "compute fp32");
  EXPECT_DOUBLE_EQ(report.total().utilization.value_or(0), 100.0 * 10'300 / 11'000);  // of the whole window
}

// 10 launches may have waited 19 us each for whoever recorded them, and 540 ns are between them.
TEST(DeviceTimeline, WhatObservingMayHaveCausedIsNoOverhead) {
  auto data = mostly_waiting();
  ASSERT_EQ(data.device->timeline.idle_basis, IdleBasis::seen);
  EXPECT_NE(to_string(testing::Derived(data).row("tiny").bound), "overhead");
  // Three times 4 ns for each of 10 launches: 540 - 120 > 400. With 5 ns each: 540 - 150 < 400.
  data.device.make().timeline.idle_basis = IdleBasis::observing;
  data.device.make().timeline.observing_ns = 4;
  EXPECT_EQ(to_string(testing::Derived(data).row("tiny").bound), "overhead");
  data.device.make().timeline.observing_ns = 5;
  EXPECT_NE(to_string(testing::Derived(data).row("tiny").bound), "overhead");
}

TEST(DeviceTimeline, WhatALaunchCostsIsTakenOffTheGapsThatItMade) {
  DeviceProfileBuilder builder;
  const auto a = builder.module("a", "A");
  const auto b = builder.module("b", "B");
  RunBuilder run;
  const auto in_a = run.owner(a);
  const auto in_b = run.owner(b);
  run.run.trace.start_ns = 1'000;
  run.kernel("x", in_a, 1'100, 1'200);  // 100 before, of which 30 are its launch's
  run.kernel("x", in_a, 1'250, 1'300);  // 50: one launch
  run.kernel("x", in_b, 1'300, 1'400);  // no gap
  run.kernel("x", in_b, 1'480, 1'500);  // 80: two launches since the last gap
  run.kernel("x", in_a, 1'510, 1'520);  // 10 are all the launch's
  run.kernel("x", in_a, 1'520, 1'530);
  run.copy(Memory::device, Memory::pageable, in_a, 1'530, 1'600, 8);
  run.kernel("x", in_b, 1'700, 1'710);  // 100: the host waited for the copy, only this launch came after
  run.run.trace.end_ns = 1'720;
  builder.data = with_device(std::move(builder.data), {&run.run.trace}, run.run.owners, {}, 30);
  EXPECT_EQ(builder.data.device->timeline.idle_basis, IdleBasis::observing);
  const testing::Derived report = builder.derived();
  EXPECT_EQ(report.row("a").idle_ns, 50 - 30 + 0);
  EXPECT_EQ(report.row("b").idle_ns, 80 - 2 * 30 + 100 - 30);
  EXPECT_EQ(report.total().idle_before_ns, 100 - 30);
  EXPECT_EQ(report.total().idle_after_ns, 10);
}

TEST(DeviceTimeline, ATraceIsHeldToItsPass) {
  DeviceTrace trace;
  trace.start_ns = 5'000;
  trace.end_ns = 5'900;
  Pass pass;
  pass.trace_start_ns = -150;  // it began 150 ns before the pass
  pass.wall_ns = 600;
  trace = within_pass(std::move(trace), pass);
  EXPECT_EQ(trace.start_ns, 5'150);
  EXPECT_EQ(trace.end_ns, 5'750);
  EXPECT_EQ(pass.trace_start_ns, 0);
  EXPECT_EQ(within_pass({}, pass).end_ns, 0) << "when it began is not known";
}

TEST(DeviceTimeline, ARunWithoutLaunchesHasNoUtilization) {
  DeviceProfileBuilder builder;
  builder.clock(kModel, {90'000});
  const testing::Derived report = builder.derived_of({testing::TracedRun{}});
  EXPECT_EQ(report.total().time_ns, 0);
  EXPECT_EQ(report.total().kernel_count, 0);
  EXPECT_EQ(report.total().utilization, std::nullopt);
  EXPECT_EQ(report.total().host_time_ns, 90'000);
  EXPECT_TRUE(report.kernels().empty());
}

}  // namespace
}  // namespace roofprof
