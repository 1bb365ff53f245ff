#include "ncu/counters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/counter_metrics.h"
#include "core/phrases.h"

namespace roofprof::ncu {

namespace {

// All instructions of the tensor cores' pipe, whatever the type of their inputs; and those of them that are HFMA2,
// which some chips run there.
constexpr std::string_view kTensorInstructions = "sm__inst_executed_pipe_tensor.sum";
constexpr std::string_view kTensorHalfFma = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum";
constexpr std::string_view kHalfFma = "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum";

constexpr std::string_view kOfSubpartitions = "smsp__";
constexpr std::string_view kOfSms = "sm__";

// Returns the name of the same sum over whole SMs, "sm__sass_..." for "smsp__sass_...": older tables have these.
std::string of_sms(std::string_view metric) {
  return metric.starts_with(kOfSubpartitions) ? std::string(kOfSms).append(metric.substr(kOfSubpartitions.size()))
                                              : std::string(metric);
}

// The values of a table by the names of metrics.
class Table {
 public:
  explicit Table(const Output& output) : output_(output) {}

  // Returns the name under which the table has the metric; empty: it has no value of it.
  std::string name_of(std::string_view metric) const {
    if (column(metric) >= 0) return std::string(metric);
    const auto other = of_sms(metric);
    return column(other) >= 0 ? other : std::string();
  }
  bool has(std::string_view metric) const { return !name_of(metric).empty(); }
  double value(const CountedKernel& kernel, std::string_view metric) const {
    const auto at = column(name_of(metric));
    if (at < 0 || std::cmp_greater_equal(at, kernel.values.size())) return std::numeric_limits<double>::quiet_NaN();
    return kernel.values[static_cast<std::size_t>(at)];
  }

 private:
  std::int64_t column(std::string_view metric) const {
    const auto [known, fresh] = columns_.try_emplace(std::string(metric), -1);
    if (fresh) known->second = output_.column_of(metric);
    return known->second;
  }

  const Output& output_;
  mutable std::map<std::string, std::int64_t, std::less<>> columns_;
};

// Versions of ncu whose tables do not name the compute capability know no newer chips.
constexpr int kNewestUnnamed = 90;

// Returns 90 for "9.0"; empty where the text is none.
std::optional<int> capability_of(std::string_view text) {
  int major = 0;
  int minor = 0;
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto read = [](std::string_view part, int& to) {
    return std::from_chars(part.data(), part.data() + part.size(), to).ec == std::errc();
  };
  if (!read(text.substr(0, dot), major) || !read(text.substr(dot + 1), minor)) return std::nullopt;
  return 10 * major + minor;
}

// Returns the compute capability from which on chips count it (docs/counters.md).
int first_capability(Counter counter) {
  switch (counter) {
    case Counter::tensor_bf16_flops:
    case Counter::tensor_tf32_flops:
    case Counter::tensor_int8_ops:
    case Counter::tensor_fp64_flops:
      return 80;
    case Counter::tensor_fp8_flops:
      return 89;
    case Counter::tensor_fp4_flops:
      return 100;
    default:
      return 70;
  }
}

// Chips of compute capability 10.x have instructions on pairs of fp32: without them fp32_flops would be too few.
bool lacks_pairs(const ResolvedCounter& counter, std::optional<int> capability) {
  if (counter.source.counter != Counter::fp32_flops || !counter.there()) return false;
  const bool has_them =
      std::ranges::any_of(counter.terms, [](const MetricTerm& term) { return term.metric.ends_with("fma2_pred_on"); });
  return !has_them && capability && *capability / 10 == 10;
}

class Evaluation {
 public:
  Evaluation(const Output& output, std::string_view compute_capability)
      : output_(output),
        table_(output),
        capability_(capability_of(output.compute_capability.empty() ? compute_capability
                                                                    : std::string_view(output.compute_capability))) {}

  CounterTrace run() && {
    trace_.ranges = CounterRanges::kernels;
    trace_.passes = 1;
    for (std::size_t i = 0; i < output_.kernels.size(); ++i) trace_.records.push_back({i, {}});
    take_memory();
    if (asks_for_flops()) take_flops();
    return std::move(trace_);
  }

 private:
  std::vector<ResolvedCounter> resolved(MetricSet set) const {
    return resolve(set, "", [&](std::string_view metric) { return table_.has(std::string(metric) + ".sum"); });
  }

  bool asks_for_flops() const {
    const auto any = [&](MetricSet set) {
      return std::ranges::any_of(resolved(set), [](const ResolvedCounter& counter) { return counter.there(); });
    };
    return any(MetricSet::sass) || any(MetricSet::tensor) || table_.has(kTensorInstructions);
  }

  void take(ResolvedCounter counter) {
    const auto at = static_cast<std::size_t>(counter.source.counter);
    const auto asked = counter.source.metrics;
    for (auto& metric : counter.source.metrics) {  // under the names that the table has
      const auto name = table_.name_of(metric);
      for (auto found = counter.source.formula.find(metric); found != std::string::npos && name != metric;
           found = counter.source.formula.find(metric, found + name.size())) {
        counter.source.formula.replace(found, metric.size(), name);
      }
      metric = name;
    }
    std::vector<double> values(asked.size());
    for (std::size_t i = 0; i < output_.kernels.size(); ++i) {
      std::ranges::transform(asked, values.begin(),
                             [&](const auto& metric) { return table_.value(output_.kernels[i], metric); });
      trace_.records[i].values[at] = evaluate(counter, values);
    }
    trace_.sources.push_back(std::move(counter.source));
  }

