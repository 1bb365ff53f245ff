#include "analysis/siblings/siblings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>
#include <utility>

#include "analysis/derivations.h"
#include "analysis/rows.h"
#include "analysis/siblings/equal_siblings.h"
#include "core/fields.h"
#include "core/median.h"

namespace roofprof {

namespace {

// ---- the folded profile

template <class Items>
void move_to(Items& items, const std::vector<ModuleId>& new_ids) {
  for (auto& item : items) item.module = new_ids[index_of(item.module)];
}

std::vector<DeviceTime> added_up(const std::vector<DeviceTime>& times) {
  std::map<ModuleId, DeviceTime> sums;
  for (const auto& time : times) {
    auto& sum = sums[time.module];
    sum.module = time.module;
    sum.busy_ns = saturating_add(sum.busy_ns, time.busy_ns);
    sum.idle_ns = saturating_add(sum.idle_ns, time.idle_ns);
    sum.self_busy_ns = saturating_add(sum.self_busy_ns, time.self_busy_ns);
  }
  std::vector<DeviceTime> result;
  result.reserve(sums.size());
  for (const auto& [id, sum] : sums) result.push_back(sum);
  return result;
}

// ---- means

constexpr bool adds_up(Unit unit) {
  return unit == Unit::macs || unit == Unit::operations || unit == Unit::by_dtype || unit == Unit::bytes ||
         unit == Unit::nanoseconds || unit == Unit::count;
}

void divide_rounded(std::int64_t& sum, std::int64_t by) {
  const std::int64_t rest = sum % by;
  sum /= by;
  if (2 * std::abs(rest) >= by) sum += rest > 0 ? 1 : -1;
}

void divide_figures(Figures& figures, std::int64_t by) {
  for_each_figure([&](std::string_view, Unit unit, auto member) {
    auto& value = figures.*member;  // NOLINT(misc-const-correctness): of some instances
    using Value = std::remove_cvref_t<decltype(value)>;
    if (!adds_up(unit)) return;
    if constexpr (std::is_same_v<Value, std::int64_t>) {
      divide_rounded(value, by);
    } else if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) {
      if (value) divide_rounded(*value, by);
    } else if constexpr (std::is_same_v<Value, std::array<std::int64_t, kDTypeCount>>) {
      for (auto& count : value) divide_rounded(count, by);
    }
  });
  if (figures.wasted_time_ns && figures.time_ns && figures.lower_bound_time_ns) {
    figures.wasted_time_ns = *figures.time_ns - *figures.lower_bound_time_ns;
  }
}

// The row of the sums becomes that of a member. `in_region`: how many compiled regions its share is one of.
void take_mean(RooflineRow& row, std::int64_t members, std::int64_t in_region) {
  if (members > 1) {  // those of one member, which are no mean
    row.peak_memory.reset();
    row.kept_memory.reset();
  }
  divide_figures(static_cast<Figures&>(row), members);
  divide_figures(row.self, members);
  if (row.calls) divide_rounded(*row.calls, members);
  if (row.work_share) *row.work_share *= static_cast<double>(in_region) / static_cast<double>(members);
}

// ---- a slow one among equals

// More than this is no noise, and large enough to be looked at: so many median deviations (five are 3.4 standard
// deviations of times that scatter normally), and this ratio to the median. Both hold for up to half of the members.
constexpr double kDeviations = 5;
constexpr double kWorthNaming = 1.2;

void look_at_times(const std::vector<const RooflineRow*>& members, Siblings& group) {
  std::vector<std::int64_t> times;
  for (const auto* row : members) {
    if (!row->time_ns) return;
    times.push_back(*row->time_ns);
  }
  const double middle = median(times);
  if (times.empty() || middle <= 0) return;
  const auto [least, most] = std::ranges::minmax(times);
  group.spread = static_cast<double>(most - least) / middle;
  std::vector<std::int64_t> deviations;
  deviations.reserve(times.size());
  for (const auto ns : times) deviations.push_back(std::llround(std::abs(static_cast<double>(ns) - middle)));
  const double beyond = middle + kDeviations * median(deviations);
  if (static_cast<double>(most) <= std::max(beyond, kWorthNaming * middle)) return;
  const auto slowest = std::ranges::max_element(members, {}, [](const auto* row) { return *row->time_ns; });
  group.slowest = (*slowest)->path;
  group.slowest_ratio = static_cast<double>(most) / middle;
}

}  // namespace

