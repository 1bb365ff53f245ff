#pragma once
// Marks in the rows of a torch::nn model which calls were seen and which were inferred.

#include <set>
#include <string>
#include <vector>

#include "core/phrases.h"
#include "core/profile.h"
#include "core/run_record.h"

namespace roofprof {

// Names modules in the notes of the join.

inline std::vector<std::string> paths_of(const std::set<ModuleId>& ids, const std::vector<Module>& modules) {
  std::vector<std::string> paths;
  for (const auto id : ids) paths.push_back(modules[index_of(id)].path);
  return paths;
}

// "the model, b, c, ...": the first few, however many more there are.
template <class Paths>
std::string first_paths(const Paths& paths) {
  std::string list;
  std::size_t named = 0;
  for (const auto& path : paths) {
    if (named++ == kNamed) return list + ", ...";
    add_item(list, display_path(path));
  }
  return list;
}

// The rows and the paths of regions, which the user's code opened while it ran.

// The model's modules, and behind them those of the regions, in the order of their ids.
std::vector<Module> modules_with_regions(std::vector<Module> modules, const std::vector<Region>& regions);

// The paths of regions, in the order of their ids, with the calls of the counting pass. Their wall times are not known
// where a timed pass opened one more or less often, as compiled code opens none.
std::vector<RegionPath> region_paths(std::vector<RegionPath> paths, const Pass& counting,
                                     const std::vector<Pass>& timed);

// The modules with calls_visible and inferred set; definitions.md says when. All else about them is known already.
std::vector<Module> attributed(std::vector<Module> modules, const std::vector<OpBucket>& ops,
                               const std::vector<ModuleTime>& times, const std::vector<CallSight>& sights);

// The modules with those marked whose calls may have been at another place of the same module.
std::vector<Module> with_uncertain_places(std::vector<Module> modules, const std::set<ModuleId>& uncertain,
                                          std::vector<Note>& notes);

}  // namespace roofprof
