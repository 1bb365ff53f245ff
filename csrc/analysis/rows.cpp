#include "analysis/rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <string>

#include "analysis/closest.h"
#include "analysis/fused_bound.h"
#include "analysis/module_sums.h"
#include "core/check_indices.h"
#include "core/median.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

// Returns the figures of a module inside a compiled region: those of its work alone, even if a part of its subtree was
// timed.
Figures figures_in_region(const ModuleSums& sums, const Profile& data) {
  auto tally = sums.tally;
  tally.op_time_ns.reset();
  return derive_figures(tally, {}, data.roofs, data.times->common_error);
}

// Copies the measured figures, without those that compare them with the work.
void copy_measured(const Figures& from, Figures& to) {
  to.time_ns = from.time_ns;
  to.time_spread = from.time_spread;
  to.busy_ns = from.busy_ns;
  to.idle_ns = from.idle_ns;
  to.utilization = from.utilization;
  to.host_time_ns = from.host_time_ns;
  to.dram_bytes = from.dram_bytes;
  to.dram_read_bytes = from.dram_read_bytes;
  to.dram_write_bytes = from.dram_write_bytes;
  to.l2_bytes = from.l2_bytes;
  to.l1_bytes = from.l1_bytes;
  to.dram_bandwidth = from.dram_bandwidth;
  to.executed_flops = from.executed_flops;
  to.kernel_count = from.kernel_count;
}

// Returns the time of a row that runs a compiled region, and work that is only a part of the region's: they are not
// compared.
Figures figures_apart(const Figures& own, const ModuleSums& sums, const Profile& data) {
  Figures figures = figures_in_region(sums, data);
  copy_measured(own, figures);
  figures.op_time_ns = sums.tally.op_time_ns;
  return figures;
}

// Returns the figures of the module itself. A module that ran nothing itself (a container) while its subtree was timed
// took no time: a known zero.
Figures self_figures_of(ModuleSums self, const Figures& inclusive, bool holds_region,
                        std::optional<std::int64_t> busy_ns, const Profile& data) {
  if (inclusive.time_ns && self.times.by_run.empty() && self.tally.buckets == 0) {
    self.times.by_run.assign(static_cast<std::size_t>(data.run.runs.chosen) + 1, 0);
  }
  const Figures own = figures_of(self, busy_ns, data);
  // Its own time and bytes are the region's, its own work is not: nothing joins them but the sum over the subtree.
  return holds_region ? figures_apart(own, self, data) : own;
}

// Returns the work of a part as a percentage of the whole's: by lower bounds, or by FLOPs where roofs are missing.
std::optional<double> share_of(const Figures& part, const Figures& whole) {
  const auto percent = [](std::int64_t some, std::int64_t all) -> std::optional<double> {
    if (all <= 0) return std::nullopt;
    return 100.0 * static_cast<double>(some) / static_cast<double>(all);
  };
  if (whole.incomplete) return std::nullopt;
  if (part.lower_bound_time_ns && whole.lower_bound_time_ns)
    return percent(*part.lower_bound_time_ns, *whole.lower_bound_time_ns);
  return percent(part.flops, whole.flops);
}

// Returns the path of the region of that name; empty where there is none, or more than one.
std::optional<std::string_view> row_of_region(const Profile& data, std::string_view name) {
  std::optional<std::string_view> path;
  for (const auto& module : data.tree.modules) {
    if (module.type != kRegionType || module.parent < 0) continue;
    const auto& parent = data.tree.modules[static_cast<std::size_t>(module.parent)].path;
    if (std::string_view(module.path).substr(parent.empty() ? 0 : parent.size() + 1) != name) continue;
    if (path) return std::nullopt;
    path = module.path;
  }
  return path;
}

