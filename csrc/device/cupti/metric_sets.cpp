#include "device/cupti/metric_sets.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace roofprof::cupti {

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
