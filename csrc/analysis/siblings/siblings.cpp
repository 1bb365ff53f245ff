#include "analysis/siblings/siblings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "analysis/rows.h"
#include "analysis/siblings/new_ids.h"
#include "core/fields.h"
#include "core/median.h"
#include "roofprof/rows.h"

namespace roofprof {

namespace {

// ---- which subtrees are equal

// Facts in a row, as text that is equal where they are.
class FactText {
 public:
  template <class... Facts>
  explicit FactText(const Facts&... facts) {
    (add(facts), ...);
  }
  void add(std::string_view text) {
    add(std::ssize(text));
    text_ += text;
  }
  template <class Number>
    requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void add(Number number) {
    text_ += std::to_string(static_cast<std::int64_t>(number));
    text_ += ';';
  }
  template <class Item>
  void add(const std::vector<Item>& items) {
    add(std::ssize(items));
    for (const auto& item : items) add(item);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string facts_of_bucket(const OpBucket& bucket) {
  const Work& work = bucket.work;
  FactText facts(bucket.op, bucket.shapes.tensors, bucket.shapes.others, bucket.owner.phase, bucket.dtype,
                 bucket.costed, bucket.time_ns.has_value(), bucket.calls, bucket.link_bytes, work.macs,
                 work.causal_macs, work.read_bytes, work.write_bytes, work.updated_bytes, work.input_elements,
                 work.output_elements);
  for (const std::int64_t count : work.operations) facts.add(count);
  return facts.take();
}

std::string facts_of_module(const Module& module, const Profile& data) {
  const auto unobserved = data.counts.unobserved.find(module.path);
  return FactText(module.type, module.has_forward, module.calls_visible, module.inferred, module.compiled_region >= 0,
                  module.output_bytes.has_value(), module.params, module.trainable_params, module.param_bytes,
                  module.buffer_bytes, module.output_bytes.value_or(0), module.input_shapes, module.output_shapes,
                  unobserved == data.counts.unobserved.end() ? 0 : unobserved->second)
      .take();
}

using Children = std::vector<std::vector<ModuleId>>;

Children children_of(const Profile& data) {
  const auto exists = existing_rows(data);
  Children children(data.tree.modules.size());
  for (std::size_t id = 0; id < data.tree.modules.size(); ++id) {
    const ModuleId parent = data.tree.modules[id].parent;
    if (parent >= 0 && exists[id]) children[index_of(parent)].push_back(static_cast<ModuleId>(id));
  }
  return children;
}

// Returns the name without the number at its end.
std::string_view stem_of(std::string_view name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); }

// Returns a number for each module, which modules with equal subtrees share. Their own names do not matter, those below
// do.
std::vector<std::size_t> subtree_kinds(const Profile& data, const Children& children) {
  std::vector<std::vector<std::string>> facts(data.tree.modules.size());
  for (const auto& bucket : data.counts.ops) facts[index_of(bucket.owner.module)].push_back(facts_of_bucket(bucket));
  for (const auto& time : data.times->modules) {
    FactText text("time", time.owner.phase, time.calls, time.self_ns.size(), time.host_self_ns.size());
    facts[index_of(time.owner.module)].push_back(text.take());
  }
  for (const auto& counters : data.device->counters.modules)
    facts[index_of(counters.owner.module)].push_back(FactText("counters", counters.owner.phase).take());
  std::map<std::string, std::size_t> known;
  std::vector<std::size_t> kinds(data.tree.modules.size());
  for (std::size_t id = data.tree.modules.size(); id-- > 0;) {  // children before parents
    std::ranges::sort(facts[id]);
    FactText text(facts_of_module(data.tree.modules[id], data));
    for (const auto& fact : facts[id]) text.add(fact);
    text.add("below");
    for (const ModuleId child : children[id]) {
      // Names of traces have the number of the instance, which each has for itself.
      text.add(!data.origin.imported ? own_name(data, child) : stem_of(own_name(data, child)));
      text.add(kinds[index_of(child)]);
    }
    kinds[id] = known.try_emplace(text.take(), known.size()).first->second;
  }
  return kinds;
}

// ---- which of them are a group

struct NumberedName {
  std::string_view stem;
  int number = 0;
};

// Returns "conv" and 12 for "conv12"; empty for a name without a number, or with one that is not as numbers are
// written.
std::optional<NumberedName> numbered(std::string_view name) {
  constexpr std::size_t kMostDigits = 9;
  const std::size_t digits = name.size() - stem_of(name).size();
  const std::string_view number = name.substr(name.size() - digits);
  if (digits == 0 || digits > kMostDigits || (digits > 1 && number.front() == '0')) return std::nullopt;
  NumberedName result{name.substr(0, name.size() - digits)};
  std::from_chars(number.data(), number.data() + number.size(), result.number);
  return result;
}

std::vector<EqualSiblings> groups_below(const Profile& data, ModuleId parent, const Children& children,
                                        const std::vector<std::size_t>& kinds) {
  struct Open {
    EqualSiblings group;
    std::size_t last = 0;  // position of its last member among the children
  };
  std::map<std::pair<std::string_view, std::size_t>, Open> open;
  std::vector<EqualSiblings> groups;
  const auto close = [&](EqualSiblings group) {
    if (group.size() >= kFewestFolded) groups.push_back(std::move(group));
  };
  const auto& siblings = children[index_of(parent)];
  for (std::size_t at = 0; at < siblings.size(); ++at) {
    const auto id = index_of(siblings[at]);
    const auto name = numbered(own_name(data, siblings[at]));
    if (!name) continue;
    auto& [group, last] = open[{name->stem, kinds[id]}];
    const bool is_step = children[id].empty();
    if (is_step && !group.empty() && at != last + 1) close(std::exchange(group, {}));
    group.push_back(siblings[at]);
    last = at;
  }
  for (auto& [key, last] : open) close(std::move(last.group));
  return groups;
}

}  // namespace

std::string_view own_name(const Profile& data, ModuleId id) {
  const std::string_view path = data.tree.modules[index_of(id)].path;
  const ModuleId parent = data.tree.modules[index_of(id)].parent;
  if (parent < 0) return path;
  const std::string& above = data.tree.modules[index_of(parent)].path;
  return !above.empty() && path.starts_with(above + ".") ? path.substr(above.size() + 1) : path;
}

std::string name_of_group(const Profile& data, const EqualSiblings& group) {
  std::vector<std::pair<int, int>> ranges;
  for (const ModuleId id : group) {
    const int number = numbered(own_name(data, id)).value().number;
    if (!ranges.empty() && ranges.back().second + 1 == number) {
      ranges.back().second = number;
    } else {
      ranges.emplace_back(number, number);
    }
  }
  constexpr std::size_t kMostPieces = 3;
  std::string name(numbered(own_name(data, group.front())).value().stem);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0) name += ", ";
    if (ranges.size() > kMostPieces && i == 2) {
      name += "..., ";
      i = ranges.size() - 1;
    }
    name += std::to_string(ranges[i].first);
    if (ranges[i].second > ranges[i].first) name += "-" + std::to_string(ranges[i].second);
  }
  return name;
}

