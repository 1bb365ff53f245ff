#pragma once
// Which counters are collected together.

#include <memory>
#include <string>
#include <vector>

#include "device/collector.h"
#include "device/cupti/host_profiler.h"
#include "device/cupti/metric_sets.h"

namespace roofprof::cupti {

// Counters that are collected in the same passes. Their metrics stand one after the other in the configuration's.
struct CounterGroup {
  std::vector<std::size_t> counters;  // indices into CounterPlan::counters
  std::unique_ptr<Configuration> configuration;
};

struct CounterPlan {
  std::vector<ResolvedCounter> counters;  // all that were asked for, those that are not to be had among them
  std::vector<CounterGroup> groups;
};

// Groups the counters of each set so that each group is one pass, in which nothing has to be repeated; a counter that
// needs more by itself stands alone. A counter whose metrics the system refuses says so.
CounterPlan plan_counters(const HostProfiler& host, const CounterRequest& request);

}  // namespace roofprof::cupti
