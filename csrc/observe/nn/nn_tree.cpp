#include "observe/nn/nn_tree.h"

#include <torch/nn/module.h>
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
#include <utility>

#include "core/forks.h"
#include "observe/interception.h"
#include "observe/modules/parameters.h"
#include "observe/session.h"

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

namespace {

const torch::nn::Module* module_at(const ModelTree& tree, std::size_t place) {
  return static_cast<const torch::nn::Module*>(tree.objects[place]);
}

}  // namespace

NnAttribution::NnAttribution(const ModelTree& tree) {
  for (std::size_t place = 0; place < tree.objects.size(); ++place) {
    const auto* module = module_at(tree, place);
    sights_.push_back(module == nullptr                 ? CallSight::no_module
                      : is_container(*module)           ? CallSight::container
                      : is_intercepted(typeid(*module)) ? CallSight::intercepted
                                                        : CallSight::custom);
  }
}

void NnAttribution::attach(const ModelTree& tree, Session& session) const {
  ParameterOwners owners;
  for (std::size_t place = 0; place < tree.objects.size(); ++place) {
    const auto* module = module_at(tree, place);
    if (module == nullptr) continue;
    // The parameters in a ParameterList belong to its parent.
    auto owner = place;
    while (sights_[owner] == CallSight::container && tree.modules[owner].parent >= 0) {
      owner = static_cast<std::size_t>(tree.modules[owner].parent);
    }
    const void* object = sights_[owner] == CallSight::intercepted ? nullptr : tree.objects[owner];
    auto& owned = session.setup.owned_storages;
    for (const auto& parameter : module->parameters(/*recurse=*/false)) {
      owners.add_parameter(parameter, object);
      add_owned_parameter(parameter, static_cast<ModuleId>(place), owned);
    }
    for (const auto& buffer : module->buffers(/*recurse=*/false)) {
      owners.add_buffer(buffer, object);
      add_owned_buffer(buffer, static_cast<ModuleId>(place), owned);
    }
  }
  session.setup.model = tree.objects[kModel];
  if (sights_[kModel] == CallSight::intercepted) session.note_model_tells();
  ModuleIndex index(tree.modules, tree.objects);
  for (std::size_t place = 0; place < tree.objects.size(); ++place) {
    const auto* module = module_at(tree, place);
    if (module == nullptr || typeid(*module) != typeid(torch::nn::SequentialImpl)) continue;
    // It calls its children one after the other; one of them may stand there several times, and has one place.
    std::unordered_map<const void*, ModuleId> children;
    for (std::size_t child = place + 1; child < tree.modules.size(); ++child) {
      if (std::cmp_equal(tree.modules[child].parent, place)) {
        children[tree.objects[child]] = static_cast<ModuleId>(child);
      }
    }
    ModuleId before = -1;
    for (const auto& called : module->children()) {
      const auto child = children.at(called.get());
      if (before < 0) {
        index.set_first(child);
      } else {
        index.set_order(child, before, sights_[index_of(before)] == CallSight::intercepted);
      }
      before = child;
    }
  }
  session.setup.modules.emplace(std::move(index));
  if (!owners.empty()) session.setup.parameter_owners.emplace(std::move(owners));
}

TorchNn NnAttribution::sights() const { return {sights_, interception_works()}; }

}  // namespace roofprof::observe