FoldingPlan plan_folding(const Profile& data) {
  const Children children = children_of(data);
  const auto kinds = subtree_kinds(data, children);
  FoldingPlan plan;
  plan.into.resize(data.tree.modules.size());
  std::iota(plan.into.begin(), plan.into.end(), ModuleId{0});
  for (std::size_t id = 0; id < data.tree.modules.size(); ++id) {
    const auto parent = static_cast<ModuleId>(id);
    if (plan.into[id] != parent) continue;
    for (auto& group : groups_below(data, parent, children, kinds)) {
      // Equal subtrees are walked side by side.
      for (std::size_t i = 1; i < group.size(); ++i) {
        std::vector<std::pair<ModuleId, ModuleId>> pending = {{group[i], group.front()}};
        while (!pending.empty()) {
          const auto [from, to] = pending.back();
          pending.pop_back();
          plan.into[index_of(from)] = to;
          const auto& below_from = children[index_of(from)];
          const auto& below_to = children[index_of(to)];
          for (std::size_t c = 0; c < below_from.size(); ++c) pending.emplace_back(below_from[c], below_to[c]);
        }
      }
      const ModuleId first = group.front();
      plan.groups.emplace(first, std::move(group));
    }
  }
  // The module that another was folded into may have been folded after it, because inner groups come after outer ones.
  for (auto& into : plan.into) {
    while (plan.into[index_of(into)] != into) into = plan.into[index_of(into)];
  }
  return plan;
}

