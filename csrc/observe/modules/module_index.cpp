#include "observe/modules/module_index.h"

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

}  // namespace roofprof::observe
