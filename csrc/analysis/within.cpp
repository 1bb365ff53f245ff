#include "analysis/within.h"

#include <algorithm>
#include <set>

#include "analysis/closest.h"
#include "analysis/rows.h"

namespace roofprof {
namespace {

const RegionPath& region_at(const Profile& data, RegionId region) {
  return data.tree.regions[static_cast<std::size_t>(region - 1)];
}

bool is_named(const std::string& path, std::string_view wanted) {
  return path == wanted || path.ends_with("/" + std::string(wanted));
}

// Returns the regions of that name; none is inside of another one, as a region that is open is not opened again.
std::vector<RegionId> regions_named(const Profile& data, std::string_view wanted) {
  const auto exists = existing_regions(data);
  std::vector<RegionId> found;
  std::set<std::string> paths;
  for (RegionId id = 1; id <= std::ssize(data.tree.regions); ++id) {
    if (!exists[static_cast<std::size_t>(id)]) continue;
    const auto path = path_of_region(data, id);
    if (is_named(path, wanted)) found.push_back(id);
    paths.insert(path);
  }
  if (!found.empty()) return found;
  const std::string missing = "no region '" + std::string(wanted) + "'; ";
  if (paths.empty()) throw OutOfRange(missing + "none was opened: roofprof.scope and ROOFPROF_SCOPE open one");
  throw OutOfRange(missing + "the closest are " + closest(wanted, {paths.begin(), paths.end()}));
}

// Returns, by id, whether a region is one of those, or inside of one.
std::vector<bool> regions_inside(const Profile& data, const std::vector<RegionId>& those) {
  std::vector<bool> inside(data.tree.regions.size() + 1);
  for (RegionId id = 1; id <= std::ssize(data.tree.regions); ++id) {
    inside[static_cast<std::size_t>(id)] =
        std::ranges::find(those, id) != those.end() || inside[static_cast<std::size_t>(region_at(data, id).parent)];
  }
  return inside;
}

// Returns the regions' wall times added up, for each run; empty where one is not known.
std::vector<std::int64_t> walls_of(const Profile& data, const std::vector<RegionId>& regions) {
  std::vector<std::int64_t> sums(data.run.runs.total_ns.size());
  for (const auto id : regions) {
    const auto& walls = region_at(data, id).wall_ns;
    if (walls.size() != sums.size()) return {};
    for (std::size_t run = 0; run < sums.size(); ++run) sums[run] = saturating_add(sums[run], walls[run]);
  }
  return sums;
}

// The regions to keep, and the new index of each op.
struct Inside {
  std::vector<bool> regions;            // by id
  std::vector<std::int64_t> new_index;  // of ops; -1: outside