  void take_memory() {
    for (auto& counter : resolved(MetricSet::memory)) {
      if (counter.there()) {
        take(std::move(counter));
      } else if (counter.source.counter == Counter::time_ns) {
        take_cycles();
      }
    }
  }

  void take_cycles() {
    if (!table_.has(kCycles) || !table_.has(kCyclesPerSecond)) return;
    constexpr double kNanoseconds = 1e9;
    for (std::size_t i = 0; i < output_.kernels.size(); ++i) {
      const double ns =
          kNanoseconds * table_.value(output_.kernels[i], kCycles) / table_.value(output_.kernels[i], kCyclesPerSecond);
      if (std::isfinite(ns)) trace_.records[i].values[static_cast<std::size_t>(Counter::time_ns)] = ns;
    }
    trace_.sources.push_back({Counter::time_ns,
                              {std::string(kCycles), std::string(kCyclesPerSecond)},
                              std::string(kCycles) + " / " + std::string(kCyclesPerSecond),
                              ""});
  }

  void take_flops() {
    for (auto& counter : resolved(MetricSet::sass)) take_or_miss(std::move(counter));
    auto tensor = resolved(MetricSet::tensor);
    const bool none = std::ranges::none_of(tensor, [](const ResolvedCounter& counter) { return counter.there(); });
    if (none && table_.has(kTensorInstructions)) return take_tensor_instructions();
    for (auto& counter : tensor) take_or_miss(std::move(counter));
  }

  void take_or_miss(ResolvedCounter counter) {
    const bool pairs_lack = lacks_pairs(counter, capability_);
    if (counter.there() && !pairs_lack) return take(std::move(counter));
    const auto& line = metric_table()[static_cast<std::size_t>(counter.source.counter)];
    if (capability_.value_or(kNewestUnnamed) < first_capability(line.counter)) return;  // no chip like it has any
    // It names metrics: the chip may have them, so that what the others counted is not all.
    const auto& sum = line.alternatives.front();
    for (const auto& term : sum) {
      auto metric = std::string(term.metric) + ".sum";
      if (!table_.has(metric) && (pairs_lack || !term.where_present))
        counter.source.metrics.push_back(std::move(metric));
    }
    counter.source.formula.clear();
    counter.source.missing = "ncu was not asked for all of their metrics (`roofprof import --help` shows the command)";
    trace_.sources.push_back(std::move(counter.source));
  }

  // An instruction of the tensor cores does as many operations as its kind says, which these metrics do not tell: only
  // where none is executed the operations are known, to be 0.
  void take_tensor_instructions() {
    CounterSource source{Counter::tensor_fp16_flops,
                         {std::string(kTensorInstructions)},
                         "0 where " + std::string(kTensorInstructions) + " counts nothing but HFMA2",
                         ""};
    std::int64_t unknown = 0;
    for (std::size_t i = 0; i < output_.kernels.size(); ++i) {
      if (executes_none(output_.kernels[i])) {
        trace_.records[i].values[static_cast<std::size_t>(Counter::tensor_fp16_flops)] = 0;
      } else {
        ++unknown;
      }
    }
    trace_.sources.push_back(std::move(source));
    if (unknown == 0) return;
    add_note(trace_.notes, "counter-not-measured",
             "executed FLOPs of " + counted(unknown, "launch", "launches") +
                 " that ncu counted are not known: " + std::string(kTensorInstructions) +
                 " counts instructions of tensor cores, and not how much each of them does");
  }

  bool executes_none(const CountedKernel& kernel) const {
    constexpr double kWarp = 32;
    const double all = table_.value(kernel, kTensorInstructions);
    if (all == 0) return true;
    if (table_.has(kTensorHalfFma)) return all == table_.value(kernel, kTensorHalfFma);
    // Chips of 8.0 run HFMA2 in this pipe. As many warps as its threads fill executed it at least.
    return capability_ == 80 && all <= std::ceil(table_.value(kernel, kHalfFma) / kWarp);
  }

  const Output& output_;
  Table table_;
  std::optional<int> capability_;
  CounterTrace trace_;
};

std::set<std::string, std::less<>> all_metrics() {
  std::set<std::string, std::less<>> metrics = {std::string(kCycles), std::string(kCyclesPerSecond),
                                                std::string(kTensorInstructions), std::string(kTensorHalfFma)};
  for (const auto& line : metric_table()) {
    for (const auto& sum : line.alternatives) {
      for (const auto& term : sum) {
        metrics.insert(std::string(term.metric) + ".sum");
        metrics.insert(of_sms(term.metric) + ".sum");
      }
    }
  }
  return metrics;
}

}  // namespace

bool is_read(std::string_view metric) {
  static const auto metrics = all_metrics();
  return metrics.contains(metric);
}

CounterTrace counters_of(const Output& output, std::string_view compute_capability) {
  return Evaluation(output, compute_capability).run();
}

}  // namespace roofprof::ncu
