#pragma once
// Which rows of the model's tree an object (a Python module, a torch::nn module) has.

#include <optional>
#include <unordered_map>
#include <vector>

#include "values/profile_data.h"

namespace roofprof::observe {

class ModuleIndex {
 public:
  // `objects[id]` is the module at place `id`; null for places that no object has.
  ModuleIndex(const std::vector<Module>& modules, const std::vector<const void*>& objects);

  void add(const void* object, ModuleId place) { places_[object].push_back(place); }

  // The place of that module, called now where these scopes are open, the innermost last: of several, the one whose
  // parent is running, else one below a module that is, else the first. Empty for modules that are not in the tree.
  template <class Scopes>
  std::optional<ModuleId> place_of(const void* object, const Scopes& scopes) const {
    const auto found = places_.find(object);
    if (found == places_.end()) return std::nullopt;
    const auto& places = found->second;
    if (places.size() == 1) return places.front();
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
      for (const auto place : places) {
        if (callers_[index_of(place)] == scope->module) return place;
      }
    }
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
      for (const auto place : places) {
        if (is_below(place, scope->module)) return place;
      }
    }
    return places.front();
  }

  bool is_below(ModuleId place, ModuleId ancestor) const;

 private:
  std::unordered_map<const void*, std::vector<ModuleId>> places_;
  std::vector<ModuleId> parents_;
  std::vector<ModuleId> callers_;  // nearest ancestor that is called itself (containers are not); -1: none
};

}  // namespace roofprof::observe
