// One total, however ops are grouped: what other work hid of collectives is in neither its time nor its lower bound.

#include <gtest/gtest.h>

#include "join/collectives.h"
#include "support/device_builder.h"

namespace roofprof {
namespace {

using testing::Derived;
using testing::DeviceProfileBuilder;
using testing::RunBuilder;
using testing::work_of;

// Two all-reduces of 400 bytes beside products:
// nccl: 100-----------200      300---340
// gemm:      120--150    180--------310
// Of the 140 ns of nccl's kernels 60 are hidden; products take 160 and need 120 by their roof.
struct Overlapping : DeviceProfileBuilder {
  ModuleId layer;
  RunBuilder run;

  Overlapping() {
    layer = module("layer", "Linear");
    const auto mm = op_index("aten::mm", layer, work_of(120'000, 100));
    const auto reduce = op_index("c10d::allreduce_", kOutside, work_of(0, 800, 800), 2);
    data.counts.ops.back().owner.phase = Phase::backward;
    data.counts.ops.back().dtype = DType::bf16;
    data.comms.make().groups = {{"0", "nccl", 2}};
    data.comms.make().collectives = {{.bucket = reduce, .group = 0, .calls = 2}};
    const auto of_reduce = run.owner(kOutside, "c10d::allreduce_", reduce, Phase::backward);
    const auto of_mm = run.owner(layer, "aten::mm", mm);
    run.kernel("ncclDevKernel_AllReduce", of_reduce, 100, 200);
    run.kernel("gemm", of_mm, 120, 150);
    run.kernel("gemm", of_mm, 180, 310);
    run.kernel("ncclDevKernel_AllReduce", of_reduce, 300, 340);
    data = testing::with_runs(std::move(data), {run.run});
    data.run.mode = Mode::block;
    data.comms = with_kernels_of_collectives(*data.comms, data.counts.ops, launches_of(run.run.trace, run.run.owners));
  }
};

const std::vector<std::vector<std::string>> kGroupings = {{},        {"phase"}, {"op"},     {"module"},
                                                          {"scope"}, {"dtype"}, {"shapes"}, {"module", "op", "phase"}};

void expect_same_total(const Derived& report) {
  const auto& total = report.total();
  for (const auto& keys : kGroupings) {
    std::int64_t time_ns = 0, lower_ns = 0, wasted_ns = 0;
    for (const auto& row : report.group(keys)) {
      time_ns += row.time_ns.value_or(0);
      lower_ns += row.lower_bound_time_ns.value_or(0);
      wasted_ns += row.time_ns.value_or(0) - row.lower_bound_time_ns.value_or(0);
    }
    EXPECT_EQ(time_ns, total.time_ns);
    EXPECT_EQ(lower_ns, total.lower_bound_time_ns);
    EXPECT_EQ(wasted_ns, total.wasted_time_ns);
  }
  const auto all = report.group({}).at(0);
  EXPECT_EQ(all.percent_of_roof, total.percent_of_roof);
  EXPECT_EQ(to_string(all.bound), to_string(total.bound));
  std::int64_t of_kernels_ns = 0;
  for (const auto& kernel : report.kernels()) of_kernels_ns += kernel.total_ns;
  EXPECT_EQ(of_kernels_ns, *total.time_ns + total.hidden_communication_ns.value_or(0));
}

TEST(OneTotal, HiddenCommunicationIsInNeitherTimeNorLowerBound) {
  Overlapping profile;
  const auto report = profile.derived();
  const auto& total = report.total();
  EXPECT_EQ(total.time_ns, 160 + 80);
  EXPECT_EQ(total.op_time_ns, 160 + 80);
  EXPECT_EQ(total.hidden_communication_ns, 60);
  EXPECT_EQ(total.exposed_communication_ns, 80);
  EXPECT_EQ(total.communication_ns, 140);
  EXPECT_EQ(total.lower_bound_time_ns, 120);
  EXPECT_DOUBLE_EQ(total.percent_of_roof.value_or(0), 50);
  EXPECT_EQ(to_string(total.bound), "compute fp32");
  EXPECT_EQ(report.row("(outside)").time_ns, 80);
  EXPECT_EQ(report.row("(outside)").hidden_communication_ns, 60);
  EXPECT_EQ(to_string(report.row("(outside)").bound), "network nccl");
  EXPECT_EQ(report.row("layer").time_ns, 160);
  EXPECT_FALSE(report.row("layer").hidden_communication_ns);
  expect_same_total(report);
  // The network needs 2 x 10 ns and 800 bytes at 1e11 a second: 28 of the exposed 80 ns.
  profile.data.roofs.network = {{"all_reduce", "nccl", 2, 10, 1e11, {}}};
  const auto with_network = profile.derived();
  EXPECT_EQ(with_network.total().lower_bound_time_ns, 120 + 28);
  expect_same_total(with_network);
}

// By the host's clock collectives last longer than the copies that a device does for them, which nothing hid.
TEST(OneTotal, WhatTheHostTimedTakesNothingOffADevicesTime) {
  DeviceProfileBuilder builder;
  const auto reduce = builder.op_index("c10d::allreduce_", kOutside, work_of(0, 800, 800));
  builder.data.comms.make().groups = {{"0", "gloo", 2}};
  builder.data.comms.make().collectives = {{.bucket = reduce,
                                            .group = 0,
                                            .calls = 1,
                                            .timed_calls = 1,
                                            .time_ns = 5'000,
                                            .exposed_ns = 0,
                                            .exposed_known = true}};
  RunBuilder run;
  run.copy(Memory::device, Memory::pinned, run.owner(kOutside, "c10d::allreduce_", reduce), 0, 700, 800);
  builder.data.run.mode = Mode::block;
  const auto report = builder.derived_of({run.run});
  EXPECT_EQ(report.total().time_ns, 700);
}

// The work of 21 ms of collectives that hide behind each other's kernels has no bound by 21 us of products.
TEST(OneTotal, CollectivesThatOtherWorkHidHaveNoBound) {
  DeviceProfileBuilder builder;
  const auto reduce = builder.op_index("c10d::allreduce_", kOutside, work_of(0, 800, 800));
  const auto other = builder.op_index("aten::sort", kModel, work_of(0, 0));
  builder.data.counts.ops.back().costed = false;
  builder.data.comms.make().groups = {{"0", "nccl", 2}};
  builder.data.comms.make().collectives = {{.bucket = reduce, .group = 0, .calls = 1}};
  RunBuilder run;
  run.kernel("ncclDevKernel_AllReduce", run.owner(kOutside, "c10d::allreduce_", reduce), 0, 21'000);
  run.kernel("sort", run.owner(kModel, "aten::sort", other), 0, 21'000);
  builder.data = testing::with_runs(std::move(builder.data), {run.run});
  builder.data.run.mode = Mode::block;
  builder.data.comms = with_kernels_of_collectives(*builder.data.comms, builder.data.counts.ops,
                                                   launches_of(run.run.trace, run.run.owners));
  const auto report = builder.derived();
  EXPECT_EQ(report.row("(outside)").time_ns, 0);
  EXPECT_EQ(report.row("(outside)").hidden_communication_ns, 21'000);
  EXPECT_FALSE(report.row("(outside)").percent_of_roof);
  EXPECT_EQ(report.total().time_ns, 21'000);
  EXPECT_EQ(report.total().bound.kind, BoundKind::unknown);
  expect_same_total(report);
}

}  // namespace
}  // namespace roofprof
