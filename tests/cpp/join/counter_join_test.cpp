// Which launch a counter's value belongs to, and what is said where that cannot be known.

#include <gtest/gtest.h>

#include <tuple>

#include "join/counter_join.h"
#include "join/device_join.h"
#include "support/device_builder.h"
#include "support/pass_builder.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::dram_counters;
using testing::RunBuilder;
using testing::work_of;

// Two modules under one parent: "a" launches x, y and x again, "b" launches z.
struct TwoModules {
  explicit TwoModules(std::size_t runs = 1) : builder(std::vector<std::int64_t>(runs, 10'000)) {
    parent = builder.module("p", "P");
    a = builder.module("p.a", "A", parent);
    b = builder.module("p.b", "B", parent);
    a_op = builder.op_index("aten::mm", a, work_of(6'000, 1'000));
    b_op = builder.op_index("aten::add", b, work_of(100, 50));
  }

  RunBuilder run(const std::vector<std::string>& names = {"x", "y", "x", "z"}) const {
    RunBuilder built;
    const auto in_a = built.owner(a, "aten::mm", a_op);
    const auto in_b = built.owner(b, "aten::add", b_op);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto start = static_cast<std::int64_t>(100 * i);
      built.kernel(names[i], i < 3 ? in_a : in_b, start, start + 10);
    }
    return built;
  }

  DeviceProfileBuilder builder;
  ModuleId parent = 0;
  ModuleId a = 0;
  ModuleId b = 0;
  std::int64_t a_op = 0;
  std::int64_t b_op = 0;
};

using Texts = std::vector<std::string>;

Texts notes_of(const testing::Derived& report) { return testing::texts_of(report.coverage().notes); }

