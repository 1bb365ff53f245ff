#include "core/counter_metrics.h"

#include <algorithm>
#include <cmath>

namespace roofprof {

namespace {

// Instructions executed by threads whose predicates were true, by kind.
#define SASS(kind) "smsp__sass_thread_inst_executed_op_" kind "_pred_on"
// Operations in the tensor path, two for each multiply-accumulate, by input and output type. Their children (op_...,
// ..._sparsity_on) are parts of them and are never added.
#define TENSOR(types) "sm__ops_path_tensor_src_" types

constexpr bool kWherePresent = true;

}  // namespace

const std::vector<CounterMetrics>& metric_table() {
  using enum Counter;
  using enum MetricSet;
  static const std::vector<CounterMetrics> table = {
      // op_: GB20x.
      {dram_read_bytes, memory, "DRAM read", {{{1, "dram__bytes_read"}}, {{1, "dram__bytes_op_read"}}}},
      {dram_write_bytes, memory, "DRAM write", {{{1, "dram__bytes_write"}}, {{1, "dram__bytes_op_write"}}}},
      {dram_bytes, memory, "DRAM", {{{1, "dram__bytes"}}}},
      // Bytes that were asked of the caches. ncu's roofline chart takes others for both levels (docs/counters.md).
      {l2_bytes, memory, "L2", {{{1, "lts__t_bytes"}}}},
      {l1_bytes, memory, "L1", {{{1, "l1tex__t_bytes"}}}},
      {time_ns, memory, "time", {{{1, "gpu__time_duration"}}}},

      // Weights as in ncu's roofline charts: an fma is two operations, and an fp16 instruction works on a pair.
      // Not verified on a GPU: compilers load constants with HFMA2, which counts here in any kernel, fp32 ones too,
      // and a lone (unpaired) fp16 instruction is counted as two.
      {fp16_flops, sass, "fp16 instruction", {{{2, SASS("hadd")}, {2, SASS("hmul")}, {4, SASS("hfma")}}}},
      // Not verified on a GPU: fadd2, fmul2 and ffma2 (GB1xx) work on two lanes, so they count twice.
      {fp32_flops,
       sass,
       "fp32 instruction",
       {{{1, SASS("fadd")},
         {1, SASS("fmul")},
         {2, SASS("ffma")},
         {2, SASS("fadd2"), kWherePresent},
         {2, SASS("fmul2"), kWherePresent},
         {4, SASS("ffma2"), kWherePresent}}}},
      {fp64_flops, sass, "fp64 instruction", {{{1, SASS("dadd")}, {1, SASS("dmul")}, {2, SASS("dfma")}}}},

      // GH100; GA10x, AD10x, GB1xx, GB20x; TU10x, whose tensor cores take no bf16 or tf32, whatever the metric's name.
      {tensor_fp16_flops,
       tensor,
       "tensor-core fp16",
       {{{1, TENSOR("fp16")}},
        {{1, TENSOR("fp16_dst_fp16")}, {1, TENSOR("fp16_dst_fp32")}},
        {{1, TENSOR("fp16_dst_fp16")}, {1, TENSOR("fp16_bf16_tf32_dst_fp32")}}}},
      {tensor_bf16_flops, tensor, "tensor-core bf16", {{{1, TENSOR("bf16_dst_fp32")}}}},
      {tensor_tf32_flops, tensor, "tensor-core tf32", {{{1, TENSOR("tf32_dst_fp32")}}}},
      // The path of 8-bit inputs, in which fp6 and fp4 may run too (GB1xx's counters do not tell them apart).
      // AD10x and GH100; GB100 and GB102; GB110 and GB20x.
      {tensor_fp8_flops,
       tensor,
       "tensor-core fp8",
       {{{1, TENSOR("fp8")}},
        {{1, TENSOR("fp4_fp6_fp8_dst_fp16")}, {1, TENSOR("fp4_fp6_fp8_dst_fp32")}},
        {{1, TENSOR("fp8_dst_fp16")},
         {1, TENSOR("fp8_dst_fp32")},
         {1, TENSOR("fp4_fp6_dst_fp16")},
         {1, TENSOR("fp4_fp6_dst_fp32")}}}},
      // The separate path for 4-bit inputs.
      {tensor_fp4_flops, tensor, "tensor-core fp4", {{{1, TENSOR("fp4_dst_fp32")}}}},
      {tensor_int8_ops, tensor, "tensor-core int8", {{{1, TENSOR("int8")}}}},
      {tensor_fp64_flops, tensor, "tensor-core fp64", {{{1, TENSOR("fp64")}}}},
  };
  return table;
}

namespace {

// Returns the terms that this chip has; empty if it lacks one that is required.
std::vector<MetricTerm> present(const std::vector<MetricTerm>& sum, const HasMetric& has) {
  std::vector<MetricTerm> found;
  for (const MetricTerm& term : sum) {
    if (has(term.metric)) {
      found.push_back(term);
    } else if (!term.where_present) {
      return {};
    }
  }
  return found;
}

std::string why_missing(const CounterMetrics& line, std::string_view chip) {
  // GV11B, GA10B, GB10B, GB20B: only the names of integrated GPUs end in a B.
  const std::string_view integrated = chip.ends_with('B') ? ", integrated" : "";
  return "this chip (" + std::string(chip) + std::string(integrated) + ") has no " + std::string(line.what) +
         " counter";
}

ResolvedCounter resolve(const CounterMetrics& line, std::string_view chip, const HasMetric& has) {
  ResolvedCounter resolved;
  resolved.source.counter = line.counter;
  for (const std::vector<MetricTerm>& sum : line.alternatives) {
    resolved.terms = present(sum, has);
    if (!resolved.terms.empty()) break;
  }
  for (const MetricTerm& term : resolved.terms) {
    CounterSource& source = resolved.source;
    source.metrics.push_back(std::string(term.metric) + ".sum");
    if (!source.formula.empty()) source.formula += " + ";
    if (term.weight != 1) source.formula += std::to_string(term.weight) + " * ";
    source.formula += source.metrics.back();
  }
  if (resolved.terms.empty()) resolved.source.missing = why_missing(line, chip);
  return resolved;
}

}  // namespace

std::vector<ResolvedCounter> resolve(MetricSet set, std::string_view chip, const HasMetric& has) {
  std::vector<ResolvedCounter> counters;
  for (const CounterMetrics& line : metric_table()) {
    if (line.set == set) counters.push_back(resolve(line, chip, has));
  }
  return counters;
}

std::optional<double> evaluate(const ResolvedCounter& counter, std::span<const double> values) {
  if (!counter.there() || values.size() != counter.terms.size()) return std::nullopt;
  if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value); })) return std::nullopt;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += static_cast<double>(counter.terms[i].weight) * values[i];
  return sum;
}

}  // namespace roofprof
