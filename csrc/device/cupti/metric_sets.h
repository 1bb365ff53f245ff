#pragma once
// Names the metrics of a chip that make up each counter: one table, which pure functions resolve against a chip. No
// CUPTI here.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"
#include "device/cupti/host_profiler.h"
#include "device/interface/collector.h"

namespace roofprof::cupti {

// Metrics that are collected together. memory fits one pass on every discrete chip, sass one more; of tensor about one
// for each type.
enum class MetricSet : std::uint8_t { memory, sass, tensor };

// weight x the metric's sum over all units of the device.
struct Term {
  std::int64_t weight = 1;
  std::string_view metric;     // the base name, without ".sum"
  bool where_present = false;  // true: left out on chips that lack it; false: a chip that lacks it lacks the sum
};

// A counter and the ways to get it: the first sum that a chip has counts.
struct CounterMetrics {
  Counter counter = Counter::dram_bytes;
  MetricSet set = MetricSet::memory;
  std::string_view what;  // in words
  std::vector<std::vector<Term>> alternatives;
};

// Returns one line for each counter, in the order of Counter.
const std::vector<CounterMetrics>& metric_table();

// A counter on one chip: what was asked for, what the chip has, and the sum that gives its values.
struct ResolvedCounter {
  CounterSource source;
  std::vector<Term> terms;  // of source.metrics, in their order; empty: the chip lacks it

  bool there() const { return source.missing.empty(); }
};

// Returns whether the chip has the metric of this base name.
using HasMetric = std::function<bool(std::string_view)>;

// Returns all counters of a set; those that the chip lacks say so.
std::vector<ResolvedCounter> resolve(MetricSet set, std::string_view chip, const HasMetric& has);

// Returns the counter's value from the values of source.metrics, in their order. Empty where one is not a number.
std::optional<double> evaluate(const ResolvedCounter& counter, std::span<const double> values);

// Plans which metrics are collected together, and computes the counters from their values.

// Metrics by CounterRecord::range, each in its column; not a number where one is not known.
using RangeTable = std::map<std::uint64_t, std::vector<double>>;

// Metrics that are collected in the same passes: columns first_column and following.
struct MetricGroup {
  std::unique_ptr<Configuration> configuration;
  std::size_t first_column = 0;
  std::string failure;  // why values are missing; empty: none are
};

struct CounterPlan {
  std::vector<ResolvedCounter> counters;  // all requested ones, also those without values
  std::vector<MetricGroup> groups;
  std::size_t columns = 0;
};

// Groups the metrics of each set so that a group is one pass, in which nothing has to be repeated. A metric that needs
// more passes by itself becomes a separate group. A counter whose metrics the system refuses says so.
CounterPlan plan_counters(const HostProfiler& host, const CounterRequest& request);

// Computes the counters: the trace gets their sources and, for each range, their values.
void write_counters(CounterPlan plan, const RangeTable& table, CounterTrace& trace);

}  // namespace roofprof::cupti
