// Counters of metrics that were asked for, and what is said of those that were not.
#include "ncu/counters.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/counter_metrics.h"

namespace roofprof::ncu {
namespace {

const std::string kSass = "smsp__sass_thread_inst_executed_op_";
const std::string kTensor = "sm__ops_path_tensor_src_";

Output one_kernel(const std::map<std::string, double>& metrics, const std::string& capability = "8.0") {
  Output output;
  output.names = {"k"};
  output.compute_capability = capability;
  output.kernels.emplace_back();
  for (const auto& [metric, value] : metrics) {
    output.metrics.push_back(metric);
    output.kernels[0].values.push_back(value);
  }
  return output;
}

std::map<std::string, double> sass(double ffma = 0, double hfma = 0, const std::string& prefix = kSass) {
  std::map<std::string, double> metrics;
  for (const char type : std::string("fhd")) {
    for (const std::string what : {"add", "mul", "fma"}) metrics[prefix + type + what + "_pred_on.sum"] = 0;
  }
  metrics[prefix + "ffma_pred_on.sum"] = ffma;
  metrics[prefix + "hfma_pred_on.sum"] = hfma;
  return metrics;
}

std::optional<double> value(const CounterTrace& trace, Counter counter) {
  return trace.records.front().values[static_cast<std::size_t>(counter)];
}

const CounterSource* source_of(const CounterTrace& trace, Counter counter) {
  for (const auto& source : trace.sources) {
    if (source.counter == counter) return &source;
  }
  return nullptr;
}

TEST(NcuCounters, MemoryAlone) {
  const auto trace = counters_of(one_kernel({{"dram__bytes.sum", 5}, {"lts__t_bytes.sum", 7}}));
  EXPECT_EQ(value(trace, Counter::dram_bytes), 5);
  EXPECT_EQ(value(trace, Counter::l2_bytes), 7);
  EXPECT_EQ(trace.sources.size(), 2U);  // nobody asked for anything else
  const auto newer = counters_of(one_kernel({{"dram__bytes_op_read.sum", 5}}));
  EXPECT_EQ(value(newer, Counter::dram_read_bytes), 5);
}

TEST(NcuCounters, OperationsByTheTableOfTheCollector) {
  for (const std::string& prefix : {kSass, std::string("sm__sass_thread_inst_executed_op_")}) {
    auto metrics = sass(10, 3, prefix);
    for (const std::string types :
         {"fp16_dst_fp16", "fp16_dst_fp32", "bf16_dst_fp32", "tf32_dst_fp32", "int8", "fp64"}) {
      metrics[kTensor + types + ".sum"] = 0;
    }
    metrics[kTensor + "bf16_dst_fp32.sum"] = 4096;
    const auto trace = counters_of(one_kernel(metrics));
    EXPECT_EQ(value(trace, Counter::fp32_flops), 20);
    EXPECT_EQ(value(trace, Counter::fp16_flops), 12);
    EXPECT_EQ(value(trace, Counter::tensor_bf16_flops), 4096);
    EXPECT_EQ(value(trace, Counter::tensor_fp16_flops), 0);
    const auto* fp32 = source_of(trace, Counter::fp32_flops);
    ASSERT_NE(fp32, nullptr);
    EXPECT_EQ(fp32->formula.find(prefix + "fadd_pred_on.sum + "), 0U) << fp32->formula;
    // Chips of 8.0 have none of these.
    for (const auto counter : {Counter::tensor_fp8_flops, Counter::tensor_fp4_flops}) {
      EXPECT_EQ(source_of(trace, counter), nullptr);
    }
  }
}

TEST(NcuCounters, WhatWasNotAskedForMayHaveBeenExecuted) {
  const auto trace = counters_of(one_kernel(sass(10)));
  EXPECT_EQ(value(trace, Counter::fp32_flops), 20);
  EXPECT_FALSE(source_of(trace, Counter::tensor_bf16_flops)->metrics.empty());
  EXPECT_NE(source_of(trace, Counter::tensor_bf16_flops)->missing.find("not asked"), std::string::npos);
  // Turing's tensor cores take no bf16.
  EXPECT_EQ(source_of(counters_of(one_kernel(sass(10), "7.5")), Counter::tensor_bf16_flops), nullptr);
  // Hopper's take fp8.
  const auto hopper = counters_of(one_kernel(sass(10), "9.0"));
  EXPECT_FALSE(source_of(hopper, Counter::tensor_fp8_flops)->metrics.empty());
}

TEST(NcuCounters, PairsOfFp32OnChipsThatHaveThem) {
  EXPECT_EQ(value(counters_of(one_kernel(sass(10), "9.0")), Counter::fp32_flops), 20);
  const auto without = counters_of(one_kernel(sass(10), "10.0"));
  EXPECT_EQ(value(without, Counter::fp32_flops), std::nullopt);
  EXPECT_FALSE(source_of(without, Counter::fp32_flops)->missing.empty());
  auto metrics = sass(10);
  for (const std::string what : {"fadd2", "fmul2", "ffma2"}) metrics[kSass + what + "_pred_on.sum"] = 1;
  EXPECT_EQ(value(counters_of(one_kernel(metrics, "10.0")), Counter::fp32_flops), 20 + 2 + 2 + 4);
}

TEST(NcuCounters, InstructionsOfTensorCoresWhereNoneRan) {
  const std::string all = "sm__inst_executed_pipe_tensor.sum";
  const auto flops = [&](double instructions, double hfma, const std::string& capability) {
    auto metrics = sass(10, hfma);
    metrics[all] = instructions;
    return value(counters_of(one_kernel(metrics, capability)), Counter::tensor_fp16_flops);
  };
  EXPECT_EQ(flops(0, 64, "9.0"), 0);
  EXPECT_EQ(flops(2, 64, "9.0"), std::nullopt);
  // An A100 runs HFMA2 there: 64 threads are two warps.
  EXPECT_EQ(flops(2, 64, "8.0"), 0);
  EXPECT_EQ(flops(3, 65, "8.0"), 0);
  EXPECT_EQ(flops(3, 64, "8.0"), std::nullopt);
  auto metrics = sass(10, 1);
  metrics[all] = 5;
  metrics["sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"] = 5;
  EXPECT_EQ(value(counters_of(one_kernel(metrics, "8.6")), Counter::tensor_fp16_flops), 0);
}

TEST(NcuCounters, OnlyWhatCountersAreMadeOfIsRead) {
  for (const auto& line : metric_table()) {
    for (const auto& sum : line.alternatives) {
      for (const auto& term : sum) EXPECT_TRUE(is_read(std::string(term.metric) + ".sum"));
    }
  }
  EXPECT_TRUE(is_read("sm__sass_thread_inst_executed_op_ffma_pred_on.sum"));
  EXPECT_FALSE(is_read("dram__bytes.sum.per_second"));
  EXPECT_FALSE(is_read("sm__ops_path_tensor_src_fp16_sparsity_on.sum"));
}

}  // namespace
}  // namespace roofprof::ncu
