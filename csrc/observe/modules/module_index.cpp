#include "observe/modules/module_index.h"

#include <algorithm>

namespace roofprof::observe {

ModuleIndex::ModuleIndex(const std::vector<Module>& modules, const std::vector<const void*>& objects)
    : objects_(objects) {
  parents_.reserve(modules.size());
  callers_.reserve(modules.size());
  for (std::size_t id = 0; id < modules.size(); ++id) {
    const auto parent = modules[id].parent;
    parents_.push_back(parent);
    const bool is_called =
        parent < 0 || (modules[index_of(parent)].has_forward && modules[index_of(parent)].calls_visible);
    callers_.push_back(is_called ? parent : callers_[index_of(parent)]);
    if (objects[id] != nullptr) places_[objects[id]].push_back(static_cast<ModuleId>(id));
  }
}

bool ModuleIndex::is_below(ModuleId place, ModuleId ancestor) const {
  do {
    place = parents_[static_cast<std::size_t>(place)];
  } while (place >= 0 && place != ancestor);
  return place >= 0;
}

bool ModuleIndex::may_follow(LastCall last, ModuleId before) const {
  if (last.place < 0) return false;
  const auto follows = [&](ModuleId place) { return place == before || is_below(place, before); };
  const auto* object = objects_[index_of(last.place)];
  if (last.is_certain || object == nullptr) return follows(last.place);
  return std::ranges::any_of(places_.at(object), follows);
}

PlacedCall ModuleIndex::by_order(const std::vector<ModuleId>& places, LastCall last) const {
  std::vector<ModuleId> possible;
  for (const auto place : places) {
    const auto order = orders_.find(place);
    bool is_possible = order == orders_.end() || order->second.is_first;  // it may be called at any time
    if (order != orders_.end()) {
      for (const auto& [before, seen] : order->second.before) {
        const bool follows = may_follow(last, before);
        if (follows && last.is_certain) return {place, {}};
        is_possible |= follows || !seen;
      }
    }
    if (is_possible) possible.push_back(place);
  }
  if (possible.size() == 1) return {possible.front(), {}};
  return {possible.empty() ? places.front() : possible.front(), places.size() == 1 ? std::vector<ModuleId>{} : places};
}

}  // namespace roofprof::observe
