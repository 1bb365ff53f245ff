#include "join/attribution.h"

#include <map>
#include <string>

#include "core/phrases.h"

namespace roofprof {

std::vector<Module> modules_with_regions(std::vector<Module> modules, const std::vector<Region>& regions) {
  for (const auto& region : regions) {
    const auto& above = modules.at(index_of(region.parent)).path;
    Module row;
    row.path = above.empty() ? region.name : above + "." + region.name;
    row.type = kRegionType;
    row.parent = region.parent;
    row.has_forward = false;
    modules.push_back(std::move(row));
  }
  return modules;
}

std::vector<RegionPath> region_paths(std::vector<RegionPath> paths, const Pass& counting,
                                     const std::vector<Pass>& timed) {
  const auto path_of = [&](const Pass::RegionClock& clock) -> RegionPath& {
    return paths.at(static_cast<std::size_t>(clock.region - 1));
  };
  for (const auto& clock : counting.regions) path_of(clock).calls = clock.calls;
  for (std::size_t run = 0; run < timed.size(); ++run) {
    for (const auto& clock : timed[run].regions) {
      auto& path = path_of(clock);
      if (path.calls == clock.calls && path.wall_ns.size() == run) path.wall_ns.push_back(clock.wall_ns);
    }
  }
  for (auto& path : paths) {
    if (path.wall_ns.size() < timed.size()) path.wall_ns.clear();
  }
  return paths;
}

namespace {

std::vector<std::int64_t> calls_by_module(std::size_t modules, const std::vector<ModuleTime>& times) {
  std::vector<std::int64_t> calls(modules);
  for (const auto& time : times) calls[index_of(time.owner.module)] += time.calls;
  return calls;
}

// The modules that have work of their own.
std::vector<bool> modules_with_work(std::size_t modules, const std::vector<OpBucket>& ops) {
  std::vector<bool> with_work(modules);
  for (const auto& op : ops) {
    if (!op.costed || op.work != Work{}) with_work[index_of(op.owner.module)] = true;
  }
  return with_work;
}

// Returns the first row of a module: a call in any of a module's rows counts for all of them.
std::size_t first_row_of(const std::vector<Module>& modules, std::size_t id) {
  return modules[id].same_as < 0 ? id : index_of(modules[id].same_as);
}

std::vector<bool> modules_seen(const std::vector<Module>& modules, const std::vector<std::int64_t>& calls) {
  std::vector<bool> seen(modules.size());
  for (std::size_t id = 0; id < modules.size(); ++id) {
    if (calls[id] > 0) seen[first_row_of(modules, id)] = true;
  }
  return seen;
}

}  // namespace

std::vector<Module> attributed(std::vector<Module> modules, const std::vector<OpBucket>& ops,
                               const std::vector<ModuleTime>& times, const std::vector<CallSight>& sights) {
  const auto calls = calls_by_module(modules.size(), times);
  const auto with_work = modules_with_work(modules.size(), ops);
  const auto seen = modules_seen(modules, calls);
  for (std::size_t id = 0; id < sights.size(); ++id) {
    auto& module = modules[id];
    if (sights[id] == CallSight::no_module) continue;
    const bool was_seen = seen[first_row_of(modules, id)];
    module.calls_visible = was_seen || sights[id] == CallSight::intercepted;
    if (was_seen || sights[id] != CallSight::custom) continue;
    // The self work of the module counts in the nearest row above whose calls are seen, except what was known by
    // its parameters.
    auto above = module.parent;
    while (above >= 0 && calls[index_of(above)] == 0) above = modules[index_of(above)].parent;
    const auto holder = index_of(above >= 0 ? above : kOutside);
    if (with_work[holder]) modules[holder].inferred = module.inferred = true;
    if (with_work[id]) module.inferred = true;
  }
  return modules;
}

std::vector<Module> with_uncertain_places(std::vector<Module> modules, const std::set<ModuleId>& uncertain,
                                          std::vector<Note>& notes) {
  std::map<std::size_t, std::vector<std::string>> paths;  // by the first place of each module
  for (const auto place : uncertain) {
    modules[index_of(place)].inferred = true;
    paths[first_row_of(modules, index_of(place))].push_back(modules[index_of(place)].path);
  }
  for (auto& [first, places] : paths) {
    const auto text = listed(places, kNamed) +
                      " are one module, and the order of calls does not always tell at which of them it was called: "
                      "their rows' work may be the other's";
    add_note(notes, "place-not-known", text, std::move(places));
  }
  return modules;
}

}  // namespace roofprof
