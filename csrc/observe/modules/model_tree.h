#pragma once
// A model's modules as rows, and the objects that they are.

#include <vector>

#include "core/profile_data.h"

namespace roofprof::observe {

struct ModelTree {
  std::vector<Module> modules;       // the first three are kModel, kOutside, kOptimizer; parents before children
  std::vector<const void*> objects;  // the object of each module; null where there is none

  // The three rows that every tree begins with; the model's is to be filled in.
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

  // The path of a child of that name.
  std::string path_below(ModuleId parent, const std::string& name) const {
    const auto& path = modules[static_cast<std::size_t>(parent)].path;
    return path.empty() ? name : path + "." + name;
  }
};

}  // namespace roofprof::observe
