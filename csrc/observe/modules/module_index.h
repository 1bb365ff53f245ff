#pragma once
// A model's modules as rows with their objects, and the index that finds the rows of an object (a Python module, a
// torch::nn module).

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/profile.h"

namespace roofprof::observe {

struct ModelTree {
  std::vector<Module> modules;       // the first three are kModel, kOutside, kOptimizer; parents before children
  std::vector<const void*> objects;  // the object of each module; null where there is none

  // Returns the three rows that every tree begins with; the caller fills in the model's.
  static ModelTree with_roots() {
    ModelTree tree{std::vector<Module>(3), std::vector<const void*>(3)};
    tree.modules[kOutside].path = "(outside)";
    tree.modules[kOptimizer].path = "(optimizer)";
    tree.modules[kOutside].has_forward = tree.modules[kOptimizer].has_forward = false;
    return tree;
  }

  ModuleId add(Module module, const void* object) {
    modules.push_back(std::move(module));
    objects.push_back(object);
    return static_cast<ModuleId>(modules.size() - 1);
  }

  // Returns the path of a child of that name.
  std::string path_below(ModuleId parent, const std::string& name) const {
    const auto& path = modules[static_cast<std::size_t>(parent)].path;
    return path.empty() ? name : path + "." + name;
  }
};

// A call at a place, or, where it is not certain at which of several, at one of them.
struct PlacedCall {
  ModuleId place = kModel;
  std::vector<ModuleId> may_be;  // all of them; empty: it is certain

  bool is_certain() const { return may_be.empty(); }
};

// The call that ended before another one begins, in the same frame.
struct LastCall {
  ModuleId place = -1;  // -1: there was none
  bool is_certain = true;
};

class ModuleIndex {
 public:
  // `objects[id]` is the module at place `id`; null for places that no object has.
  ModuleIndex(const std::vector<Module>& modules, const std::vector<const void*>& objects);

  void add(const void* object, ModuleId place) {
    objects_[index_of(place)] = object;
    places_[object].push_back(place);
  }

  // Notes that a container whose own calls are not seen calls the module at `before` just before the one at `place`.
  // `seen`: the former is seen whenever it is called. A module that stands there several times may follow several.
  void set_order(ModuleId place, ModuleId before, bool seen) { orders_[place].before.push_back({before, seen}); }
  // Notes that such a container calls the module at `place` first.
  void set_first(ModuleId place) { orders_[place].is_first = true; }

  // Returns the place of that module, which is called now while these frames are open, the innermost last. Candidates
  // are the places whose parent is running, else those below a running module, else all of them. Where calls of parents
  // may not be seen, the last call chooses among them; else the first is taken. Empty for modules that are not in the
  // tree.
  template <class Frames>
  std::optional<PlacedCall> place_of(const void* object, const Frames& frames, LastCall last) const {
    const auto found = places_.find(object);
    if (found == places_.end()) return std::nullopt;
    if (found->second.size() == 1) return PlacedCall{found->second.front(), {}};
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      const auto fits = those(found->second, [&](auto place) { return callers_[index_of(place)] == frame->module; });
      if (!fits.empty()) return by_order(fits, last);
    }
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      const auto fits = those(found->second, [&](auto place) { return is_below(place, frame->module); });
      if (!fits.empty()) return by_order(fits, last);
    }
    return by_order(found->second, last);
  }

  // Returns the place where all calls are seen.
  template <class Frames>
  std::optional<ModuleId> place_of(const void* object, const Frames& frames) const {
    const auto call = place_of(object, frames, LastCall{});
    return call ? std::optional(call->place) : std::nullopt;
  }

  bool is_below(ModuleId place, ModuleId ancestor) const;

 private:
  struct Before {
    ModuleId place = -1;
    bool seen = false;
  };
  struct Order {
    bool is_first = false;
    std::vector<Before> before;
  };
  template <class Fits>
  static std::vector<ModuleId> those(const std::vector<ModuleId>& places, Fits&& fits) {
    std::vector<ModuleId> chosen;
    for (const auto place : places) {
      if (fits(place)) chosen.push_back(place);
    }
    return chosen;
  }
  PlacedCall by_order(const std::vector<ModuleId>& places, LastCall last) const;
  // Returns whether the last call may have been of the module at `before`, or of one below it.
  bool may_follow(LastCall last, ModuleId before) const;

  std::vector<const void*> objects_;  // by place
  std::unordered_map<const void*, std::vector<ModuleId>> places_;
  std::unordered_map<ModuleId, Order> orders_;  // of those that such containers call
  std::vector<ModuleId> parents_;
  std::vector<ModuleId> callers_;  // nearest ancestor that is called itself (containers are not); -1: none
};

}  // namespace roofprof::observe