Folding fold_siblings(const std::shared_ptr<const ProfileData>& profile) {
  const ProfileData& data = *profile;
  record_derivation("folding", data);
  const FoldingPlan plan = plan_folding(data);
  Folding folding{profile, {}};
  if (plan.groups.empty()) {
    for (std::size_t id = 0; id < data.modules.size(); ++id)
      folding.modules.push_back({{static_cast<ModuleId>(id)}, 1});
    return folding;
  }
  const auto folded_data = std::make_shared<ProfileData>(data);
  folding.data = folded_data;
  auto& modules = folded_data->modules;
  modules.clear();
  std::vector<ModuleId> new_ids(data.modules.size());
  for (std::size_t id = 0; id < data.modules.size(); ++id) {
    const auto old = static_cast<ModuleId>(id);
    if (plan.into[id] != old) {  // those that others are folded into come first
      new_ids[id] = new_ids[index_of(plan.into[id])];
      folding.modules[index_of(new_ids[id])].members.push_back(old);
      continue;
    }
    new_ids[id] = static_cast<ModuleId>(modules.size());
    Module& module = modules.emplace_back(data.modules[id]);
    FoldedModule& folded = folding.modules.emplace_back(FoldedModule{{old}, 1});
    const auto place = [&](ModuleId& other) {
      if (other >= 0) other = new_ids[index_of(other)];
    };
    place(module.same_as);
    if (module.same_as == new_ids[id]) module.same_as = -1;
    const auto group = plan.groups.find(old);
    if (group != plan.groups.end()) folded.count = std::ssize(group->second);
    const std::string name =
        group == plan.groups.end() ? std::string(own_name(data, old)) : name_of_group(data, group->second);
    if (module.parent < 0) continue;
    const bool below = own_name(data, old).size() < module.path.size();
    place(module.parent);
    module.path = below ? modules[index_of(module.parent)].path + "." + name : name;
  }
  for (auto& module : modules) {  // regions may come after what runs in them
    if (module.compiled_region >= 0) module.compiled_region = new_ids[index_of(module.compiled_region)];
  }
  move_to(folded_data->ops, new_ids);
  move_to(folded_data->times, new_ids);
  move_to(folded_data->kernels, new_ids);
  move_to(folded_data->device_times, new_ids);
  move_to(folded_data->module_counters, new_ids);
  move_to(folded_data->collectives.exposed_in, new_ids);
  folded_data->device_times = added_up(folded_data->device_times);
  return folding;
}

std::int64_t members_at(const Folding& folding, std::string_view path) {
  const auto found = std::ranges::find(folding.data->modules, path, &Module::path);
  if (found == folding.data->modules.end()) return 1;
  return std::ssize(folding.modules[static_cast<std::size_t>(found - folding.data->modules.begin())].members);
}

std::vector<FoldedRow> folded_rows(const Folding& folding, const std::vector<RooflineRow>& sums,
                                   const ProfileData& data, const std::vector<RooflineRow>& rows) {
  std::vector<std::size_t> row_of(data.modules.size());
  const auto ids = row_modules(data);
  for (std::size_t i = 0; i < ids.size(); ++i) row_of[index_of(ids[i])] = i;
  const auto members_of = [&](ModuleId id) { return std::ssize(folding.modules[index_of(id)].members); };

  const auto parents = row_parents(*folding.data);
  std::vector<FoldedRow> folded;
  folded.reserve(sums.size());
  for (const ModuleId id : row_modules(*folding.data)) {
    const FoldedModule& module = folding.modules[index_of(id)];
    const RooflineRow& sum = sums[folded.size()];
    FoldedRow& line = folded.emplace_back();
    line.count = module.count;
    line.parent = parents[folded.size() - 1];
    for (const ModuleId member : module.members) line.members.push_back(row_of[index_of(member)]);
    if (line.members.size() == 1) {
      line.mean = rows[line.members.front()];
      continue;
    }
    line.mean = sum;
    const ModuleId region = folding.data->modules[index_of(id)].compiled_region;
    take_mean(line.mean, members_of(id), region < 0 ? 1 : members_of(region));
  }
  return folded;
}

std::vector<Siblings> sibling_groups(const std::vector<RooflineRow>& rows, const std::vector<FoldedRow>& folded) {
  std::vector<Siblings> groups;
  for (auto row = folded.begin(); row != folded.end(); ++row) {
    if (row->count == 1) continue;
    Siblings& group = groups.emplace_back();
    group.name = row->mean.path;
    group.count = row->count;
    std::vector<const RooflineRow*> members;
    for (const std::size_t member : row->members) members.push_back(&rows[member]);
    for (const auto* member : members) group.paths.push_back(member->path);
    group.rows.push_back(row->mean);
    for (auto below = row + 1; below != folded.end() && below->parent >= row - folded.begin(); ++below) {
      group.rows.push_back(below->mean);
    }
    look_at_times(members, group);
  }
  return groups;
}

}  // namespace roofprof
