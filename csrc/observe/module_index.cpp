#include "observe/module_index.h"

#include <algorithm>

#include "observe/thread_state.h"

namespace roofprof::observe {

ModuleIndex::ModuleIndex(const std::vector<Module>& modules, const std::vector<const void*>& objects) {
  const auto at = [&](ModuleId id) -> const Module& { return modules[static_cast<std::size_t>(id)]; };
  parents_.reserve(modules.size());
  callers_.reserve(modules.size());
  for (std::size_t id = 0; id < modules.size(); ++id) {
    auto caller = modules[id].parent;
    parents_.push_back(caller);
    while (caller >= 0 && !(at(caller).has_forward && at(caller).calls_visible)) caller = at(caller).parent;
    callers_.push_back(caller);
    if (objects[id] != nullptr) places_[objects[id]].push_back(static_cast<ModuleId>(id));
  }
}

bool ModuleIndex::is_below(ModuleId place, ModuleId ancestor) const {
  do {
    place = parents_[static_cast<std::size_t>(place)];
  } while (place >= 0 && place != ancestor);
  return place >= 0;
}

std::optional<ModuleId> ModuleIndex::place_of(const void* object, const ThreadState& state) const {
  const auto found = places_.find(object);
  if (found == places_.end()) return std::nullopt;
  const auto& places = found->second;
  if (places.size() == 1) return places.front();
  for (auto scope = state.scopes.rbegin(); scope != state.scopes.rend(); ++scope) {
    for (const auto place : places) {
      if (callers_[static_cast<std::size_t>(place)] == scope->module) return place;
    }
  }
  for (auto scope = state.scopes.rbegin(); scope != state.scopes.rend(); ++scope) {
    for (const auto place : places) {
      if (is_below(place, scope->module)) return place;
    }
  }
  return places.front();
}

}  // namespace roofprof::observe