std::vector<ModuleId> tree_order(const Profile& data) {
  std::vector<std::vector<ModuleId>> children(data.tree.modules.size());
  std::vector<ModuleId> pending;
  const auto count = static_cast<ModuleId>(data.tree.modules.size());
  for (ModuleId id = count - 1; id >= 0; --id) {
    const ModuleId parent = data.tree.modules[index_of(id)].parent;
    if (parent >= 0) {
      children[index_of(parent)].push_back(id);
    } else if (id != kModel) {
      pending.push_back(id);
    }
  }
  pending.push_back(kModel);
  std::vector<ModuleId> order;
  order.reserve(data.tree.modules.size());
  while (!pending.empty()) {
    const ModuleId id = pending.back();
    pending.pop_back();
    order.push_back(id);
    pending.insert(pending.end(), children[index_of(id)].begin(), children[index_of(id)].end());
  }
  return order;
}

void copy_facts(const Module& module, RooflineRow& row) {
  row.path = module.path;
  row.type = module.type;
  row.params_known = module.params_known;
  row.params = module.params;
  row.trainable_params = module.trainable_params;
  row.param_bytes = module.param_bytes;
  row.buffer_bytes = module.buffer_bytes;
  row.input_shapes = module.input_shapes;
  row.output_shapes = module.output_shapes;
  row.output_bytes = module.output_bytes;
  row.peak_memory = module.peak_memory;
  row.kept_memory = module.kept_memory;
  row.inferred = module.inferred;
}

std::optional<std::int64_t> chosen_wall(const Runs& runs) {
  if (runs.chosen < 0) return std::nullopt;
  return runs.total_ns[static_cast<std::size_t>(runs.chosen)];
}

// Returns half the range from the shortest to the longest: a median is about that well known.
double noise_of(const std::vector<std::int64_t>& times_ns) {
  const auto [shortest, longest] = std::ranges::minmax(times_ns);
  return static_cast<double>(longest - shortest) / 2;
}

// Returns the busy time; empty where it is not known: for just one region, or where kernels ran one by one.
std::optional<std::int64_t> known_busy(std::int64_t busy_ns, const Profile& data) {
  const bool one_by_one = data.device->timeline.modules.empty() && !data.device->kernels.empty();  // as ncu runs them
  return !data.origin.part && !one_by_one ? std::optional(busy_ns) : std::nullopt;
}

// The cost of a module or region grows with its depth in the tree, and a small file could nest them without end. A
// region's path has the names of all regions around it, and the observer keeps no more than a thousand regions; calls
// of modules nest no deeper than a thread's stack lets them.
constexpr std::int32_t kDeepestRegion = 1000;
constexpr std::int32_t kDeepestModule = 10'000;

InvalidArgument too_deep(const std::string& what, const std::string& name, std::int32_t most) {
  return InvalidArgument(what + " '" + shown(name) + "' is nested more than " + std::to_string(most) + " deep");
}

void check_regions(const Profile& data) {
  const auto count = std::ssize(data.tree.regions);
  std::vector<std::int32_t> depth(data.tree.regions.size() + 1);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto& region = data.tree.regions[static_cast<std::size_t>(i)];
    if (region.parent < 0 || region.parent > i) {
      throw InvalidArgument("region '" + shown(region.name) + "' comes before the region around it");
    }
    const auto own = static_cast<std::size_t>(i) + 1;
    depth[own] = depth[static_cast<std::size_t>(region.parent)] + 1;
    if (depth[own] > kDeepestRegion) throw too_deep("region", region.name, kDeepestRegion);
  }
  const auto check = [&](const auto& items, const std::string& what) {
    for (const auto& item : items) {
      if (item.owner.region < 0 || item.owner.region > count)
        throw InvalidArgument(what + " ran in no region of the profile");
    }
  };
  check(data.counts.ops, "an op");
  check(data.times->modules, "a module");
  check(data.device->kernels, "a kernel");
  check(data.times->compiled_kernels, "a kernel");
  check(data.device->counters.modules, "a counter");
}

