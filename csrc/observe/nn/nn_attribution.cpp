#include "observe/nn/nn_attribution.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>

#include <unordered_map>
#include <utility>

#include "observe/interception.h"
#include "observe/nn/nn_tree.h"
#include "observe/session.h"

namespace roofprof::observe {
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
    for (const auto& parameter : module->parameters(/*recurse=*/false)) owners.add_parameter(parameter, object);
    for (const auto& buffer : module->buffers(/*recurse=*/false)) owners.add_buffer(buffer, object);
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
