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
#include "observe/session.h"

namespace roofprof::observe {

namespace {

using namespace torch::nn;

bool has_forward(const torch::nn::Module& module) {
  const std::type_index type = typeid(module);
  return type != typeid(ModuleListImpl) && type != typeid(ModuleDictImpl) && type != typeid(ParameterListImpl) &&
         type != typeid(ParameterDictImpl);
}

bool is_sequential(const torch::nn::Module& module) { return typeid(module) == typeid(SequentialImpl); }

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
  return row;
}

// Calls add(child, name, place), which returns the child's place, for all modules below that at `place`: each before
// those below it.
template <class Add>
void for_each_below(const torch::nn::Module& module, ModuleId place, const Add& add) {
  std::unordered_set<const void*> siblings;
  for (const auto& child : module.named_children()) {
    if (!siblings.insert(child.value().get()).second) continue;  // a second name under the same parent
    for_each_below(*child.value(), add(*child.value(), child.key(), place), add);
  }
}

}  // namespace

bool is_container(const torch::nn::Module& module) { return !has_forward(module) || is_sequential(module); }

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

NnContents contents_of(const torch::nn::Module& model) {
  NnContents contents{ModelTree::with_roots(), {}};
  auto& tree = contents.tree;
  auto& tensors = contents.tensors;
  tensors.resize(tree.modules.size());
  SubtreeSizes sizes;
  const auto read = [&](const torch::nn::Module& module, ModuleId place) {
    auto& own = tensors[index_of(place)];
    own = {module.parameters(/*recurse=*/false), module.buffers(/*recurse=*/false)};
    sizes.add(place, own);
  };
  tree.modules[kModel] = describe(model, "", -1);
  tree.objects[kModel] = &model;
  read(model, kModel);
  std::unordered_map<const void*, ModuleId> first_places = {{&model, kModel}};
  for_each_below(model, kModel, [&](const torch::nn::Module& module, const std::string& name, ModuleId parent) {
    auto row = describe(module, tree.path_below(parent, name), parent);
    const auto [first, fresh] = first_places.try_emplace(&module, static_cast<ModuleId>(tree.modules.size()));
    if (!fresh) row.same_as = first->second;
    const auto added = tree.add(std::move(row), &module);
    tensors.emplace_back();
    read(module, added);
    return added;
  });
  sizes.write_to(tree.modules);
  return contents;
}

std::vector<std::string> paths_added(const torch::nn::Module& model, const std::vector<const void*>& before) {
  std::vector<const void*> now = {before.begin(), before.begin() + kOptimizer + 1};
  for_each_below(model, kModel, [&](const torch::nn::Module& module, const std::string& /*name*/, ModuleId /*parent*/) {
    now.push_back(&module);
    return kModel;
  });
  if (now == before) return {};
  const std::unordered_set<const void*> known = {before.begin(), before.end()};
  std::vector<std::string> added;
  const auto tree = contents_of(model).tree;
  for (std::size_t place = 0; place < tree.objects.size(); ++place) {
    if (!known.contains(tree.objects[place])) added.push_back(tree.modules[place].path);
  }
  return added;
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

void NnAttribution::attach(const ModelTree& tree, const std::vector<OwnTensors>& tensors, Session& session) const {
  ParameterOwners owners;
  std::vector<std::size_t> owner_of(tree.objects.size());
  std::unordered_map<ModuleId, std::unordered_map<const void*, ModuleId>> called_in_order;  // by what calls them
  for (std::size_t place = 0; place < tree.objects.size(); ++place) {
    const auto parent = tree.modules[place].parent;
    // The parameters in a ParameterList belong to its parent.
    const bool is_parents = sights_[place] == CallSight::container && parent >= 0;
    const auto owner = owner_of[place] = is_parents ? owner_of[index_of(parent)] : place;
    if (module_at(tree, place) == nullptr) continue;
    if (parent >= 0 && is_sequential(*module_at(tree, index_of(parent)))) {
      called_in_order[parent][tree.objects[place]] = static_cast<ModuleId>(place);
    }
    const void* object = sights_[owner] == CallSight::intercepted ? nullptr : tree.objects[owner];
    auto& owned = session.setup.owned_storages;
    for (const auto& parameter : tensors[place].parameters) {
      owners.add_parameter(parameter, object);
      add_owned_parameter(parameter, static_cast<ModuleId>(place), owned);
    }
    for (const auto& buffer : tensors[place].buffers) {
      owners.add_buffer(buffer, object);
      add_owned_buffer(buffer, static_cast<ModuleId>(place), owned);
    }
  }
  session.setup.model = tree.objects[kModel];
  if (sights_[kModel] == CallSight::intercepted) session.seen.model_tells.set();
  ModuleIndex index(tree.modules, tree.objects);
  // A Sequential calls its children one after the other; one of them may stand there several times, and has one place.
  for (const auto& [place, places] : called_in_order) {
    ModuleId before = -1;
    for (const auto& called : module_at(tree, index_of(place))->children()) {
      const auto child = places.at(called.get());
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