// Each op, time, kernel and counter belongs to a module that is there.
void check_modules(const Profile& data) {
  const auto check = [&](ModuleId id, std::string_view what, const std::string* name = nullptr) {
    if (id >= 0 && id < std::ssize(data.tree.modules)) return;
    const std::string named(name == nullptr ? std::string() : " '" + shown(*name) + "'");
    throw InvalidArgument(std::string(what) + named + " belongs to no module of the profile");
  };
  for (const auto& bucket : data.counts.ops) check(bucket.owner.module, "op", &bucket.op);
  for (const auto& time : data.times->modules) check(time.owner.module, "a time");
  for (const auto& kernel : data.device->kernels) {
    check(kernel.owner.module, "kernel", &kernel.name);
    if (kernel.bucket >= std::ssize(data.counts.ops)) {
      throw InvalidArgument("kernel '" + shown(kernel.name) + "' belongs to no op of the profile");
    }
  }
  for (const auto& kernel : data.times->compiled_kernels) {
    check(kernel.owner.module, "kernel", &kernel.name);
    for (const auto& part : kernel.parts) check(part.module, "a part of kernel", &kernel.name);
  }
  for (const auto& time : data.device->timeline.modules) check(time.module, "a time of the device");
  for (const auto& counters : data.device->counters.modules) check(counters.owner.module, "a counter");
  if (data.origin.merged() == nullptr) return;
  for (const auto& over_ranks : data.origin.merged()->modules) check(over_ranks.module, "a time over ranks");
}

// The model, its optimizer and what is outside are not fused with each other.
FusedBound fused_total(const std::vector<RooflineRow>& rows) {
  FusedBound total{0, 0};
  for (const auto& row : rows) {
    if (row.depth > 0) continue;
    total.bytes = saturating_add(total.bytes, row.fused_bytes.value_or(0));
    if (total.time_ns) total.time_ns = saturating_add(*total.time_ns, row.fused_bound_time_ns.value_or(0));
  }
  return total;
}

// Sets the total's rates, wasted time and % of roof by the wall time, however many threads shared it.
void judge_by_wall(Figures& total, const Tally& tally, const Profile& data) {
  Timing passed;
  passed.time_ns = chosen_wall(data.run.runs);
  const auto by_wall = derive_figures(tally, passed, data.roofs, data.times->common_error);
  total.achieved_flops = by_wall.achieved_flops;
  total.achieved_bandwidth = by_wall.achieved_bandwidth;
  total.wasted_time_ns = by_wall.wasted_time_ns;
  total.percent_of_roof = by_wall.percent_of_roof;
}

// Returns each subtree's share, by work, of the time of kernels that count for a module above; empty where it has no
// work in such: else its time is not that of all its work.
std::vector<std::optional<double>> shared_times(const Profile& data) {
  std::vector<std::optional<double>> times(data.tree.modules.size());
  for (const auto& kernel : data.times->compiled_kernels) {
    for (const auto& part : kernel.parts) {
      const auto ns = part.share * static_cast<double>(kernel.total_ns);
      for (auto id = part.module; id >= 0 && id != kernel.owner.module; id = data.tree.modules[index_of(id)].parent)
        times[index_of(id)] = times[index_of(id)].value_or(0) + ns;
    }
  }
  return times;
}

}  // namespace

bool threads_overlap(const Profile& data, const RooflineRow& total) {
  constexpr double kClocks = 1.01;  // clocks of one thread do not agree to the nanosecond
  const auto wall = chosen_wall(data.run.runs);
  return !data.device && wall.value_or(0) > 0 &&
         static_cast<double>(total.time_ns.value_or(0)) > kClocks * static_cast<double>(*wall);
}

std::optional<double> observer_overhead(const Runs& runs) {
  const auto wall = chosen_wall(runs);
  if (!wall || runs.total_ns.size() < 2 || runs.bare_ns.size() < 2) return std::nullopt;
  const double bare = median(runs.bare_ns);
  const double added = static_cast<double>(*wall) - bare;
  if (bare <= 0 || added <= std::max(noise_of(runs.total_ns), noise_of(runs.bare_ns))) return std::nullopt;
  return added / bare;
}

