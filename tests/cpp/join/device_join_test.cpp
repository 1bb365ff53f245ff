// Records of a device joined to modules, phases and ops, by hand.

#include "join/device_join.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "support/device_builder.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::RunBuilder;
using testing::TracedRun;
using testing::work_of;

const KernelBucket& bucket_named(const Profile& data, const std::string& name) {
  for (const auto& bucket : data.device->kernels) {
    if (bucket.name == name) return bucket;
  }
  throw std::out_of_range("no kernel " + name);
}

TEST(DeviceJoin, TheTimeOfAModuleIsTheSumOfItsKernels) {
  DeviceProfileBuilder builder;
  const auto block = builder.module("block", "Sequential");
  const auto conv = builder.module("block.conv", "Conv2d", block);
  const auto conv_op = builder.op_index("aten::conv2d", conv, work_of(2'000, 100));
  const auto add_op = builder.op_index("aten::add", block, work_of(10, 100));
  builder.clock(kModel, {70'000});
  builder.clock(block, {20'000});
  builder.clock(conv, {9'000});
  RunBuilder run;
  const auto in_conv = run.owner(conv, "aten::conv2d", conv_op);
  const auto in_block = run.owner(block, "aten::add", add_op);
  run.kernel("gemm", in_conv, 100, 400);       // 300
  run.kernel("transpose", in_conv, 400, 450);  // 50
  run.kernel("add", in_block, 450, 470);       // 20
  const testing::Derived report = builder.derived_of({run.run});

  EXPECT_EQ(report.row("block.conv").time_ns, 350);
  EXPECT_EQ(report.row("block").self.time_ns, 20);
  EXPECT_EQ(report.total().time_ns, 370);
  // The clock's figures stand beside it.
  EXPECT_EQ(report.row("block").host_time_ns, 29'000);
  EXPECT_EQ(report.row("").host_time_ns, 99'000);
  EXPECT_EQ(report.row("").wall_ns, 100'000);
  EXPECT_EQ(report.row("block").wall_ns, std::nullopt);
  // Ops have the time of their own kernels.
  EXPECT_EQ(report.data().counts.ops[static_cast<std::size_t>(conv_op)].time_ns, 350);
  EXPECT_EQ(report.row("block").op_time_ns, 370);
  EXPECT_EQ(report.row("block.conv").kernel_count, 2);
  EXPECT_EQ(report.row("").kernel_count, 3);
}

TEST(DeviceJoin, KernelsOfOnePlaceAreOneBucketWithExactStatistics) {
  DeviceProfileBuilder builder;
  const auto fc = builder.module("fc", "Linear");
  RunBuilder run;
  const auto place = run.owner(fc, "aten::linear");
  std::int64_t start = 0;
  for (const std::int64_t ns : {10, 20, 30, 80}) {
    run.kernel("gemm", place, start, start + ns);
    start += 1'000;
  }
  run.kernel("gemm", place, start, start + 7).grid = {9, 1, 1};  // another grid: another bucket
  builder.derived_of({run.run});

  ASSERT_EQ(builder.data.device->kernels.size(), 2);
  const KernelBucket& gemm = builder.data.device->kernels[0];
  EXPECT_EQ(gemm.instances, 4);
  EXPECT_EQ(gemm.total_ns, 140);
  EXPECT_EQ(gemm.min_ns, 10);
  EXPECT_EQ(gemm.max_ns, 80);
  EXPECT_EQ(gemm.median_ns, 25);
  // Mean 35: (625 + 225 + 25 + 2025) / 3.
  EXPECT_DOUBLE_EQ(gemm.stddev_ns, std::sqrt(2'900.0 / 3));
  EXPECT_EQ(builder.data.device->kernels[1].stddev_ns, 0);
}

TEST(DeviceJoin, PhasesAndModulesThatOnlyTheDeviceSawGetTimes) {
  DeviceProfileBuilder builder;
  const auto fc = builder.module("fc", "Linear");
  RunBuilder run;
  run.kernel("forward", run.owner(fc, "aten::linear"), 0, 100);
  run.kernel("wgrad", run.owner(fc, "aten::mm", -1, Phase::backward), 100, 160);
  run.kernel("step", run.owner(kOptimizer, "aten::add_", -1, Phase::optimizer), 165, 172);
  const testing::Derived report = builder.derived_of({run.run});
  EXPECT_EQ(report.row("fc").time_ns, 160);
  EXPECT_EQ(report.row("(optimizer)").time_ns, 7);
  std::map<Phase, std::int64_t> by_phase;
  for (const auto& time : builder.data.times->modules) {
    if (time.owner.module == fc) by_phase[time.owner.phase] = time.self_ns.at(0);
  }
  EXPECT_EQ(by_phase, (std::map<Phase, std::int64_t>{{Phase::forward, 100}, {Phase::backward, 60}}));
}

TEST(DeviceJoin, WhatNoScopeLaunchedStandsOutsideAndIsCounted) {
  DeviceProfileBuilder builder;
  const auto fc = builder.module("fc", "Linear");
  RunBuilder run;
  run.kernel("known", run.owner(fc), 0, 10);
  run.kernel("stray", kNoLaunch, 10, 13);
  run.kernel("stray", 77, 20, 24);  // an id that the run does not know
  const testing::Derived report = builder.derived_of({run.run});
  EXPECT_EQ(report.row("(outside)").time_ns, 7);
  EXPECT_EQ(report.coverage().unattributed_kernels, 2);
  const KernelBucket& stray = bucket_named(builder.data, "stray");
  EXPECT_FALSE(stray.attributed);
  EXPECT_EQ(stray.owner.module, kOutside);
  EXPECT_EQ(stray.instances, 2);
  EXPECT_EQ(report.total().time_ns, 17);
}

TEST(DeviceJoin, RowsComeFromTheChosenRunAndSpreadsFromAll) {
  DeviceProfileBuilder builder({50'000, 60'000, 90'000});
  const auto fc = builder.module("fc", "Linear");
  builder.clock(fc, {1'000, 2'000, 3'000});
  builder.data.run.runs.chosen = 1;
  std::vector<TracedRun> runs;
  for (const std::int64_t ns : {100, 110, 130}) {
    RunBuilder run;
    run.kernel("gemm", run.owner(fc, "aten::linear"), 0, ns);
    runs.push_back(run.run);
  }
  const testing::Derived report = builder.derived_of(runs);
  EXPECT_EQ(report.row("fc").time_ns, 110);
  EXPECT_DOUBLE_EQ(report.row("fc").time_spread.value_or(0), 30.0 / 110);
  EXPECT_EQ(report.row("fc").host_time_ns, 2'000);
  EXPECT_EQ(report.kernels().at(0).total_ns, 110);
}

TEST(DeviceJoin, WhereShapesAreNotKnownTheTimeIsTheModulesAndTheOpsTogether) {
  DeviceProfileBuilder builder;
  const auto attention = builder.module("attention", "Attention");
  const auto first = builder.op_index("aten::bmm", attention, work_of(100, 10));
  builder.data.counts.ops.back().shapes = testing::shapes("8x8");
  builder.op_index("aten::bmm", attention, work_of(400, 20));
  builder.data.counts.ops.back().shapes = testing::shapes("16x16");
  builder.op_index("aten::softmax", attention, work_of(4, 20));
  RunBuilder run;
  run.kernel("small", run.owner(attention, "aten::bmm", first), 0, 10);
  run.kernel("either", run.owner(attention, "aten::bmm", -1), 10, 40);
  const testing::Derived report = builder.derived_of({run.run});
  EXPECT_EQ(report.row("attention").time_ns, 40);
  EXPECT_EQ(report.row("attention").op_time_ns, 40);
  EXPECT_EQ(builder.data.counts.ops[0].time_ns, std::nullopt);
  EXPECT_EQ(builder.data.counts.ops[1].time_ns, std::nullopt);
  EXPECT_EQ(builder.data.counts.ops[2].time_ns, 0);  // it launched nothing

  const auto group = [&](std::vector<std::string> keys) { return report.group(keys); };
  EXPECT_EQ(group({"op"})[0].keys, std::vector<std::string>{"aten::bmm"});
  EXPECT_EQ(group({"op"})[0].time_ns, 40);
  EXPECT_EQ(group({"op"})[0].kernel_count, 2);
  EXPECT_EQ(group({"dtype"})[0].time_ns, 40);  // both are fp32
  EXPECT_EQ(group({"shapes"})[0].time_ns, std::nullopt);
  EXPECT_EQ(group({"shapes"})[0].kernel_count, std::nullopt);
}

TEST(DeviceJoin, KernelsOfGraphsAreDistinguishedByNode) {
  DeviceProfileBuilder builder;
  RunBuilder run;
  const auto place = run.owner(kModel, "graph");
  for (std::uint64_t node = 1; node <= 3; ++node) {
    auto& kernel = run.kernel(node == 2 ? "b" : "a", place, 10 * static_cast<std::int64_t>(node),
                              10 * static_cast<std::int64_t>(node) + 4);
    kernel.correlation = 1;
    kernel.graph_node = node;
  }
  run.kernel("a", place, 100, 104);  // the same kernel, launched by itself
  builder.derived_of({run.run});
  ASSERT_EQ(builder.data.device->kernels.size(), 3);
  EXPECT_TRUE(builder.data.device->kernels[0].in_graph);
  EXPECT_EQ(builder.data.device->kernels[0].instances, 2);
  EXPECT_EQ(builder.data.device->kernels[1].name, "b");
  EXPECT_FALSE(builder.data.device->kernels[2].in_graph);
}

TEST(DeviceJoin, CopiesAndFillsAreNoKernelsButTakeTime) {
  DeviceProfileBuilder builder;
  const auto stem = builder.module("stem", "Stem");
  RunBuilder run;
  const auto place = run.owner(stem, "aten::copy_");
  run.copy(Memory::pageable, Memory::device, place, 0, 50, 4'096);
  run.copy(Memory::device, Memory::device, place, 50, 60, 512).to_device = 1;
  run.fill(place, 60, 61, 128);
  const testing::Derived report = builder.derived_of({run.run});
  EXPECT_EQ(report.row("stem").time_ns, 61);
  EXPECT_EQ(report.row("stem").kernel_count, 0);
  EXPECT_EQ(bucket_named(builder.data, "[memcpy pageable to device]").bytes, 4'096);
  EXPECT_EQ(bucket_named(builder.data, "[memcpy device 0 to device 1]").total_ns, 10);
  EXPECT_EQ(bucket_named(builder.data, "[memset]").kind, KernelKind::fill);
  EXPECT_EQ(report.kernels()[0].copied, "pageable to device");
}

TEST(DeviceJoin, LostRecordsAreReportedAndLowerLimitsReportedToBeSuch) {
  DeviceProfileBuilder builder;
  RunBuilder run;
  const auto place = run.owner(kModel);
  run.kernel("whole", place, 0, 10);
  run.kernel("backwards", place, 30, 20);
  run.run.trace.dropped = 5;
  run.run.trace.incomplete = 2;
  run.run.trace.notes = {make_note("kernels-missing", "a buffer was full")};
  const testing::Derived report = builder.derived_of({run.run});
  EXPECT_EQ(report.coverage().dropped_records, 8);
  EXPECT_EQ(report.total().time_ns, 10);
  EXPECT_EQ(report.coverage().notes.at(0).text,
            "of the device's records 5 were lost and 3 had no start or end: kernels, their times and busy are lower "
            "limits");
  EXPECT_EQ(report.coverage().notes.at(1).text, "a buffer was full");
}

TEST(DeviceJoin, RefusesRunsThatDoNotFit) {
  const auto message = [](DeviceProfileBuilder builder, const std::vector<TracedRun>& runs) -> std::string {
    try {
      with_runs(std::move(builder.data), runs);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(DeviceProfileBuilder({1, 2}), {TracedRun{}}),
            "1 runs were traced on the device and 2 were timed: they must be the same");
  RunBuilder unknown_op;
  unknown_op.owner(kModel, "aten::mm", 0);
  EXPECT_EQ(message(DeviceProfileBuilder(), {unknown_op.run}),
            "a launch's place names op 0, which the profile has not");
  RunBuilder unknown_name;
  unknown_name.kernel("a", kNoLaunch, 0, 1).name = 9;
  EXPECT_EQ(message(DeviceProfileBuilder(), {unknown_name.run}),
            "a kernel's record has name 9, which its trace has not");
}

}  // namespace
}  // namespace roofprof
