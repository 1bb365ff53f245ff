#include "observe/module_index.h"

#include "observe/thread_state.h"

namespace roofprof::observe {

ModuleIndex::ModuleIndex(const std::vector<Module>& modules, const std::vector<const void*>& objects) {
  callers_.reserve(modules.size());
  for (std::size_t id = 0; id < modules.size(); ++id) {
    auto caller = modules[id].parent;
    while (caller >= 0 && !modules[static_cast<std::size_t>(caller)].has_forward) {
      caller = modules[static_cast<std::size_t>(caller)].parent;
    }
    callers_.push_back(caller);
    if (objects[id] != nullptr) places_[objects[id]].push_back(static_cast<ModuleId>(id));
  }
}

std::optional<ModuleId> ModuleIndex::place_of(const void* object, const ThreadState& state) const {
  const auto found = places_.find(object);
  if (found == places_.end()) return std::nullopt;
  const auto& places = found->second;
  if (places.size() > 1) {
    for (auto scope = state.scopes.rbegin(); scope != state.scopes.rend(); ++scope) {
      for (const auto place : places) {
        if (callers_[static_cast<std::size_t>(place)] == scope->module) return place;
      }
    }
  }
  return places.front();
}

}  // namespace roofprof::observe
