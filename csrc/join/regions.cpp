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

}  // namespace roofprof
