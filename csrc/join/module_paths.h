#pragma once
// Names modules in the notes of the join.

#include <set>
#include <string>
#include <vector>

#include "core/phrases.h"
#include "core/profile_data.h"

namespace roofprof {

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

}  // namespace roofprof