TEST(CounterJoin, ValuesGoToTheLaunchOfTheirOrdinal) {
  TwoModules model;
  const testing::Derived report = model.builder.derived_of({model.run().run}, dram_counters({100, 20, 300, 4'000}));
  EXPECT_EQ(report.row("p.a").dram_bytes, 420);
  EXPECT_EQ(report.row("p.a").l2_bytes, 840);
  EXPECT_EQ(report.row("p.a").l1_bytes, 1'680);
  EXPECT_EQ(report.row("p.b").dram_bytes, 4'000);
  EXPECT_EQ(report.row("p").dram_bytes, 4'420);
  EXPECT_EQ(report.row("p").self.dram_bytes, 0);
  EXPECT_EQ(report.total().dram_bytes, 4'420);
  // 6,000 FLOPs; 1,000 bytes by shapes; 30 ns.
  EXPECT_DOUBLE_EQ(report.row("p.a").dram_intensity.value_or(0), 6'000.0 / 420);
  EXPECT_DOUBLE_EQ(report.row("p.a").dram_bytes_ratio.value_or(0), 0.42);
  EXPECT_DOUBLE_EQ(report.row("p.a").dram_bandwidth.value_or(0), 420 / 30e-9);
  EXPECT_EQ(report.row("p").self.dram_intensity, std::nullopt);  // of no bytes
  EXPECT_TRUE(notes_of(report).empty());

  ASSERT_EQ(report.kernels().size(), 3);
  EXPECT_EQ(report.kernels()[0].name, "x");
  EXPECT_EQ(report.kernels()[0].dram_bytes, 400);
  EXPECT_EQ(report.kernels()[0].flops, std::nullopt);  // the op ran y, too
  EXPECT_EQ(report.kernels()[2].flops, 100);
  EXPECT_DOUBLE_EQ(report.kernels()[2].dram_intensity.value_or(0), 0.025);
  EXPECT_DOUBLE_EQ(report.kernels()[2].dram_bandwidth.value_or(0), 4'000 / 10e-9);
}

TEST(CounterJoin, LaunchOrderIsThatOfCorrelationsNotOfStarts) {
  TwoModules model;
  RunBuilder run = model.run();
  // The last one launched began first, on another stream.
  run.run.trace.records[3].start_ns = 0;
  run.run.trace.records[3].end_ns = 5;
  std::swap(run.run.trace.records[0], run.run.trace.records[3]);
  const testing::Derived report = model.builder.derived_of({run.run}, dram_counters({1, 2, 4, 8}));
  EXPECT_EQ(report.row("p.a").dram_bytes, 7);
  EXPECT_EQ(report.row("p.b").dram_bytes, 8);
}

TEST(CounterJoin, CopiesAndFillsAreNotCounted) {
  TwoModules model;
  RunBuilder run = model.run();
  const auto stem = model.builder.module("stem", "Stem");
  run.copy(Memory::device, Memory::device, run.owner(stem), 500, 510, 64);
  run.copy(Memory::device, Memory::device, 1, 500, 510, 64).correlation = 0;  // before all kernels
  run.fill(2, 520, 521, 64).correlation = 2;
  const testing::Derived report = model.builder.derived_of({run.run}, dram_counters({1, 2, 4, 8}));
  EXPECT_EQ(report.row("p.a").dram_bytes, 7);
  EXPECT_EQ(report.row("p.b").dram_bytes, 8);
  EXPECT_EQ(report.row("stem").dram_bytes, std::nullopt) << "not zero";
  EXPECT_EQ(report.row("stem").kernel_count, 0);
  EXPECT_EQ(notes_of(report),
            Texts{"counters are read for kernels: what 2 copies and 1 memset moved is in no measured figure"});
}

TEST(CounterJoin, AnotherNumberOfLaunchesLeavesAllUnknown) {
  for (const std::size_t count : {3, 5}) {
    TwoModules model;
    const testing::Derived report =
        model.builder.derived_of({model.run().run}, dram_counters(std::vector<double>(count, 7)));
    for (const char* path : {"p.a", "p.b", "p"}) EXPECT_EQ(report.row(path).dram_bytes, std::nullopt) << path;
    EXPECT_EQ(report.row("p").self.dram_bytes, 0);
    EXPECT_EQ(report.total().dram_bytes_ratio, std::nullopt);
    for (const auto& kernel : model.builder.data.device->kernels) EXPECT_TRUE(kernel.mismatched);
    EXPECT_EQ(notes_of(report), Texts{"counters: their run launched " + std::to_string(count) +
                                      " kernels, the traced one 4: no measured bytes for p.a, p.b and the rows above"});
  }
}

// What another traced run launched otherwise leaves its module unknown, and no other.
TEST(CounterJoin, LaunchesThatDifferBetweenRunsLeaveTheirModulesUnknown) {
  const TwoModules model;
  auto grown = model.run();
  grown.run.trace.records[3].grid = {9, 1, 1};
  auto longer = model.run({"x", "y", "x"});  // all in a
  longer.kernel("autotune", longer.owner(model.b), 300, 310);
  longer.kernel("z", 2, 400, 410);
  const std::tuple<RunBuilder, std::string, std::string> cases[] = {
      {model.run({"x", "w", "x", "z"}), "p.a", "launch 1 was 'y' in one traced run and 'w' in another"},
      {grown, "p.b",
       "launch 3 was 'z' in one traced run and in another, with a grid of 8x1x1 and of 9x1x1, blocks of 256x1x1 and of "
       "256x1x1"},
      {longer, "p.b", "one traced run launched 4 kernels and another 5, different from launch 3 on"}};
  for (const auto& [other, unknown, why] : cases) {
    TwoModules two(2);
    const testing::Derived report = two.builder.derived_of({two.run().run, other.run}, dram_counters({1, 2, 3, 4}));
    EXPECT_EQ(report.row("p.a").dram_bytes.value_or(-1), unknown == "p.a" ? -1 : 6) << why;
    EXPECT_EQ(report.row("p.b").dram_bytes.value_or(-1), unknown == "p.b" ? -1 : 4) << why;
    EXPECT_EQ(report.row("p").dram_bytes, std::nullopt);
    EXPECT_EQ(notes_of(report),
              Texts{"counters: " + why + ": no measured bytes for " + unknown + " and the rows above"});
  }
}

TEST(CounterJoin, AMissingLaunchLeavesItsKernelAndItsParentsUnknown) {
  TwoModules model;
  CounterTrace counters = dram_counters({100, 20, 300, 4'000});
  counters.records[1].values = {};                                 // a range without values
  std::reverse(counters.records.begin(), counters.records.end());  // in any order
  const testing::Derived report = model.builder.derived_of({model.run().run}, counters);
  EXPECT_EQ(report.row("p.a").dram_bytes, std::nullopt);
  EXPECT_EQ(report.row("p.b").dram_bytes, 4'000);
  EXPECT_EQ(report.total().dram_bytes, std::nullopt);
  EXPECT_EQ(report.kernels()[0].dram_bytes, 400);  // x is whole
  EXPECT_EQ(report.kernels()[1].dram_bytes, std::nullopt);
  EXPECT_EQ(notes_of(report),
            Texts{"counters: no values for launch 1, 'y': no measured bytes for p.a and the rows above"});
  // Ranges that had no room are those at the end, and one device alone was counted.
  counters = dram_counters({100, 20, 300});
  counters.dropped = 1;
  EXPECT_EQ(notes_of(TwoModules().builder.derived_of({model.run().run}, counters)),
            Texts{"counters: no values for launch 3, 'z': no measured bytes for p.b and the rows above"});
  auto elsewhere = model.run();
  elsewhere.run.trace.records[3].device = 1;
  EXPECT_EQ(notes_of(TwoModules().builder.derived_of({elsewhere.run}, dram_counters({100, 20, 300}))),
            Texts{"counters: they were read on device 0 alone: no measured bytes for p.b and the rows above"});
}

TEST(CounterJoin, OneCounterThatIsMissingLeavesTheOthers) {
  TwoModules model;
  CounterTrace counters = dram_counters({100, 20, 300, 4'000});
  counters.sources[0].missing = "this chip shares its memory with the host";
  counters.sources[1].missing = "this chip shares its memory with the host";
  for (auto& record : counters.records) {
    record.values[static_cast<std::size_t>(Counter::dram_bytes)].reset();
    record.values[static_cast<std::size_t>(Counter::l2_bytes)].reset();
  }
  const testing::Derived report = model.builder.derived_of({model.run().run}, counters);
  EXPECT_EQ(report.total().dram_bytes, std::nullopt);
  EXPECT_EQ(report.row("p").self.dram_bytes, std::nullopt);  // nor a known zero
  EXPECT_EQ(report.total().l1_bytes, 4 * 4'420);
  EXPECT_EQ(notes_of(report), Texts{"not measured: dram_bytes, l2_bytes: this chip shares its memory with the host"});
}

TEST(CounterJoin, ExecutedFlopsAreWholeOrUnknown) {
  const auto executed = [](const std::vector<CounterSource>& sources) {
    TwoModules model;
    CounterTrace counters;
    counters.sources = sources;
    for (std::uint64_t i = 0; i < 4; ++i) {
      CounterRecord record;
      record.range = i;
      record.values[static_cast<std::size_t>(Counter::fp32_flops)] = 1'000;
      record.values[static_cast<std::size_t>(Counter::tensor_bf16_flops)] = 5;
      record.values[static_cast<std::size_t>(Counter::tensor_int8_ops)] = 77;  // no FLOPs
      counters.records.push_back(record);
    }
    return model.builder.derived_of({model.run().run}, counters).total().executed_flops;
  };
  const CounterSource fp32{Counter::fp32_flops, {"ffma"}, "2 x ffma", ""};
  const CounterSource bf16{Counter::tensor_bf16_flops, {"tensor_bf16"}, "tensor_bf16", ""};
  const CounterSource int8{Counter::tensor_int8_ops, {"tensor_int8"}, "tensor_int8", ""};
  const CounterSource no_fp4{Counter::tensor_fp4_flops, {}, "", "this chip has no such unit"};
  EXPECT_EQ(executed({fp32, bf16, int8, no_fp4}), 4'020);
  // One that the chip has and that could not be read would make the sum a part.
  EXPECT_EQ(executed({fp32, {Counter::tensor_bf16_flops, {"tensor_bf16"}, "tensor_bf16", "the pass failed"}}),
            std::nullopt);
  EXPECT_EQ(executed({int8}), std::nullopt);
}

TEST(ModuleCounters, RangesAddUpByModule) {
  TwoModules model;
  CounterTrace counters = dram_counters({100, 20, 300});
  counters.ranges = CounterRanges::modules;
  counters.records[0].range = 1;  // a
  counters.records[1].range = 2;  // b
  counters.records[2].range = 1;
  const testing::Derived report = model.builder.derived_of({model.run().run}, counters);
  EXPECT_EQ(report.row("p.a").dram_bytes, 400);
  EXPECT_EQ(report.row("p.b").dram_bytes, 20);
  EXPECT_EQ(report.row("p").dram_bytes, 420);
  EXPECT_EQ(report.total().dram_bytes, 420);
  EXPECT_EQ(report.kernels()[0].dram_bytes, std::nullopt);
  EXPECT_DOUBLE_EQ(report.row("p.a").dram_intensity.value_or(0), 15);
}

// ---- kernels that must not run alone

// Names as the libraries that torch 2.15 brings have them.
TEST(KernelSerialisation, KernelsThatWaitForOtherDevicesAreKnown) {
  for (const char* name : {
           "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
           "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
           "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
           "ncclSymkDevKernel_ReduceScatter_TmaLD_sum_f32(ncclSymkDevWorkArgs4K)",
           "nvshmemi_proxy_kernel",
           "void (anonymous namespace)::two_shot_all_reduce_kernel<float, 16, 8>(float**)",
           "void (anonymous namespace)::multimem_all_gather_kernel<16>(char*, char*)",
           "void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)",
       }) {
    EXPECT_TRUE(must_not_be_serialised(name)) << name;
  }
}

TEST(KernelSerialisation, OthersMayRunAlone) {
  for (const char* name : {
           "ampere_sgemm_128x64_tn",
           "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off",
           "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<>()",
           "triton_red_fused_all_0",
           "",
       }) {
    EXPECT_FALSE(must_not_be_serialised(name)) << name;
  }
}

DeviceTrace traced(const std::string& name, KernelKind kind = KernelKind::kernel, std::uint64_t graph_node = 0) {
  DeviceTrace trace;
  trace.names = {"gemm", name};
  trace.records.resize(2);
  trace.records[1].kind = kind;
  trace.records[1].name = 1;
  trace.records[1].graph_node = graph_node;
  return trace;
}

TEST(KernelSerialisation, TheReasonNamesTheKernelAndWhatToDo) {
  EXPECT_EQ(why_not_kernel_by_kernel(traced("relu")), "");
  EXPECT_EQ(why_not_kernel_by_kernel(traced("ncclDevKernel_SendRecv")),
            "counters kernel by kernel were left out, as ncclDevKernel_SendRecv waits for other devices and would hang "
            "when it is run alone: count by module (counters=\"modules\"), or not at all (counters=\"off\")");
  EXPECT_EQ(why_not_kernel_by_kernel(traced("ncclDevKernel_SendRecv", KernelKind::copy)), "");  // has no name
}

TEST(KernelSerialisation, GraphsAreNotCountedKernelByKernel) {
  const std::string why = why_not_kernel_by_kernel(traced("relu", KernelKind::kernel, 7));
  EXPECT_NE(why.find("CUDA graphs"), std::string::npos) << why;
  EXPECT_NE(why.find("counters=\"modules\""), std::string::npos) << why;
}

}  // namespace
}  // namespace roofprof
