#pragma once
// Names NVIDIA's metrics that make up each counter: one table, for the collector and for files of Nsight Compute.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"

namespace roofprof {

// Metrics that are collected together. memory fits one pass on every discrete chip, sass one more; of tensor about one
// for each type.
enum class MetricSet : std::uint8_t { memory, sass, tensor };

// weight x the metric's sum over all units of the device.
struct MetricTerm {
  std::int64_t weight = 1;
  std::string_view metric;     // the base name, without ".sum"
  bool where_present = false;  // true: left out on chips that lack it; false: a chip that lacks it lacks the sum
};

// A counter and the ways to get it: the first sum that a chip has counts.
struct CounterMetrics {
  Counter counter = Counter::dram_bytes;
  MetricSet set = MetricSet::memory;
  std::string_view what;  // in words
  std::vector<std::vector<MetricTerm>> alternatives;
};

// Returns one line for each counter, in the order of Counter.
const std::vector<CounterMetrics>& metric_table();

// A counter on one chip: what was asked for, what the chip has, and the sum that gives its values.
struct ResolvedCounter {
  CounterSource source;
  std::vector<MetricTerm> terms;  // of source.metrics, in their order; empty: the chip lacks it

  bool there() const { return source.missing.empty(); }
};

// Returns whether the chip has the metric of this base name.
using HasMetric = std::function<bool(std::string_view)>;

// Returns all counters of a set; those that the chip lacks say so.
std::vector<ResolvedCounter> resolve(MetricSet set, std::string_view chip, const HasMetric& has);

// Returns the counter's value from the values of source.metrics, in their order. Empty where one is not a number.
std::optional<double> evaluate(const ResolvedCounter& counter, std::span<const double> values);

}  // namespace roofprof