void check_consistent(const Profile& data) {
  const auto count = static_cast<ModuleId>(data.tree.modules.size());
  if (count <= kOptimizer) {
    throw InvalidArgument("the profile's first three modules must be the model, (outside) and (optimizer)");
  }
  std::vector<std::int32_t> depth(data.tree.modules.size());
  for (ModuleId id = 0; id < count; ++id) {
    const auto& module = data.tree.modules[index_of(id)];
    if (module.same_as >= id) {
      throw InvalidArgument("module '" + shown(module.path) + "' comes before the module that it repeats");
    }
    if (module.compiled_region >= count || module.compiled_region == id) {
      throw InvalidArgument("module '" + shown(module.path) + "' runs in no region of the profile");
    }
    if (module.parent >= id || (id <= kOptimizer && module.parent >= 0)) {
      throw InvalidArgument("module '" + shown(module.path) + "' comes before its parent");
    }
    if (module.parent >= 0) depth[index_of(id)] = depth[index_of(module.parent)] + 1;
    if (depth[index_of(id)] > kDeepestModule) throw too_deep("module", module.path, kDeepestModule);
  }
  check_modules(data);
  check_events(data);
  check_regions(data);
  check_collectives(data);
  check_memory(data);
  if (data.run.runs.chosen >= std::ssize(data.run.runs.total_ns)) {
    throw InvalidArgument("the chosen run is not among the profile's runs");
  }
}

bool took_time(const ModuleTime& time) {
  const auto any = [](const auto& times) { return std::ranges::any_of(times, [](auto ns) { return ns > 0; }); };
  return any(time.self_ns) || any(time.host_self_ns);
}

std::vector<std::int64_t> calls_by_module(const Profile& data) {
  std::vector<std::int64_t> calls(data.tree.modules.size());
  for (const auto& time : data.times->modules) {
    // A module's forward inside a running backward is recompute; nothing calls a module in the backward phase itself,
    // but regions are opened there.
    if (time.owner.phase != Phase::backward || data.tree.modules[index_of(time.owner.module)].type == kRegionType)
      calls[index_of(time.owner.module)] = saturating_add(calls[index_of(time.owner.module)], time.calls);
  }
  return calls;
}

std::vector<bool> existing_rows(const Profile& data) {
  std::vector<bool> exists(data.tree.modules.size(), true);
  exists[kOutside] = exists[kOptimizer] = false;
  for (std::size_t id = 0; id < exists.size(); ++id) {
    if (data.tree.modules[id].type == kRegionType) exists[id] = false;
  }
  for (const auto& bucket : data.counts.ops) exists[index_of(bucket.owner.module)] = true;
  for (const auto& kernel : data.device->kernels) exists[index_of(kernel.owner.module)] = true;
  for (const auto& counters : data.device->counters.modules) exists[index_of(counters.owner.module)] = true;
  for (const auto& time : data.times->modules) {
    const bool ran = took_time(time);
    // The time between run()'s calls of the model is roofprof's own; in a block it is the user's code.
    const bool opened = time.calls > 0 && data.tree.modules[index_of(time.owner.module)].type == kRegionType;
    if (opened || (ran && data.run.mode == Mode::block)) exists[index_of(time.owner.module)] = true;
  }
  // A region's row stands below one that is there.
  for (std::size_t id = exists.size(); id-- > 0;) {
    if (exists[id] && data.tree.modules[id].parent >= 0) exists[index_of(data.tree.modules[id].parent)] = true;
  }
  return exists;
}

std::vector<ModuleId> row_modules(const Profile& data) {
  const auto exists = existing_rows(data);
  auto order = tree_order(data);
  std::erase_if(order, [&](ModuleId id) { return !exists[index_of(id)]; });
  return order;
}

