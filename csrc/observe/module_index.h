#pragma once
// Which object (a Python module, a torch::nn module) stands at which places of the model's tree.

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/profile_data.h"

namespace roofprof::observe {

struct ThreadState;

class ModuleIndex {
 public:
  // `objects[id]` is the module at place `id`; null for places that no object has.
  ModuleIndex(const std::vector<Module>& modules, const std::vector<const void*>& objects);

  void add(const void* object, ModuleId place) { places_[object].push_back(place); }

  // The place of that module, called now on a thread in `state`: of several, the one whose parent is running, else one
  // below a module that is, else the first. Empty for modules that are not in the tree.
  std::optional<ModuleId> place_of(const void* object, const ThreadState& state) const;

  bool is_below(ModuleId place, ModuleId ancestor) const;

 private:
  std::unordered_map<const void*, std::vector<ModuleId>> places_;
  std::vector<ModuleId> parents_;
  std::vector<ModuleId> callers_;  // nearest ancestor that is called itself (containers are not); -1: none
};

}  // namespace roofprof::observe
