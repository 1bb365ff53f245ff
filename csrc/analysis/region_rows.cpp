#include "analysis/region_rows.h"

#include <set>
#include <utility>

#include "analysis/module_sums.h"
#include "analysis/rows.h"
#include "analysis/within.h"

namespace roofprof {
namespace {

std::size_t at(RegionId region) { return static_cast<std::size_t>(region); }

// Adds the counters of ranges that are whole modules. A region is not known if a module in it launched kernels and has
// no range.
void add_counters_of_modules(const Profile& data, const CounterReader& reader, std::vector<ModuleSums>& sums) {
  for (auto& region : sums) {
    region.device.measured = reader.nothing();
    region.device.count_all();
  }
  std::set<std::pair<RegionId, ModuleId>> counted;
  for (const auto& range : data.device->counters.modules) {
    sums[at(range.owner.region)].device.measured += reader.read(range.counters);
    counted.emplace(range.owner.region, range.owner.module);
  }
  for (const auto& kernel : data.device->kernels) {
    const bool known =
        kernel.kind != KernelKind::kernel || counted.contains({kernel.owner.region, kernel.owner.module});
    if (!known) sums[at(kernel.owner.region)].device.measured = kNotMeasured;
  }
}

// Returns the sums of each region by id, without the regions inside it.
std::vector<ModuleSums> sum_regions(const Profile& data) {
  std::vector<ModuleSums> sums(data.tree.regions.size() + 1);
  const auto exists = existing_rows(data);
  for (const auto& bucket : data.counts.ops) sums[at(bucket.owner.region)].tally.add(bucket, data.roofs);
  if (const auto parts = exposed_parts(data)) {
    for (const auto& part : *parts) sums[at(part.region)].tally.exposed += part.exposed;
  }
  for (const auto& time : data.times->modules) {
    if (!exists[index_of(time.owner.module)]) continue;
    sums[at(time.owner.region)].times.add(time.self_ns);
    sums[at(time.owner.region)].host_times.add(time.host_self_ns);
  }
  if (!data.device) return sums;
  const CounterReader reader(data.device->counters.sources);
  for (auto& region : sums) region.device.measured = reader.nothing();
  for (const auto& kernel : data.device->kernels) sums[at(kernel.owner.region)].device += sums_of(kernel, reader);
  const auto only_copy = ops_that_only_copy(data);
  for (std::size_t i = 0; i < only_copy.size(); ++i) {
    if (only_copy[i]) sums[at(data.counts.ops[i].owner.region)].device.add_uncounted(data.counts.ops[i].work);
  }
  if (data.device->counters.ranges == CounterRanges::modules) add_counters_of_modules(data, reader, sums);
  for (auto& region : sums) region.tally.op_time_ns = region.device.op_time_ns;
  for (const auto& hidden : hidden_in_kernels(data)) sums[at(hidden.owner.region)].take_off(hidden.ns);
  return sums;
}

void forget_times(ModuleSums& sums) {
  sums.times = {};
  sums.host_times = {};
  sums.tally.op_time_ns.reset();
}

std::vector<RegionId> regions_in_order(const Profile& data) {
  std::vector<std::vector<RegionId>> children(data.tree.regions.size() + 1);
  for (auto id = static_cast<RegionId>(data.tree.regions.size()); id > 0; --id) {
    children[at(data.tree.regions[at(id) - 1].parent)].push_back(id);
  }
  std::vector<RegionId> order;
  auto pending = children[at(kNoRegion)];
  while (!pending.empty()) {
    const auto id = pending.back();
    pending.pop_back();
    order.push_back(id);
    pending.insert(pending.end(), children[at(id)].begin(), children[at(id)].end());
  }
  return order;
}

}  // namespace

std::vector<RooflineRow> region_rows(const Profile& data) {
  if (data.tree.regions.empty()) return {};
  auto self = sum_regions(data);
  auto inclusive = self;
  for (std::size_t id = self.size(); id-- > 1;) {
    const auto& region = data.tree.regions[id - 1];
    inclusive[at(region.parent)].add(inclusive[id]);
    // The timed runs did not enter this region: they did its work in the one around it.
    if (data.run.runs.chosen < 0 || !region.wall_ns.empty() || region.calls == 0) continue;
    forget_times(inclusive[id]);
    forget_times(self[id]);
    forget_times(self[at(region.parent)]);
  }
  const auto exists = existing_regions(data);
  std::vector<std::int64_t> depth(self.size());
  std::vector<RooflineRow> rows;
  const auto add = [&](RegionId id, const ModuleSums& all, std::string path) -> RooflineRow& {
    RooflineRow& row = rows.emplace_back();
    static_cast<Figures&>(row) = figures_of(all, std::nullopt, data);
    row.self = figures_of(self[at(id)], std::nullopt, data);
    row.path = std::move(path);
    row.depth = depth[at(id)];
    return row;
  };
  for (const auto id : regions_in_order(data)) {
    if (!exists[at(id)]) continue;
    const auto& region = data.tree.regions[at(id) - 1];
    if (region.parent != kNoRegion && exists[at(region.parent)]) depth[at(id)] = depth[at(region.parent)] + 1;
    auto& row = add(id, inclusive[at(id)], path_of_region(data, id));
    row.type = kRegionType;
    row.calls = region.calls;
    if (std::cmp_less(data.run.runs.chosen, region.wall_ns.size()) && data.run.runs.chosen >= 0) {
      row.wall_ns = region.wall_ns[static_cast<std::size_t>(data.run.runs.chosen)];
    }
  }
  if (exists[at(kNoRegion)]) add(kNoRegion, self[at(kNoRegion)], std::string(kNoRegionName));
  return rows;
}

}  // namespace roofprof
