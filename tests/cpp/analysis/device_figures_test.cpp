// Roofs and bounds of work on a device, by hand.

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "analysis/kernel_rows.h"
#include "support/device_builder.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::dram_counters;
using testing::RunBuilder;
using testing::work_of;

// A link at 1e10 B/s: 10 bytes take 1 ns. Memory is 10 times as fast.
constexpr double kLinkBandwidth = 1e10;

void add_link(Profile& data) {
  data.roofs.memory.push_back({std::string(kHostLink), kLinkBandwidth, 0, testing::given_roof()});
}

TEST(HostLink, CopiesAreHeldAgainstItAndNothingElseIs) {
  DeviceProfileBuilder builder;
  add_link(builder.data);
  const auto stem = builder.module("stem", "Stem");
  const auto copy_op = builder.op_index("aten::_to_copy", stem, work_of(0, 4'000'000, 4'000'000));
  const auto add_op = builder.op_index("aten::add", stem, work_of(0, 8'000'000));
  RunBuilder run;
  run.copy(Memory::pageable, Memory::device, run.owner(stem, "aten::_to_copy", copy_op), 0, 500'000, 4'000'000);
  run.kernel("add", run.owner(stem, "aten::add", add_op), 500'000, 600'000);
  const testing::Derived report = builder.derived_of({run.run});
  const std::vector<std::string> by_op = {"op"};
  const auto groups = report.group(by_op);
  // 4e6 bytes over the link: 400,000 ns; of the tensors' 8e6 bytes nothing is asked.
  EXPECT_EQ(groups[0].lower_bound_time_ns, 400'000);
  EXPECT_EQ(to_string(groups[0].bound), "memory host link");
  EXPECT_DOUBLE_EQ(groups[0].percent_of_roof.value_or(0), 80);
  // 8e6 bytes from DRAM: 80,000 ns.
  EXPECT_EQ(groups[1].lower_bound_time_ns, 80'000);
  EXPECT_EQ(to_string(groups[1].bound), "memory DRAM");
  EXPECT_EQ(report.row("stem").lower_bound_time_ns, 480'000);
  EXPECT_TRUE(report.coverage().notes.empty());
}

TEST(HostLink, EitherDirectionAndEitherKindOfHostMemoryCrossesIt) {
  DeviceProfileBuilder builder;
  add_link(builder.data);
  struct Copy {
    Memory from;
    Memory to;
    bool crosses;
  };
  const std::vector<Copy> copies = {{Memory::pageable, Memory::device, true}, {Memory::pinned, Memory::device, true},
                                    {Memory::device, Memory::pinned, true},   {Memory::device, Memory::pageable, true},
                                    {Memory::device, Memory::device, false},  {Memory::managed, Memory::device, false},
                                    {Memory::pageable, Memory::pinned, false}};
  RunBuilder run;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const auto op = builder.op_index("copy " + std::to_string(i), kModel, work_of(0, 1'000, 1'000));
    const auto start = static_cast<std::int64_t>(1'000 * i);
    run.copy(copies[i].from, copies[i].to, run.owner(kModel, "copy", op), start, start + 500, 1'000);
  }
  builder.derived_of({run.run});
  for (std::size_t i = 0; i < copies.size(); ++i) {
    EXPECT_EQ(builder.data.counts.ops[i].link_bytes, copies[i].crosses ? 1'000 : 0) << i;
  }
}

TEST(HostLink, WithoutItsRoofSuchRowsHaveNoLowerBound) {
  DeviceProfileBuilder builder;
  const auto stem = builder.module("stem", "Stem");
  const auto op = builder.op_index("aten::copy_", stem, work_of(0, 1'000, 1'000));
  RunBuilder run;
  run.copy(Memory::device, Memory::pinned, run.owner(stem, "aten::copy_", op), 0, 10, 1'000);
  const testing::Derived report = builder.derived_of({run.run});
  EXPECT_EQ(report.row("stem").lower_bound_time_ns, std::nullopt);
  EXPECT_EQ(to_string(report.row("stem").bound), "unknown");
  ASSERT_EQ(report.coverage().notes.size(), 1);
  EXPECT_EQ(report.coverage().notes[0].text,
            "no roof for the host link: rows with copies between host and device have no lower bound");
}

// 1e6 bytes that fit into the L2 take 1,000 ns there and 10,000 in DRAM; DRAM moved 2e6, which takes it 20,000.
TEST(DeviceFigures, CountersDecideTheLevelAndHaveARoofOfTheirOwn) {
  DeviceProfileBuilder builder;
  const auto pool = builder.module("pool", "MaxPool2d");
  const auto other = builder.module("other", "ReLU");
  const auto op = builder.op_index("aten::max_pool2d", pool, work_of(0, 800'000, 200'000));
  const auto near = builder.op_index("aten::relu", other, work_of(0, 500'000, 500'000));
  RunBuilder run;
  run.kernel("pool", run.owner(pool, "aten::max_pool2d", op), 0, 50'000);
  run.kernel("relu", run.owner(other, "aten::relu", near), 50'000, 60'000);
  const testing::Derived counted = builder.derived_of({run.run}, dram_counters({2'000'000, 0}));
  const auto& row = counted.row("pool");
  EXPECT_EQ(to_string(row.bound), "memory DRAM");
  EXPECT_EQ(row.lower_bound_time_ns, 10'000);
  EXPECT_DOUBLE_EQ(row.percent_of_roof.value_or(0), 20);
  EXPECT_DOUBLE_EQ(row.percent_of_roof_counted.value_or(0), 40);
  EXPECT_EQ(to_string(counted.row("other").bound), "memory L2");
  EXPECT_DOUBLE_EQ(counted.row("other").percent_of_roof.value_or(0), 10);
  EXPECT_DOUBLE_EQ(counted.row("other").percent_of_roof_counted.value_or(-1), 0);
  EXPECT_EQ(counted.total().lower_bound_time_ns, 11'000);
  EXPECT_DOUBLE_EQ(counted.total().percent_of_roof_counted.value_or(0), 100.0 * 20 / 60);
  const testing::Derived by_reuse = builder.derived_of({run.run});
  EXPECT_EQ(to_string(by_reuse.row("pool").bound), "latency/code");  // 2% in the L2
  EXPECT_EQ(by_reuse.row("pool").percent_of_roof_counted, std::nullopt);
}

// On an H100, of a ResNet-18 in bf16, 32 images: 64.2 MB must move, DRAM moved 119, in 106 us; DRAM's measured roof was
// 3.056 TB/s. 64.2e6 / 3.056e12 = 21.0 us, 119e6 / 3.056e12 = 38.9 us.
TEST(DeviceFigures, TheMaxPoolOfAnH100) {
  DeviceProfileBuilder builder;
  builder.data.roofs.memory = {{"L2", 10.9e12, 52'428'800, testing::given_roof()},
                               {"DRAM", 3.056e12, 0, testing::given_roof()}};
  const auto pool = builder.module("maxpool", "MaxPool2d");
  const auto op = builder.op_index("aten::max_pool2d", pool, work_of(0, 51'380'224, 12'845'056));
  builder.data.counts.ops[static_cast<std::size_t>(op)].reuse = {{51'380'224, 51'380'224, 12'845'056, 0}};
  RunBuilder run;
  run.kernel("max_pool_forward_nhwc", run.owner(pool, "aten::max_pool2d", op), 0, 106'000);
  const testing::Derived report = builder.derived_of({run.run}, dram_counters({119'000'000}));
  EXPECT_EQ(to_string(report.row("maxpool").bound), "memory DRAM");
  EXPECT_NEAR(report.row("maxpool").percent_of_roof.value_or(0), 19.8, 0.05);
  EXPECT_NEAR(report.row("maxpool").percent_of_roof_counted.value_or(0), 36.7, 0.05);
}

TEST(DeviceFigures, AModuleThatLaunchedNothingIsAKnownZero) {
  DeviceProfileBuilder builder;
  const auto fc = builder.module("fc", "Linear");
  builder.module("dropout", "Dropout");
  builder.clock(3, {100});
  builder.clock(4, {10});
  RunBuilder run;
  run.kernel("gemm", run.owner(fc), 0, 10);
  const testing::Derived report = builder.derived_of({run.run}, dram_counters({64}));
  EXPECT_EQ(report.row("dropout").time_ns, 0);
  EXPECT_EQ(report.row("dropout").kernel_count, 0);
  EXPECT_EQ(report.row("dropout").dram_bytes, 0);
  EXPECT_EQ(report.row("dropout").host_time_ns, 10);
  EXPECT_EQ(report.row("dropout").utilization, std::nullopt);
  EXPECT_EQ(report.row("dropout").dram_bytes_ratio, std::nullopt);
}

// Counters of one kernel that the chip counts apart.
CounterTrace read_and_written(double read_bytes, double write_bytes) {
  CounterTrace trace;
  trace.chip = "GH100";
  trace.passes = 1;
  for (const Counter counter : {Counter::dram_read_bytes, Counter::dram_write_bytes})
    trace.sources.push_back({counter, {"metric"}, "metric", ""});
  CounterRecord record;
  record.values[static_cast<std::size_t>(Counter::dram_read_bytes)] = read_bytes;
  record.values[static_cast<std::size_t>(Counter::dram_write_bytes)] = write_bytes;
  trace.records.push_back(record);
  return trace;
}

// A kernel that reads 800 bytes and writes 200, in 100 ns; a copy of 1,000 bytes on the device in 400 ns; a fill of 300
// in 50 ns; and an op that clears 64 bytes, in 10 ns, before that kernel.
struct KernelBesideCopies : DeviceProfileBuilder {
  RunBuilder run;

  KernelBesideCopies() {
    const auto stem = module("stem", "Stem");
    const auto add = op_index("aten::add", stem, work_of(0, 800, 200));
    const auto copy = op_index("aten::copy_", stem, work_of(0, 1'000, 1'000));
    const auto fill = op_index("aten::fill_", stem, work_of(0, 0, 300));
    run.fill(run.owner(stem, "aten::add", add), 0, 10, 64);
    run.kernel("add", run.owner(stem, "aten::add", add), 10, 110);
    run.copy(Memory::device, Memory::device, run.owner(stem, "aten::copy_", copy), 200, 600, 1'000);
    run.fill(run.owner(stem, "aten::fill_", fill), 600, 650, 300);
  }
};

TEST(DramRatio, CopiesAndFillsAreOnNeitherSide) {
  KernelBesideCopies builder;
  const testing::Derived report = builder.derived_of({builder.run.run}, read_and_written(800, 200));
  const auto groups = report.group({"module"});
  for (const Figures* row : {static_cast<const Figures*>(&report.row("stem")), &report.row("stem").self,
                             static_cast<const Figures*>(&report.total()), static_cast<const Figures*>(&groups[0])}) {
    EXPECT_EQ(row->bytes, 800 + 200 + 2'000 + 300);
    EXPECT_EQ(row->dram_bytes, 1'000);
    EXPECT_DOUBLE_EQ(row->dram_bytes_ratio.value_or(0), 1);
    EXPECT_DOUBLE_EQ(row->dram_read_ratio.value_or(0), 1);
    EXPECT_DOUBLE_EQ(row->dram_write_ratio.value_or(0), 1);
    EXPECT_DOUBLE_EQ(row->dram_bandwidth.value_or(0), 1'000 / 100e-9);
  }
  for (const auto& row : report.group({"op"})) EXPECT_EQ(row.dram_bytes.has_value(), *row.op == "aten::add");
  std::map<std::int64_t, std::optional<std::int64_t>> bytes;  // by time
  for (const auto& row : kernel_rows(report.data())) bytes[row.total_ns] = row.bytes;
  EXPECT_EQ(bytes, (std::map<std::int64_t, std::optional<std::int64_t>>{{10, 64}, {50, 300}, {100, {}}, {400, 1'000}}));
  // The bytes that the kernel before had left in the cache are written meanwhile.
  const testing::Derived written = builder.derived_of({builder.run.run}, read_and_written(800, 700));
  EXPECT_DOUBLE_EQ(written.total().dram_bytes_ratio.value_or(0), 1.5);
  EXPECT_DOUBLE_EQ(written.total().dram_read_ratio.value_or(0), 1);
  EXPECT_DOUBLE_EQ(written.total().dram_write_ratio.value_or(0), 3.5);
  // Where the chip counts both together none is known alone.
  const testing::Derived together = builder.derived_of({builder.run.run}, dram_counters({1'500}));
  EXPECT_DOUBLE_EQ(together.total().dram_bytes_ratio.value_or(0), 1.5);
  EXPECT_FALSE(together.total().dram_read_bytes || together.total().dram_read_ratio);
}

// A kernel reads 1,000,000 bytes and writes a few: DRAM moved whole sectors, and what the kernel before had left.
TEST(DramRatio, IsNoneToNextToNothing) {
  struct Case {
    std::int64_t read;
    std::int64_t write;
    bool has_read;
    bool has_write;
  };
  // A hundredth of 1,010,101 bytes is 10,101; 32 bytes are a sector.
  for (const auto& [read, write, has_read, has_write] : std::vector<Case>{{1'000'000, 4, true, false},
                                                                          {1'000'000, 10'102, true, true},
                                                                          {4, 1'000'000, false, true},
                                                                          {31, 32, false, true},
                                                                          {32, 31, true, false}}) {
    DeviceProfileBuilder builder;
    const auto sum = builder.module("sum", "Sum");
    const auto op = builder.op_index("aten::sum", sum, work_of(0, read, write));
    RunBuilder run;
    run.kernel("reduce", run.owner(sum, "aten::sum", op), 0, 1'000);
    const testing::Derived report = builder.derived_of({run.run}, read_and_written(2'000'000, 22'000'000));
    const auto& row = report.row("sum");
    EXPECT_EQ(row.dram_write_bytes, 22'000'000);
    EXPECT_EQ(row.dram_read_ratio.has_value(), has_read) << read << " " << write;
    EXPECT_EQ(row.dram_write_ratio.has_value(), has_write) << read << " " << write;
    EXPECT_TRUE(row.dram_bytes_ratio);
  }
}

// Ranges of modules count all that ran in them.
TEST(DramRatio, RangesOfModulesHaveCopiesToo) {
  KernelBesideCopies builder;
  builder.data = testing::with_runs(std::move(builder.data), {builder.run.run});
  builder.data.device.make().counters.sources = {{Counter::dram_bytes, {"metric"}, "metric", ""}};
  builder.data.device.make().counters.ranges = CounterRanges::modules;
  CounterValues values{};
  values[static_cast<std::size_t>(Counter::dram_bytes)] = 3'300;
  builder.data.device.make().counters.modules = {{{builder.data.device.make().kernels[0].owner.module}, values}};
  const auto report = builder.derived();
  EXPECT_DOUBLE_EQ(report.row("stem").dram_bytes_ratio.value_or(0), 1);
  EXPECT_DOUBLE_EQ(report.row("stem").dram_bandwidth.value_or(0), 3'300 / 560e-9);
}

TEST(DeviceFigures, DataThatContradictsItselfIsRefused) {
  const auto message = [](void (*spoil)(Profile&)) -> std::string {
    testing::ProfileBuilder builder;
    spoil(builder.data);
    try {
      builder.derived();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([](Profile& data) { data.device.make().kernels.emplace_back().owner.module = 9; }),
            "kernel '' belongs to no module of the profile");
  EXPECT_EQ(message([](Profile& data) { data.device.make().kernels.emplace_back().bucket = 0; }),
            "kernel '' belongs to no op of the profile");
  EXPECT_EQ(message([](Profile& data) { data.device.make().timeline.modules.emplace_back().module = -1; }),
            "a time of the device belongs to no module of the profile");
  EXPECT_EQ(message([](Profile& data) { data.device.make().counters.modules.emplace_back().owner.module = 3; }),
            "a counter belongs to no module of the profile");
}

}  // namespace
}  // namespace roofprof
