#include "observe/nn/nn_tree.h"

#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/parameterdict.h>
#include <torch/nn/modules/container/parameterlist.h>
#include <torch/nn/modules/container/sequential.h>

#include <array>
#include <mutex>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>

#include "core/forks.h"
#include "observe/modules/parameters.h"

namespace roofprof::observe {
namespace {

using namespace torch::nn;

bool has_forward(const torch::nn::Module& module) {
  const std::type_index type = typeid(module);
  return type != typeid(ModuleListImpl) && type != typeid(ModuleDictImpl) && type != typeid(ParameterListImpl) &&
         type != typeid(ParameterDictImpl);
}

// A module makes up its name when it is first asked, for which several profiles of one model must take turns.
std::string name_of(const torch::nn::Module& module) {
  static auto& mutex = *new ForkMutex;
  const std::lock_guard lock(mutex);
  return module.name();
}

Module describe(const torch::nn::Module& module, std::string path, ModuleId parent) {
  Module row;
  row.path = std::move(path);
  row.type = type_name(name_of(module));
  row.parent = parent;
  row.has_forward = has_forward(module);
  row.calls_visible = !is_container(module);
  add_sizes(module.parameters(), module.buffers(), row);
  return row;
}

void add_children(const torch::nn::Module& module, ModuleId place, ModelTree& tree,
                  std::unordered_map<const void*, ModuleId>& first_places) {
  std::unordered_set<const void*> siblings;
  for (const auto& child : module.named_children()) {
    if (!siblings.insert(child.value().get()).second) continue;  // a second name under the same parent
    auto row = describe(*child.value(), tree.path_below(place, child.key()), place);
    const auto* object = child.value().get();
    if (const auto first = first_places.find(object); first != first_places.end()) row.same_as = first->second;
    const auto added = tree.add(std::move(row), object);
    first_places.try_emplace(object, added);
    add_children(*child.value(), added, tree, first_places);
  }
}

}  // namespace

bool is_container(const torch::nn::Module& module) {
  return !has_forward(module) || typeid(module) == typeid(SequentialImpl);
}

std::string type_name(std::string_view qualified) {
  // A template's arguments stay whole: only the scope before them is cut off.
  const auto arguments = qualified.find('<');
  const auto scope = qualified.substr(0, arguments).rfind("::");
  if (scope != std::string_view::npos) qualified.remove_prefix(scope + 2);
  std::string name(qualified);
  constexpr std::string_view kSuffix = "Impl";
  if (name.size() > kSuffix.size() && name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  return name;
}

ModelTree tree_of(const torch::nn::Module& model) {
  auto tree = ModelTree::with_roots();
  tree.modules[kModel] = describe(model, "", -1);
  tree.objects[kModel] = &model;
  std::unordered_map<const void*, ModuleId> first_places = {{&model, kModel}};
  add_children(model, kModel, tree, first_places);
  return tree;
}

}  // namespace roofprof::observe
