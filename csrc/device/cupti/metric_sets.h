#pragma once
// Plans how the metrics of core/counter_metrics.h are collected on a chip. No CUPTI here.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/counter_metrics.h"
#include "core/device_data.h"
#include "device/cupti/host_profiler.h"
#include "device/interface/collector.h"

namespace roofprof::cupti {

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
