#include "figures/wasters.h"

#include <algorithm>
#include <array>
#include <string>

#include "figures/derived_figures.h"

namespace roofprof {

namespace {

constexpr std::int64_t kSeenIn = 100;  // one part in so many of the total's time is seen

}  // namespace

GroupRow outside_ops(const Figures& figures, bool on_device) {
  GroupRow outside;
  outside.op = "(outside ops)";
  outside.keys = {*outside.op};
  outside.time_ns = figures.time_ns.value_or(0) - figures.op_time_ns.value_or(figures.time_ns.value_or(0));
  outside.wasted_time_ns = outside.time_ns;
  if (!on_device) outside.bound = {BoundKind::overhead, ""};
  return outside;
}

std::vector<GroupRow> top_wasters(const ProfileData& data, const std::vector<RooflineRow>& rows, const Figures& total,
                                  std::size_t most) {
  if (data.ceilings.empty()) return {};
  const std::array<std::string, 2> keys = {"module", "op"};
  auto wasters = group_rows(data, total, keys);
  for (const auto& row : rows) {
    GroupRow& outside = wasters.emplace_back(outside_ops(row.self, data.device_timed));
    outside.module = row.path;
    outside.keys = {row.path, *outside.op};
  }
  // Of an op without a roof all of its time may be wasted: it is shown, as not known, where it would stand then.
  const auto wasted = [](const GroupRow& row) { return row.wasted_time_ns.value_or(row.time_ns.value_or(0)); };
  std::erase_if(wasters, [&](const auto& row) { return wasted(row) <= 0; });
  std::ranges::stable_sort(wasters, [&](const auto& a, const auto& b) { return wasted(a) > wasted(b); });
  wasters.resize(std::min(wasters.size(), most));
  return wasters;
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