namespace {

// ---- the folded profile

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

// Returns the memory of equal siblings together, the largest first.
std::vector<AliveMemory> added_up(const std::vector<AliveMemory>& alive) {
  std::vector<AliveMemory> sums;
  std::map<std::tuple<MemoryCategory, ModuleId, Phase, bool>, std::size_t> place_of;
  for (const auto& one : alive) {
    const auto [place, is_new] = place_of.try_emplace({one.category, one.module, one.phase, one.before}, sums.size());
    if (is_new) sums.push_back({one.category, one.module, one.phase, one.before});
    auto& sum = sums[place->second];
    sum.storages = saturating_add(sum.storages, one.storages);
    sum.bytes = saturating_add(sum.bytes, one.bytes);
  }
  std::ranges::stable_sort(sums, std::greater(), &AliveMemory::bytes);
  return sums;
}

// Returns the parts of a kernel that equal siblings have together, the largest first.
std::vector<KernelPart> added_up(const std::vector<KernelPart>& parts) {
  std::vector<KernelPart> sums;
  for (const auto& part : parts) {
    const auto known = std::ranges::find(sums, part.module, &KernelPart::module);
    known == sums.end() ? sums.push_back(part) : void(known->share += part.share);
  }
  std::ranges::stable_sort(sums, std::greater(), &KernelPart::share);
  return sums;
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

// Turns the row of the sums into that of a member. `in_region`: how many compiled regions its share is one of.
void take_mean(RooflineRow& row, std::int64_t members, std::int64_t in_region) {
  if (members > 1) {  // the figures of a single member are not a mean
    row.peak_memory.reset();
    row.kept_memory.reset();
  }
  divide_figures(static_cast<Figures&>(row), members);
  divide_figures(row.self, members);
  for (auto* sum : {&row.calls, &row.fused_bytes, &row.fused_bound_time_ns, &row.shared_time_ns}) {
    if (*sum) divide_rounded(**sum, members);
  }
  if (row.work_share) *row.work_share *= static_cast<double>(in_region) / static_cast<double>(members);
}

// ---- a slow one among equals

// A member stands out if it is more than this many median deviations from the median (five are 3.4 standard deviations
// of times that scatter normally), and more than this ratio. Both limits work for up to half of the members.
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

Folding fold_siblings(const std::shared_ptr<const Profile>& profile) {
  const Profile& data = *profile;
  const FoldingPlan plan = plan_folding(data);
  Folding folding{profile, {}};
  if (plan.groups.empty()) {
    for (std::size_t id = 0; id < data.tree.modules.size(); ++id)
      folding.modules.push_back({{static_cast<ModuleId>(id)}, 1});
    return folding;
  }
  const auto folded_data = std::make_shared<Profile>(data);
  folding.data = folded_data;
  auto& modules = folded_data->tree.modules;
  modules.clear();
  std::vector<ModuleId> new_ids(data.tree.modules.size());
  for (std::size_t id = 0; id < data.tree.modules.size(); ++id) {
    const auto old = static_cast<ModuleId>(id);
    if (plan.into[id] != old) {  // those that others are folded into come first
      new_ids[id] = new_ids[index_of(plan.into[id])];
      folding.modules[index_of(new_ids[id])].members.push_back(old);
      continue;
    }
    new_ids[id] = static_cast<ModuleId>(modules.size());
    Module& module = modules.emplace_back(data.tree.modules[id]);
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
  renumber_modules(*folded_data, new_ids);
  if (folded_data->times) {
    for (auto& kernel : folded_data->times.make().compiled_kernels) kernel.parts = added_up(kernel.parts);
  }
  if (folded_data->device) {
    auto& timeline = folded_data->device.make().timeline;
    timeline.modules = added_up(timeline.modules);
  }
  folded_data->counts.memory.alive = added_up(folded_data->counts.memory.alive);
  // Medians over ranks do not add up: add_mean_over_ranks has those of equal siblings.
  if (auto* merged = std::get_if<MergedRanks>(&folded_data->origin.kind)) merged->modules.clear();
  return folding;
}

std::map<std::string_view, std::int64_t> members_by_path(const Folding& folding) {
  std::map<std::string_view, std::int64_t> members;
  for (std::size_t id = 0; id < folding.modules.size(); ++id)
    members.try_emplace(folding.data->tree.modules[id].path, std::ssize(folding.modules[id].members));
  return members;
}

std::vector<FoldedRow> folded_rows(const Folding& folding, const std::vector<RooflineRow>& sums, const Profile& data,
                                   const std::vector<RooflineRow>& rows) {
  std::vector<std::size_t> row_of(data.tree.modules.size());
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
    const ModuleId region = folding.data->tree.modules[index_of(id)].compiled_region;
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

const RooflineRow& Siblings::mean() const& {
  if (rows.empty()) {
    throw LogicError("roofprof: these Siblings have no rows: they are no report's, or were moved from");
  }
  return rows.front();
}

}  // namespace roofprof
