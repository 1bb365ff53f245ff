// The table of metrics resolved against chips made up here. What real chips have is asked of the real library by
// tests/python/collect/test_metric_sets.py.
#include "device/cupti/metric_sets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace roofprof::cupti {
namespace {

using Metrics = std::set<std::string, std::less<>>;

ResolvedCounter resolved(Counter counter, MetricSet set, const Metrics& metrics, std::string_view chip = "XX100") {
  for (ResolvedCounter& candidate :
       resolve(set, chip, [&](std::string_view metric) { return metrics.contains(metric); })) {
    if (candidate.source.counter == counter) return candidate;
  }
  ADD_FAILURE() << "no line for the counter in that set";
  return {};
}

TEST(MetricSets, EachCounterHasOneLineInOrder) {
  const std::vector<CounterMetrics>& table = metric_table();
  ASSERT_EQ(table.size(), kCounterCount);
  for (std::size_t i = 0; i < table.size(); ++i) EXPECT_EQ(static_cast<std::size_t>(table[i].counter), i);
}

TEST(MetricSets, AnOtherNameOfTheSameCounterIsTaken) {
  const auto older = resolved(Counter::dram_read_bytes, MetricSet::memory, {"dram__bytes_read"});
  const auto newer = resolved(Counter::dram_read_bytes, MetricSet::memory, {"dram__bytes_op_read"});
  EXPECT_EQ(older.source.metrics, std::vector<std::string>{"dram__bytes_read.sum"});
  EXPECT_EQ(newer.source.metrics, std::vector<std::string>{"dram__bytes_op_read.sum"});
  EXPECT_EQ(newer.source.formula, "dram__bytes_op_read.sum");
  EXPECT_EQ(newer.source.missing, "");
}

TEST(MetricSets, WhatTheChipLacksSaysSo) {
  const auto integrated = resolved(Counter::dram_bytes, MetricSet::memory, {"lts__t_bytes"}, "GB10B");
  EXPECT_EQ(integrated.source.missing, "this chip (GB10B, integrated) has no DRAM counter");
  EXPECT_TRUE(integrated.source.metrics.empty());
  EXPECT_EQ(evaluate(integrated, {}), std::nullopt);
  const auto without_tensor = resolved(Counter::tensor_fp16_flops, MetricSet::tensor, {}, "TU116");
  EXPECT_EQ(without_tensor.source.missing, "this chip (TU116) has no tensor-core fp16 counter");
}

const Metrics kSass = {"smsp__sass_thread_inst_executed_op_fadd_pred_on",
                       "smsp__sass_thread_inst_executed_op_fmul_pred_on",
                       "smsp__sass_thread_inst_executed_op_ffma_pred_on"};

TEST(MetricSets, AnFmaIsTwoOperations) {
  const auto fp32 = resolved(Counter::fp32_flops, MetricSet::sass, kSass);
  EXPECT_EQ(fp32.source.formula,
            "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum + "
            "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum + "
            "2 * smsp__sass_thread_inst_executed_op_ffma_pred_on.sum");
  // 1,000 additions, 100 multiplications, 10 fused ones.
  EXPECT_EQ(evaluate(fp32, std::vector{1000.0, 100.0, 10.0}), 1120.0);
}

TEST(MetricSets, TwoLanesCountWhereTheChipHasThem) {
  Metrics two_lanes = kSass;
  for (const char* kind : {"fadd2", "fmul2", "ffma2"}) {
    two_lanes.insert("smsp__sass_thread_inst_executed_op_" + std::string(kind) + "_pred_on");
  }
  const auto fp32 = resolved(Counter::fp32_flops, MetricSet::sass, two_lanes);
  ASSERT_EQ(fp32.source.metrics.size(), 6U);
  // Two lanes are two of the plain instructions: 2 additions, 2 multiplications, 2 fused ones of 2 operations each.
  EXPECT_EQ(evaluate(fp32, std::vector{0.0, 0.0, 0.0, 1.0, 0.0, 0.0}), 2.0);
  EXPECT_EQ(evaluate(fp32, std::vector{0.0, 0.0, 0.0, 0.0, 1.0, 0.0}), 2.0);
  EXPECT_EQ(evaluate(fp32, std::vector{0.0, 0.0, 0.0, 0.0, 0.0, 1.0}), 4.0);
}

TEST(MetricSets, AMetricThatMustBeThereIsNotLeftOut) {
  Metrics without_fma = kSass;
  without_fma.erase("smsp__sass_thread_inst_executed_op_ffma_pred_on");
  EXPECT_EQ(resolved(Counter::fp32_flops, MetricSet::sass, without_fma).source.missing,
            "this chip (XX100) has no fp32 instruction counter");
}

TEST(MetricSets, AParentAndItsPartsAreNeverAddedUp) {
  const std::string tensor = "sm__ops_path_tensor_";
  const Metrics all = {tensor + "src_fp16", tensor + "src_fp16_dst_fp16", tensor + "src_fp16_dst_fp32",
                       tensor + "op_hmma_src_fp16", tensor + "src_fp16_dst_fp32_sparsity_on"};
  EXPECT_EQ(resolved(Counter::tensor_fp16_flops, MetricSet::tensor, all).source.metrics,
            std::vector<std::string>{tensor + "src_fp16.sum"});
}

TEST(MetricSets, AValueThatIsNoNumberMakesTheCounterNone) {
  const auto fp32 = resolved(Counter::fp32_flops, MetricSet::sass, kSass);
  EXPECT_EQ(evaluate(fp32, std::vector{1.0, std::nan(""), 1.0}), std::nullopt);
  EXPECT_EQ(evaluate(fp32, std::vector{1.0, HUGE_VAL, 1.0}), std::nullopt);
}

}  // namespace
}  // namespace roofprof::cupti
