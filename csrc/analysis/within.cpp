#include "analysis/within.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "analysis/closest.h"
#include "analysis/rows.h"

namespace roofprof {
namespace {

const RegionPath& region_at(const ProfileData& data, RegionId region) {
  return data.regions[static_cast<std::size_t>(region - 1)];
}

bool is_named(const std::string& path, std::string_view wanted) {
  return path == wanted || path.ends_with("/" + std::string(wanted));
}

// The regions of that name; none is inside of another one, as a region that is open is not opened again.
std::vector<RegionId> regions_named(const ProfileData& data, std::string_view wanted) {
  const auto exists = existing_regions(data);
  std::vector<RegionId> found;
  std::set<std::string> paths;
  for (RegionId id = 1; id <= std::ssize(data.regions); ++id) {
    if (!exists[static_cast<std::size_t>(id)]) continue;
    const auto path = path_of_region(data, id);
    if (is_named(path, wanted)) found.push_back(id);
    paths.insert(path);
  }
  if (!found.empty()) return found;
  const std::string missing = "no region '" + std::string(wanted) + "'; ";
  if (paths.empty()) throw std::out_of_range(missing + "none was opened: roofprof.scope and ROOFPROF_SCOPE open one");
  throw std::out_of_range(missing + "the closest are " + closest(wanted, {paths.begin(), paths.end()}));
}

// By id: whether it is one of those, or inside of one.
std::vector<bool> regions_inside(const ProfileData& data, const std::vector<RegionId>& those) {
  std::vector<bool> inside(data.regions.size() + 1);
  for (RegionId id = 1; id <= std::ssize(data.regions); ++id) {
    inside[static_cast<std::size_t>(id)] =
        std::ranges::find(those, id) != those.end() || inside[static_cast<std::size_t>(region_at(data, id).parent)];
  }
  return inside;
}

// Their wall times added up, for each run; empty where one is not known.
std::vector<std::int64_t> walls_of(const ProfileData& data, const std::vector<RegionId>& regions) {
  std::vector<std::int64_t> sums(data.runs.total_ns.size());
  for (const auto id : regions) {
    const auto& walls = region_at(data, id).wall_ns;
    if (walls.size() != sums.size()) return {};
    for (std::size_t run = 0; run < sums.size(); ++run) sums[run] = saturating_add(sums[run], walls[run]);
  }
  return sums;
}

template <class Item>
void keep_inside(std::vector<Item>& items, const std::vector<bool>& inside) {
  std::erase_if(items, [&](const Item& item) { return !inside[static_cast<std::size_t>(item.owner.region)]; });
}

// Which part of the time in which any was under way was the region's is not known.
void keep_collectives(CollectiveData& data, const std::vector<std::int64_t>& new_op, const std::vector<bool>& inside) {
  std::vector<std::int64_t> new_index;
  std::int64_t kept = 0;
  for (auto& collective : data.collectives) {
    collective.bucket = new_op[static_cast<std::size_t>(collective.bucket)];
    new_index.push_back(collective.bucket < 0 ? -1 : kept++);
  }
  for (auto& call : data.calls) call.collective = new_index[static_cast<std::size_t>(call.collective)];
  // What was called before the region may be waited for in it: then its figures are not among the region's.
  for (auto& exposed : data.exposed_in) exposed.collective = new_index[static_cast<std::size_t>(exposed.collective)];
  std::erase_if(data.exposed_in, [&](const ExposedIn& exposed) {
    return exposed.collective < 0 || !inside[static_cast<std::size_t>(exposed.owner.region)];
  });
  std::erase_if(data.collectives, [](const CollectiveBucket& collective) { return collective.bucket < 0; });
  std::erase_if(data.calls, [](const CollectiveCall& call) { return call.collective < 0; });
  data.time_ns.reset();
  data.exposed_ns.reset();
}

// Kernels and collectives know their ops by index.
void keep_ops(ProfileData& data, const std::vector<bool>& inside) {
  std::vector<std::int64_t> new_index(data.ops.size(), -1);
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < data.ops.size(); ++i) {
    if (inside[static_cast<std::size_t>(data.ops[i].owner.region)]) new_index[i] = kept++;
  }
  for (auto& kernel : data.kernels) {
    if (kernel.bucket >= 0) kernel.bucket = new_index[static_cast<std::size_t>(kernel.bucket)];
  }
  for (auto& event : data.events.host) {
    if (event.bucket >= 0) event.bucket = new_index[static_cast<std::size_t>(event.bucket)];
  }
  for (auto& launch : data.events.device) {
    if (launch.bucket >= 0) launch.bucket = new_index[static_cast<std::size_t>(launch.bucket)];
  }
  keep_inside(data.ops, inside);
  keep_collectives(data.collectives, new_index, inside);
}

// Shapes are those of a module's last call, which may have been outside.
void forget_last_calls(ProfileData& data, const std::vector<std::int64_t>& all_calls) {
  const auto calls = calls_by_module(data);
  for (std::size_t id = 0; id < data.modules.size(); ++id) {
    auto& module = data.modules[id];
    if (calls[id] == all_calls[id]) continue;
    module.input_shapes.clear();
    module.output_shapes.clear();
    module.output_bytes.reset();
    module.peak_memory.reset();
    module.kept_memory.reset();
  }
}

std::map<std::string, std::int64_t> unobserved_in(const ProfileData& data) {
  std::map<std::string, std::int64_t> calls;
  for (const auto& bucket : data.ops) {
    if (!bucket.costed && data.unobserved.contains(bucket.op)) calls[bucket.op] += bucket.calls;
  }
  return calls;
}

// Those of which every call was inside: of the others, tokens and contexts are not known apart.
void forget_calls_outside(std::vector<TokenCalls>& calls, const ProfileData& data, const std::vector<bool>& inside) {
  const auto exists = existing_regions(data);
  std::erase_if(calls, [&](const TokenCalls& of) {
    bool any = false;
    for (RegionId id = 1; id <= std::ssize(data.regions); ++id) {
      const auto at = static_cast<std::size_t>(id);
      if (!exists[at] || region_at(data, id).name != of.region) continue;
      if (!inside[at]) return true;
      any = true;
    }
    return !any;
  });
}

}  // namespace

