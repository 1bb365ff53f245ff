#include "device/cupti/counter_plan.h"

#include <algorithm>
#include <utility>

namespace roofprof::cupti {
namespace {

// Adds a counter to a group that still fits one pass with it.
bool take(CounterGroup& group, std::size_t index, const ResolvedCounter& counter, const HostProfiler& host) {
  std::vector<std::string> metrics = group.configuration->metrics();
  metrics.insert(metrics.end(), counter.source.metrics.begin(), counter.source.metrics.end());
  auto together = std::make_unique<Configuration>(host, std::move(metrics));
  if (together->passes() > 1) return false;
  group.configuration = std::move(together);
  group.counters.push_back(index);
  return true;
}

void plan_set(MetricSet set, const HostProfiler& host, CounterPlan& plan) {
  const auto has = [&host](std::string_view metric) { return host.has(metric); };
  std::vector<CounterGroup> groups;
  for (ResolvedCounter& counter : resolve(set, host.chip(), has)) {
    const std::size_t index = plan.counters.size();
    plan.counters.push_back(std::move(counter));
    CounterSource& source = plan.counters.back().source;
    if (!source.missing.empty()) continue;
    try {
      auto alone = std::make_unique<Configuration>(host, source.metrics);
      const bool taken = std::ranges::any_of(
          groups, [&](CounterGroup& group) { return take(group, index, plan.counters.back(), host); });
      if (!taken) groups.push_back({{index}, std::move(alone)});
    } catch (const CuptiError& error) {
      source.missing = "it cannot be counted on this system: " + error.found();
    }
  }
  std::ranges::move(groups, std::back_inserter(plan.groups));
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

}  // namespace roofprof::cupti
