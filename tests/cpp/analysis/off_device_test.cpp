// Ops that launched nothing on the device whose roofs a report has.

#include <gtest/gtest.h>

#include "analysis/language_model.h"
#include "core/note_codes.h"
#include "core/off_device.h"
#include "support/device_builder.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::dram_counters;
using testing::RunBuilder;
using testing::work_of;

// On the device 2,000,000 FLOPs and 1,000,000 bytes from its L2: 2,000 ns by the peak, in 4,000 ns. On the host, in a
// module of its own and beside the other, 9 times as much of both.
struct HostBesideDevice : DeviceProfileBuilder {
  ModuleId net = module("net", "Net");
  ModuleId loader = module("loader", "Loader");
  std::int64_t linear = op_index("aten::linear", net, work_of(2'000'000, 600'000, 400'000));
  std::int64_t div = op_index("aten::div", loader, work_of(9'000'000, 6'000'000, 3'000'000));
  std::int64_t add = op_index("aten::add", net, work_of(9'000'000, 6'000'000, 3'000'000));
  RunBuilder run;

  HostBesideDevice() { run.kernel("gemm", run.owner(net, "aten::linear", linear), 0, 4'000); }
};

TEST(OffDevice, HasNoneOfTheDevicesRoofs) {
  HostBesideDevice builder;
  const testing::Derived report = builder.derived_of({builder.run.run});
  const auto& host = report.row("loader");
  EXPECT_EQ(host.flops, 9'000'000);
  EXPECT_EQ(host.bytes, 9'000'000);
  EXPECT_EQ(host.time_ns, 0);
  EXPECT_FALSE(host.lower_bound_time_ns || host.compute_time_ns || host.memory_time_ns || host.wasted_time_ns);
  EXPECT_FALSE(host.percent_of_roof || host.attainable || host.achieved_flops || host.achieved_bandwidth);
  EXPECT_EQ(to_string(host.bound), "unknown");
  EXPECT_DOUBLE_EQ(host.intensity.value_or(0), 1);
  const auto* note = find_note(report.coverage().notes, "off-device");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->where, (std::vector<std::string>{"aten::add", "aten::div"}));
  const auto utilization = flops_utilization(report.data(), report.total());
  ASSERT_TRUE(utilization);
  EXPECT_DOUBLE_EQ(utilization->mfu, 100 * 2e-6 / (static_cast<double>(utilization->time_ns) * 1e-9));
}

// The device's own work is 2 FLOPs for each byte, and DRAM and peak bound it as if nothing else had run.
TEST(OffDevice, IsInNoFigureOfTheDevicesTime) {
  HostBesideDevice builder;
  const testing::Derived report = builder.derived_of({builder.run.run}, dram_counters({500'000}));
  const auto groups = report.group({"phase"});
  for (const Figures* row : {static_cast<const Figures*>(&report.row("net")), static_cast<const Figures*>(&groups[0]),
                             static_cast<const Figures*>(&report.total())}) {
    EXPECT_EQ(row->time_ns, 4'000);
    EXPECT_EQ(row->wasted_time_ns.value_or(0), 4'000 - row->lower_bound_time_ns.value_or(0));
    EXPECT_EQ(row->compute_time_ns, 2'000);
    EXPECT_DOUBLE_EQ(row->achieved_flops.value_or(0), 2'000'000 / 4'000e-9);
    EXPECT_DOUBLE_EQ(row->achieved_bandwidth.value_or(0), 1'000'000 / 4'000e-9);
    EXPECT_DOUBLE_EQ(row->dram_bytes_ratio.value_or(0), 0.5);
    EXPECT_DOUBLE_EQ(row->dram_intensity.value_or(0), 4);
  }
  EXPECT_EQ(report.total().flops, 20'000'000);
}

// A missing peak of what the host computed leaves the device's figures alone.
TEST(OffDevice, NeedsNoRoof) {
  HostBesideDevice builder;
  builder.data.counts.ops[1].work = work_of(1'000, 1'000, 0, DType::fp64);
  const testing::Derived report = builder.derived_of({builder.run.run});
  EXPECT_EQ(report.total().lower_bound_time_ns, 2'000);
  EXPECT_EQ(find_note(report.coverage().notes, "no-roof"), nullptr);
}

TEST(OffDevice, IsNoneWhoseLaunchesAreNotDistinguished) {
  HostBesideDevice builder;
  builder.run.kernel("add", builder.run.owner(builder.net, "aten::add"), 5'000, 6'000);
  builder.derived_of({builder.run.run});
  EXPECT_FALSE(builder.data.counts.ops[2].off_device);
  EXPECT_TRUE(builder.data.counts.ops[1].off_device);
}

TEST(OffDevice, IsNoneInCompiledCode) {
  HostBesideDevice builder;
  builder.data.tree.modules[static_cast<std::size_t>(builder.loader)].compiled_region = builder.net;
  const auto region = builder.op_index(std::string(kCompiledRegion), builder.net, {});
  builder.run.kernel("triton", builder.run.owner(builder.net, std::string(kCompiledRegion), region), 5'000, 6'000);
  builder.derived_of({builder.run.run});
  EXPECT_FALSE(builder.data.counts.ops[1].off_device);
  EXPECT_FALSE(builder.data.counts.ops[2].off_device);
}

TEST(OffDevice, IsNoneWhereNoLaunchWasRecorded) {
  HostBesideDevice builder;
  builder.derived_of({testing::TracedRun()});
  for (const auto& op : builder.data.counts.ops) EXPECT_FALSE(op.off_device) << op.op;
}

}  // namespace
}  // namespace roofprof
