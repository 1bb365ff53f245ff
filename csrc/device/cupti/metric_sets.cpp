#include "device/cupti/metric_sets.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace roofprof::cupti {

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

// The terms that this chip has; empty if it lacks one that is required.
std::vector<Term> present(const std::vector<Term>& sum, const HasMetric& has) {
  std::vector<Term> found;
  for (const Term& term : sum) {
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
  for (const std::vector<Term>& sum : line.alternatives) {
    resolved.terms = present(sum, has);
    if (!resolved.terms.empty()) break;
  }
  for (const Term& term : resolved.terms) {
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

namespace {

// Adds a metric to a group that still fits one pass with it.
bool take(MetricGroup& group, const std::string& metric, const HostProfiler& host) {
  std::vector<std::string> metrics = group.configuration->metrics();
  metrics.push_back(metric);
  auto together = std::make_unique<Configuration>(host, std::move(metrics));
  if (together->passes() > 1) return false;
  group.configuration = std::move(together);
  return true;
}

void place(const std::string& metric, const HostProfiler& host, std::vector<MetricGroup>& groups) {
  auto alone = std::make_unique<Configuration>(host, std::vector{metric});
  const auto takes = [&](MetricGroup& group) { return take(group, metric, host); };
  if (std::ranges::none_of(groups, takes)) groups.push_back({std::move(alone), 0, ""});
}

void plan_set(MetricSet set, const HostProfiler& host, CounterPlan& plan) {
  const auto has = [&host](std::string_view metric) { return host.has(metric); };
  std::vector<MetricGroup> groups;
  for (ResolvedCounter& counter : resolve(set, host.chip(), has)) {
    try {
      for (const std::string& metric : counter.source.metrics) place(metric, host, groups);
    } catch (const CuptiError& error) {
      counter.source.missing = "it cannot be counted on this system: " + error.found();
    }
    plan.counters.push_back(std::move(counter));
  }
  for (MetricGroup& group : groups) {
    group.first_column = plan.columns;
    plan.columns += group.configuration->metrics().size();
    plan.groups.push_back(std::move(group));
  }
}

// The columns of a counter's metrics; sets its `missing` where one of them failed.
std::vector<std::size_t> columns_of(ResolvedCounter& counter, const std::vector<MetricGroup>& groups) {
  std::vector<std::size_t> columns;
  for (const std::string& metric : counter.source.metrics) {
    for (const MetricGroup& group : groups) {
      const std::vector<std::string>& metrics = group.configuration->metrics();
      const auto found = std::ranges::find(metrics, metric);
      if (found == metrics.end()) continue;
      columns.push_back(group.first_column + static_cast<std::size_t>(found - metrics.begin()));
      if (counter.there()) counter.source.missing = group.failure;
    }
  }
  return columns;
}

}  // namespace

CounterPlan plan_counters(const HostProfiler& host, const CounterRequest& request) {
  CounterPlan plan;
  if (request.memory) plan_set(MetricSet::memory, host, plan);
  if (request.executed_flops) {
    plan_set(MetricSet::sass, host, plan);
    plan_set(MetricSet::tensor, host, plan);
  }
  return plan;
}

void write_counters(CounterPlan plan, const RangeTable& table, CounterTrace& trace) {
  for (const auto& [range, metrics] : table) trace.records.push_back({range, {}});
  for (ResolvedCounter& counter : plan.counters) {
    const std::vector<std::size_t> columns = columns_of(counter, plan.groups);
    std::vector<double> values(columns.size());
    auto record = trace.records.begin();
    for (const auto& line : table) {
      std::ranges::transform(columns, values.begin(), [&](std::size_t column) { return line.second[column]; });
      (record++)->values[static_cast<std::size_t>(counter.source.counter)] = evaluate(counter, values);
    }
    trace.sources.push_back(std::move(counter.source));
  }
}

}  // namespace roofprof::cupti