std::vector<RooflineRow> join_rows(const Profile& data) {
  const auto self = sum_self(data);
  const auto inclusive = sum_subtrees(data, self);
  const auto calls = calls_by_module(data);
  const auto regions = compiled_regions(data, self, inclusive);
  const auto busy = device_times(data);
  const auto fused = fused_bounds(data, inclusive);
  const auto shared_ns = shared_times(data);
  std::vector<std::int64_t> depth(data.tree.modules.size());
  std::vector<RooflineRow> rows;
  for (const ModuleId id : row_modules(data)) {  // a row's parent has one
    const Module& module = data.tree.modules[index_of(id)];
    if (module.parent >= 0) depth[index_of(id)] = depth[index_of(module.parent)] + 1;
    RooflineRow row;
    const bool in_region = module.compiled_region >= 0;
    const auto region = regions.find(id);
    const bool is_shared = shared_ns[index_of(id)].has_value() && !in_region;
    static_cast<Figures&>(row) =
        in_region ? figures_in_region(inclusive[index_of(id)], data)
                  : figures_of(inclusive[index_of(id)], known_busy(busy[index_of(id)].busy_ns, data), data);
    row.self = in_region ? figures_in_region(self[index_of(id)], data)
                         : self_figures_of(self[index_of(id)], row, region != regions.end(),
                                           known_busy(busy[index_of(id)].self_busy_ns, data), data);
    if (is_shared) row.self = figures_apart(row.self, self[index_of(id)], data);
    if ((region != regions.end() && region->second.reaches_out) || is_shared) {
      static_cast<Figures&>(row) = figures_apart(row, inclusive[index_of(id)], data);
    }
    if (!data.times->compiled_kernels.empty()) row.shared_time_ns = std::llround(shared_ns[index_of(id)].value_or(0));
    if (!fused.empty()) add_fused_figures(fused[index_of(id)], row);
    if (in_region) row.work_share = share_of(row, figures_of(regions.at(module.compiled_region).sums, 0, data));
    copy_facts(module, row);
    row.depth = depth[index_of(id)];
    if (module.calls_visible) row.calls = calls[index_of(id)];
    if (id == kModel) row.wall_ns = chosen_wall(data.run.runs);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::int64_t> row_parents(const Profile& data) {
  const auto ids = row_modules(data);
  std::vector<std::int64_t> row_of(data.tree.modules.size(), -1);
  std::vector<std::int64_t> parents;
  parents.reserve(ids.size());
  for (const ModuleId id : ids) {  // a row's parent has one, before it
    const ModuleId parent = data.tree.modules[index_of(id)].parent;
    row_of[index_of(id)] = std::ssize(parents);
    parents.push_back(parent < 0 ? -1 : row_of[index_of(parent)]);
  }
  return parents;
}

const RooflineRow& row_named(std::string_view path, const std::vector<RooflineRow>& rows, const Profile& data) {
  auto found = std::ranges::find(rows, path, &RooflineRow::path);
  if (found == rows.end()) {
    if (const auto region = row_of_region(data, path)) found = std::ranges::find(rows, *region, &RooflineRow::path);
  }
  if (found != rows.end()) return *found;
  std::vector<std::string> paths;
  for (const auto& row : rows) paths.push_back(row.path);
  throw OutOfRange("no row '" + std::string(path) + "'; the closest are " + closest(path, paths));
}

RooflineRow join_total(const Profile& data, const std::vector<RooflineRow>& rows) {
  ModuleSums sums;
  const auto self = sum_self(data);
  const auto exists = existing_rows(data);
  for (std::size_t id = 0; id < self.size(); ++id) {
    if (exists[id]) sums.add(self[id]);
  }
  RooflineRow total;
  const auto ends_ns = saturating_add(data.device->timeline.idle_before_ns, data.device->timeline.idle_after_ns);
  static_cast<Figures&>(total) = figures_of(sums, known_busy(data.device->timeline.busy_ns, data), data, ends_ns);
  // A report of an older roofprof has the time before the first launch in that launch's module.
  const bool together = data.device->timeline.idle_basis == IdleBasis::bare && ends_ns == 0;
  if (total.idle_ns && !together) {
    total.idle_before_ns = data.device->timeline.idle_before_ns;
    total.idle_between_ns = sums.device.idle_ns;
    total.idle_after_ns = data.device->timeline.idle_after_ns;
  }
  copy_facts(data.tree.modules[kModel], total);
  total.path = "total";
  total.type.clear();
  total.peak_memory = data.counts.memory.peak_bytes;
  total.calls = rows.front().calls;
  total.wall_ns = chosen_wall(data.run.runs);
  if (threads_overlap(data, total)) judge_by_wall(total, sums.tally, data);
  if (data.counts.crossings_known) add_fused_figures(fused_total(rows), total);
  total.self = static_cast<const Figures&>(total);
  return total;
}

}  // namespace roofprof