  bool holds(const Owner& owner) const { return regions[static_cast<std::size_t>(owner.region)]; }
  void renumber(std::int64_t& op) const {
    if (op >= 0) op = new_index[static_cast<std::size_t>(op)];
  }
  template <class Item>
  void keep(std::vector<Item>& items) const {
    std::erase_if(items, [&](const Item& item) { return !holds(item.owner); });
  }
};

Inside inside_of(std::vector<bool> regions, const std::vector<OpBucket>& ops) {
  Inside inside{std::move(regions), {}};
  std::int64_t kept = 0;
  for (const auto& op : ops) inside.new_index.push_back(inside.holds(op.owner) ? kept++ : -1);
  return inside;
}

// ---- each part, filtered

std::map<std::string, std::int64_t> unobserved_in(const Counts& counts) {
  std::map<std::string, std::int64_t> calls;
  for (const auto& bucket : counts.ops) {
    if (!bucket.costed && counts.unobserved.contains(bucket.op)) calls[bucket.op] += bucket.calls;
  }
  return calls;
}

Counts within(Counts counts, const Inside& inside, bool timed) {
  inside.keep(counts.ops);
  for (auto& bucket : counts.ops) {
    if (!timed) bucket.time_ns.reset();
  }
  counts.unobserved = unobserved_in(counts);
  counts.memory = {};  // which part of it was the region's is not known
  return counts;
}

Tree within(Tree tree, const Inside& inside) {
  for (std::size_t id = 1; id < inside.regions.size(); ++id) {
    if (inside.regions[id]) continue;
    tree.regions[id - 1].calls = 0;
    tree.regions[id - 1].wall_ns.clear();
  }
  return tree;
}

Times within(Times times, const Inside& inside) {
  inside.keep(times.modules);
  inside.keep(times.compiled_kernels);
  inside.keep(times.events.host);
  inside.keep(times.events.device);
  for (auto& event : times.events.host) inside.renumber(event.bucket);
  for (auto& launch : times.events.device) inside.renumber(launch.bucket);
  return times;
}

DeviceWork within(DeviceWork device, const Inside& inside) {
  inside.keep(device.kernels);
  for (auto& kernel : device.kernels) inside.renumber(kernel.bucket);
  inside.keep(device.counters.modules);
  device.timeline = {};  // which part of it was the region's is not known
  return device;
}

// Returns the collectives of ops inside. It drops the times with any collective under way, because the region's part of
// them is not known.
CollectiveData within(CollectiveData data, const Inside& inside) {
  std::vector<std::int64_t> new_index;
  std::int64_t kept = 0;
  for (auto& collective : data.collectives) {
    inside.renumber(collective.bucket);
    new_index.push_back(collective.bucket < 0 ? -1 : kept++);
  }
  for (auto& call : data.calls) call.collective = new_index[static_cast<std::size_t>(call.collective)];
  // The region may wait for a collective that was called before it: that one's figures are not the region's.
  for (auto& exposed : data.exposed_in) exposed.collective = new_index[static_cast<std::size_t>(exposed.collective)];
  std::erase_if(data.exposed_in,
                [&](const ExposedIn& exposed) { return exposed.collective < 0 || !inside.holds(exposed.owner); });
  std::erase_if(data.collectives, [](const CollectiveBucket& collective) { return collective.bucket < 0; });
  std::erase_if(data.calls, [](const CollectiveCall& call) { return call.collective < 0; });
  data.time_ns.reset();
  data.exposed_ns.reset();
  return data;
}

// Shapes are those of a module's last call, which may have been outside.
void forget_last_calls(Profile& data, const std::vector<std::int64_t>& all_calls) {
  const auto calls = calls_by_module(data);
  for (std::size_t id = 0; id < data.tree.modules.size(); ++id) {
    auto& module = data.tree.modules[id];
    if (calls[id] == all_calls[id]) continue;
    module.input_shapes.clear();
    module.output_shapes.clear();
    module.output_bytes.reset();
    module.peak_memory.reset();
    module.kept_memory.reset();
  }
}

// Drops the calls under a region's name unless all of them were inside: tokens and contexts are known of all together.
void forget_calls_outside(std::vector<TokenCalls>& calls, const Profile& data, const Inside& inside) {
  const auto exists = existing_regions(data);
  std::erase_if(calls, [&](const TokenCalls& of) {
    bool any = false;
    for (RegionId id = 1; id <= std::ssize(data.tree.regions); ++id) {
      const auto at = static_cast<std::size_t>(id);
      if (!exists[at] || region_at(data, id).name != of.region) continue;
      if (!inside.regions[at]) return true;
      any = true;
    }
    return !any;
  });
}

}  // namespace

std::string path_of_region(const Profile& data, RegionId region) {
  std::vector<std::string_view> names;  // the innermost first
  for (; region != kNoRegion; region = region_at(data, region).parent) names.push_back(region_at(data, region).name);
  std::string path;
  for (std::size_t i = names.size(); i-- > 0;) path.append(names[i]).append(i > 0 ? "/" : "");
  return path;
}

std::vector<bool> existing_regions(const Profile& data) {
  std::vector<bool> exists(data.tree.regions.size() + 1);
  for (std::size_t id = 1; id < exists.size(); ++id) exists[id] = data.tree.regions[id - 1].calls > 0;
  for (const auto& bucket : data.counts.ops) exists[static_cast<std::size_t>(bucket.owner.region)] = true;
  for (const auto& kernel : data.device->kernels) exists[static_cast<std::size_t>(kernel.owner.region)] = true;
  for (const auto& kernel : data.times->compiled_kernels) exists[static_cast<std::size_t>(kernel.owner.region)] = true;
  for (const auto& counters : data.device->counters.modules)
    exists[static_cast<std::size_t>(counters.owner.region)] = true;
  const auto rows = existing_rows(data);
  for (const auto& time : data.times->modules) {
    const bool ran = time.calls > 0 || took_time(time);
    if (ran && rows[index_of(time.owner.module)]) exists[static_cast<std::size_t>(time.owner.region)] = true;
  }
  return exists;
}

Profile within_region(const Profile& data, std::string_view region) {
  const auto those = regions_named(data, region);
  const auto inside = inside_of(regions_inside(data, those), data.counts.ops);
  Profile part = data;
  part.origin.part = Part{std::string(region) + (data.origin.part ? " within " + data.origin.part->region : "")};
  forget_calls_outside(part.run.token_calls, data, inside);
  const auto& runs = data.run.runs;
  part.run.runs = {.total_ns = walls_of(data, those), .warmup = runs.warmup, .beside_others = runs.beside_others};
  const bool timed = !part.run.runs.total_ns.empty() && runs.chosen >= 0;
  if (timed) part.run.runs.chosen = runs.chosen;
  part.tree = within(std::move(part.tree), inside);
  part.counts = within(std::move(part.counts), inside, timed);
  if (part.times) part.times = within(*data.times, inside);
  if (part.device) part.device = within(*data.device, inside);
  if (part.comms) part.comms = within(*data.comms, inside);
  forget_last_calls(part, calls_by_module(data));
  add_note(part.notes, "within-region",
           "only what ran within " + part.origin.part->region +
               " is in here; params, notes and what could not be attributed are those of everything observed");
  return part;
}

}  // namespace roofprof