std::string path_of_region(const ProfileData& data, RegionId region) {
  std::vector<std::string_view> names;  // the innermost first
  for (; region != kNoRegion; region = region_at(data, region).parent) names.push_back(region_at(data, region).name);
  std::string path;
  for (std::size_t i = names.size(); i-- > 0;) path.append(names[i]).append(i > 0 ? "/" : "");
  return path;
}

std::vector<bool> existing_regions(const ProfileData& data) {
  std::vector<bool> exists(data.regions.size() + 1);
  for (std::size_t id = 1; id < exists.size(); ++id) exists[id] = data.regions[id - 1].calls > 0;
  for (const auto& bucket : data.ops) exists[static_cast<std::size_t>(bucket.owner.region)] = true;
  for (const auto& kernel : data.kernels) exists[static_cast<std::size_t>(kernel.owner.region)] = true;
  for (const auto& kernel : data.compiled_kernels) exists[static_cast<std::size_t>(kernel.owner.region)] = true;
  for (const auto& counters : data.module_counters) exists[static_cast<std::size_t>(counters.owner.region)] = true;
  const auto rows = existing_rows(data);
  for (const auto& time : data.times) {
    if (!rows[index_of(time.owner.module)]) continue;
    const auto ran = [](const auto& times) { return std::ranges::any_of(times, [](auto ns) { return ns > 0; }); };
    if (time.calls > 0 || ran(time.self_ns) || ran(time.host_self_ns)) {
      exists[static_cast<std::size_t>(time.owner.region)] = true;
    }
  }
  return exists;
}

ProfileData within_region(const ProfileData& data, std::string_view region) {
  const auto those = regions_named(data, region);
  const auto inside = regions_inside(data, those);
  const auto all_calls = calls_by_module(data);
  ProfileData part = data;
  part.part = Part{std::string(region) + (data.part ? " within " + data.part->region : "")};
  forget_calls_outside(part.token_calls, data, inside);
  part.runs = {};
  part.runs.warmup = data.runs.warmup;
  part.runs.beside_others = data.runs.beside_others;
  part.runs.total_ns = walls_of(data, those);
  if (!part.runs.total_ns.empty()) part.runs.chosen = data.runs.chosen;
  for (std::size_t id = 1; id < inside.size(); ++id) {
    if (inside[id]) continue;
    part.regions[id - 1].calls = 0;
    part.regions[id - 1].wall_ns.clear();
  }
  keep_ops(part, inside);
  keep_inside(part.times, inside);
  keep_inside(part.kernels, inside);
  keep_inside(part.compiled_kernels, inside);
  keep_inside(part.events.host, inside);
  keep_inside(part.events.device, inside);
  keep_inside(part.module_counters, inside);
  // Which part of these was the region's is not known.
  part.device_times.clear();
  part.busy_ns = part.idle_before_ns = part.idle_after_ns = part.observing_ns = 0;
  part.idle_basis = IdleBasis::unsettled;
  part.peak_memory.reset();
  part.alive_at_peak.clear();
  part.memory_timeline = {};
  if (part.runs.chosen < 0) {
    for (auto& bucket : part.ops) bucket.time_ns.reset();
  }
  part.unobserved = unobserved_in(part);
  forget_last_calls(part, all_calls);
  add_note(part.notes, "within-region",
           "only what ran within " + part.part->region +
               " is in here; params, notes and what could not be attributed are " + "those of everything observed");
  return part;
}

}  // namespace roofprof
