#include "observe/script_tree.h"

#include <torch/csrc/jit/api/module.h>

#include "observe/parameters.h"

namespace roofprof::observe {
namespace {

Module describe(const torch::jit::Module& module, std::string path, ModuleId parent) {
  Module row;
  row.path = std::move(path);
  row.type = module.type()->name() ? module.type()->name()->name() : "Module";
  row.parent = parent;
  row.has_forward = row.calls_visible = parent < 0;
  add_sizes(module.parameters(), module.buffers(), row);
  return row;
}

void add_children(const torch::jit::Module& module, ModuleId place, ModelTree& tree) {
  for (const auto& child : module.named_children()) {
    const auto path = tree.path_below(place, child.name);
    add_children(child.value, tree.add(describe(child.value, path, place), child.value._ivalue().get()), tree);
  }
}

}  // namespace

ModelTree tree_of(const torch::jit::Module& model) {
  auto tree = ModelTree::with_roots();
  tree.modules[kModel] = describe(model, "", -1);
  tree.objects[kModel] = model._ivalue().get();
  add_children(model, kModel, tree);
  return tree;
}

}  // namespace roofprof::observe
