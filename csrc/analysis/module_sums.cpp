#include "analysis/module_sums.h"

#include <algorithm>

#include "analysis/rows.h"
#include "core/idle.h"
#include "core/median.h"

namespace roofprof {
void RunTimes::add(const std::vector<std::int64_t>& times) {
  if (times.empty()) return;
  if (by_run.empty()) {
    by_run = times;
    return;
  }
  by_run.resize(std::min(by_run.size(), times.size()));
  for (std::size_t run = 0; run < by_run.size(); ++run) by_run[run] = saturating_add(by_run[run], times[run]);
}

void RunTimes::take_off(std::int64_t ns) {
  for (auto& run_ns : by_run) run_ns = std::max<std::int64_t>(run_ns - ns, 0);
}

std::optional<std::int64_t> RunTimes::at(std::int64_t chosen) const {
  if (chosen < 0 || static_cast<std::size_t>(chosen) >= by_run.size()) return std::nullopt;
  return by_run[static_cast<std::size_t>(chosen)];
}

Timing RunTimes::timing(std::int64_t chosen) const {
  Timing timing;
  timing.time_ns = at(chosen);
  const double middle = median(by_run);
  if (timing.time_ns && by_run.size() > 1 && middle > 0) {
    const auto [least, most] = std::minmax_element(by_run.begin(), by_run.end());
    timing.spread = static_cast<double>(*most - *least) / middle;
  }
  return timing;
}

void ModuleSums::add(const ModuleSums& other) {
  tally += other.tally;
  times.add(other.times.by_run);
  host_times.add(other.host_times.by_run);
  device += other.device;
}

void ModuleSums::take_off(std::int64_t ns) {
  times.take_off(ns);
  if (tally.op_time_ns) *tally.op_time_ns = std::max<std::int64_t>(*tally.op_time_ns - ns, 0);
}

std::vector<ModuleSums> sum_self(const Profile& data) {
  std::vector<ModuleSums> self(data.tree.modules.size());
  for (const auto& bucket : data.counts.ops) self[index_of(bucket.owner.module)].tally.add(bucket, data.roofs);
  if (const auto exposed = exposed_by_module(data)) {
    for (std::size_t id = 0; id < self.size(); ++id) self[id].tally.exposed += (*exposed)[id];
  }
  for (const auto& time : data.times->modules) {
    self[index_of(time.owner.module)].times.add(time.self_ns);
    self[index_of(time.owner.module)].host_times.add(time.host_self_ns);
  }
  if (!data.device) return self;
  const auto device = device_sums(data);
  for (std::size_t id = 0; id < self.size(); ++id) {
    self[id].device = device[id];
    // Some launches fit ops of several shapes, so that these ops have no times; the module's sum has their time.
    self[id].tally.op_time_ns = device[id].op_time_ns;
  }
  for (const auto& hidden : hidden_in_kernels(data)) self[index_of(hidden.owner.module)].take_off(hidden.ns);
  return self;
}

// Parents stand before children, so one walk from the end carries every subtree up.
std::vector<ModuleSums> sum_subtrees(const Profile& data, const std::vector<ModuleSums>& self) {
  std::vector<ModuleSums> inclusive = self;
  for (std::size_t id = data.tree.modules.size(); id-- > 0;) {
    const ModuleId parent = data.tree.modules[id].parent;
    if (parent >= 0) inclusive[index_of(parent)].add(inclusive[id]);
  }
  return inclusive;
}

std::map<ModuleId, CompiledRegion> compiled_regions(const Profile& data, const std::vector<ModuleSums>& self,
                                                    const std::vector<ModuleSums>& inclusive) {
  std::map<ModuleId, CompiledRegion> regions;
  for (std::size_t id = 0; id < data.tree.modules.size(); ++id) {
    const ModuleId holder = data.tree.modules[id].compiled_region;
    if (holder < 0) continue;
    auto [region, fresh] = regions.try_emplace(holder);
    if (fresh) region->second.sums = inclusive[index_of(holder)];
    if (is_within(static_cast<ModuleId>(id), holder, data.tree.modules)) continue;
    region->second.reaches_out = true;
    region->second.sums.add(self[id]);
  }
  return regions;
}

Figures figures_of(const ModuleSums& sums, std::optional<std::int64_t> busy_ns, const Profile& data,
                   std::int64_t ends_ns) {
  Timing timing = sums.times.timing(data.run.runs.chosen);
  if (data.device && timing.time_ns) {
    timing.of_device = true;
    if (busy_ns) {
      timing.device = DeviceWait{*busy_ns, sums.device.idle_ns, ends_ns,
                                 idle_by_observing(data.device->timeline, sums.device.launches)};
    }
    timing.host_ns = sums.host_times.at(data.run.runs.chosen);
  }
  Figures figures = derive_figures(sums.tally, timing, data.roofs, data.times->common_error);
  if (data.device) add_device_figures(sums.device, sums.tally.off_device, figures);
  return figures;
}

}  // namespace roofprof
