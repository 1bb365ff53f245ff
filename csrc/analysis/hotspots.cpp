#include "analysis/hotspots.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "analysis/exposed.h"
#include "analysis/group.h"
#include "analysis/kernel_rows.h"
#include "analysis/roofline.h"
#include "analysis/rows.h"
#include "core/collective_kinds.h"

namespace roofprof {

namespace {

constexpr std::int64_t kSeenIn = 100;  // waste counts if it is more than 1/kSeenIn of the total's time

GroupRow in_place_of_op(const std::string& module, std::string_view what, std::int64_t time_ns,
                        std::int64_t wasted_ns) {
  GroupRow row;
  row.module = module;
  row.op = std::string(what);
  row.keys = {module, *row.op};
  row.time_ns = time_ns;
  row.wasted_time_ns = wasted_ns;
  return row;
}

GroupRow exposed_communication(const std::string& module, const Exposed& exposed) {
  const auto needed_ns = std::min(exposed.needed_ns, exposed.time_ns);
  auto row = in_place_of_op(module, kExposedCommunication, exposed.time_ns, exposed.time_ns - needed_ns);
  if (exposed.roof_known) row.lower_bound_time_ns = needed_ns;
  if (exposed.roof_known && exposed.time_ns > 0) {
    row.percent_of_roof = 100 * static_cast<double>(needed_ns) / static_cast<double>(exposed.time_ns);
  }
  row.bound = {BoundKind::network, exposed.backend};
  return row;
}

// Puts kernels of compiled code in place of the op "compiled region", whose work is that of other ops.
void put_kernels(const Profile& data, std::vector<GroupRow>& hotspots) {
  if (data.times->compiled_kernels.empty()) return;
  std::erase_if(hotspots, [](const GroupRow& row) { return row.op == kCompiledRegion && row.time_ns; });
  struct Sum {
    Tally tally;
    std::int64_t time_ns = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;  // by module and name
  for (const auto& kernel : data.times->compiled_kernels) {
    auto& sum = sums[{data.tree.modules[index_of(kernel.owner.module)].path, kernel.name}];
    sum.tally.add(bucket_of(kernel, data), data.roofs);
    sum.time_ns = saturating_add(sum.time_ns, kernel.total_ns);
  }
  for (const auto& [key, sum] : sums) {
    GroupRow row;
    Timing timing;
    timing.time_ns = sum.time_ns;
    static_cast<Figures&>(row) = derive_figures(sum.tally, timing, data.roofs);
    row.module = key.first;
    row.op = key.second;
    row.keys = {key.first, key.second};
    hotspots.push_back(std::move(row));
  }
}

// Returns, for each module, the time of its collectives' ops less its exposed communication, in these ops or outside of
// them. On a device nothing is left: the time of an op is that of the kernels that it launched.
std::vector<std::int64_t> communication_left(const Profile& data, const std::vector<Exposed>& exposed) {
  std::vector<std::int64_t> left(data.tree.modules.size());
  if (data.device) return left;
  for (std::size_t id = 0; id < left.size(); ++id) left[id] = -exposed[id].time_ns;
  for (const auto& bucket : data.counts.ops) {
    if (is_communication(bucket.op)) left[index_of(bucket.owner.module)] += bucket.time_ns.value_or(0);
  }
  return left;
}

}  // namespace

GroupRow outside_ops(const Figures& figures, bool on_device, std::int64_t communication_ns) {
  const std::int64_t time_ns = figures.time_ns.value_or(0);
  const std::int64_t outside_ns = figures.op_time_ns ? time_ns - *figures.op_time_ns + communication_ns : 0;
  auto outside = in_place_of_op({}, kOutsideOps, outside_ns, outside_ns);
  outside.keys = {*outside.op};
  if (!on_device) outside.bound = {BoundKind::overhead, ""};
  return outside;
}

std::vector<GroupRow> ops_in_modules(const Profile& data, const std::vector<RooflineRow>& rows, const Figures& total) {
  if (data.roofs.empty()) return {};
  const std::array<std::string, 2> keys = {"module", "op"};
  auto hotspots = group_rows(data, total, keys);
  const auto exposed = exposed_by_module(data);
  const auto communication =
      exposed ? communication_left(data, *exposed) : std::vector<std::int64_t>(data.tree.modules.size());
  const auto ids = row_modules(data);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    GroupRow& outside =
        hotspots.emplace_back(outside_ops(rows[i].self, data.device.has_value(), communication[index_of(ids[i])]));
    outside.module = rows[i].path;
    outside.keys = {rows[i].path, *outside.op};
    if (exposed) hotspots.push_back(exposed_communication(rows[i].path, (*exposed)[index_of(ids[i])]));
  }
  put_kernels(data, hotspots);
  // The rows of exposed communication have the waste of collectives.
  if (exposed) std::erase_if(hotspots, [](const GroupRow& row) { return is_communication(*row.op); });
  return hotspots;
}

std::vector<GroupRow> most_wasting(std::vector<GroupRow> hotspots, std::size_t most) {
  // An op without a roof may waste all of its time: it stands where that would put it, and its waste is not known.
  const auto wasted = [](const GroupRow& row) { return row.wasted_time_ns.value_or(row.time_ns.value_or(0)); };
  std::erase_if(hotspots, [&](const auto& row) { return wasted(row) <= 0; });
  std::ranges::stable_sort(hotspots, [&](const auto& a, const auto& b) { return wasted(a) > wasted(b); });
  hotspots.resize(std::min(hotspots.size(), most));
  return hotspots;
}

std::set<const RooflineRow*> wasting_themselves(const std::vector<RooflineRow>& rows, const Figures& total) {
  std::set<const RooflineRow*> wasting;
  for (const auto& row : rows) {
    if (!row.wasted_time_ns || !row.self.wasted_time_ns || row.time_ns == row.self.time_ns) continue;
    const std::int64_t own_ns = *row.self.wasted_time_ns;
    if (own_ns > *row.wasted_time_ns - own_ns && own_ns > total.time_ns.value_or(0) / kSeenIn) wasting.insert(&row);
  }
  return wasting;
}

}  // namespace roofprof
