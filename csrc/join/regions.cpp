#include "join/regions.h"

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

std::vector<RegionPath> region_paths(const std::vector<RegionInside>& regions, const Pass& counting,
                                     const std::vector<Pass>& timed) {
  std::vector<RegionPath> paths;
  for (const auto& region : regions) paths.push_back({region.parent, region.name, 0, {}});
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

}  // namespace roofprof
