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

TEST(MetricSets, WhatTheChipCallsItIsTakenAndWhatItLacksIsSaid) {
  for (const std::string name : {"dram__bytes_read", "dram__bytes_op_read"}) {
    const auto found = resolved(Counter::dram_read_bytes, MetricSet::memory, {name});
    EXPECT_EQ(found.source.metrics, std::vector{name + ".sum"});
    EXPECT_EQ(found.source.formula, name + ".sum");
    EXPECT_EQ(found.source.missing, "");
  }
  const auto integrated = resolved(Counter::dram_bytes, MetricSet::memory, {"lts__t_bytes"}, "GB10B");
  EXPECT_EQ(integrated.source.missing, "this chip (GB10B, integrated) has no DRAM counter");
  EXPECT_EQ(evaluate(integrated, {}), std::nullopt);
  // A parent and its parts are never added up.
  const std::string tensor = "sm__ops_path_tensor_";
  EXPECT_EQ(resolved(Counter::tensor_fp16_flops, MetricSet::tensor,
                     {tensor + "src_fp16", tensor + "src_fp16_dst_fp32", tensor + "op_hmma_src_fp16",
                      tensor + "src_fp16_dst_fp32_sparsity_on"})
                .source.metrics,
            std::vector{tensor + "src_fp16.sum"});
}

TEST(MetricSets, AnFmaIsTwoOperationsAndTwoLanesAreTwoInstructions) {
  const auto name = [](const std::string& kind) { return "smsp__sass_thread_inst_executed_op_" + kind + "_pred_on"; };
  Metrics metrics = {name("fadd"), name("fmul"), name("ffma")};
  const auto fp32 = [&] { return resolved(Counter::fp32_flops, MetricSet::sass, metrics); };
  EXPECT_EQ(fp32().source.formula, name("fadd") + ".sum + " + name("fmul") + ".sum + 2 * " + name("ffma") + ".sum");
  // 1,000 additions, 100 multiplications, 10 fused ones.
  EXPECT_EQ(evaluate(fp32(), std::vector{1000.0, 100.0, 10.0}), 1120.0);
  EXPECT_EQ(evaluate(fp32(), std::vector{1.0, std::nan(""), 1.0}), std::nullopt);
  EXPECT_EQ(evaluate(fp32(), std::vector{1.0, HUGE_VAL, 1.0}), std::nullopt);
  for (const char* kind : {"fadd2", "fmul2", "ffma2"}) metrics.insert(name(kind));
  // 2 additions, 2 multiplications, 2 fused ones of 2 operations each.
  EXPECT_EQ(evaluate(fp32(), std::vector{0.0, 0.0, 0.0, 1.0, 10.0, 100.0}), 2.0 + 20.0 + 400.0);
  metrics.erase(name("ffma"));  // one that must be there
  EXPECT_EQ(fp32().source.missing, "this chip (XX100) has no fp32 instruction counter");
}

}  // namespace
}  // namespace roofprof::cupti
