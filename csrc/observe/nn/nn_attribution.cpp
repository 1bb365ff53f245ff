#include "observe/nn/nn_attribution.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>

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
    // What lies in a ParameterList is its parent's.
    auto owner = place;
    while (sights_[owner] == CallSight::container && tree.modules[owner].parent >= 0) {
      owner = static_cast<std::size_t>(tree.modules[owner].parent);
    }
    const void* object = sights_[owner] == CallSight::intercepted ? nullptr : tree.objects[owner];
    for (const auto& parameter : module->parameters(/*recurse=*/false)) owners.add_parameter(parameter, object);
    for (const auto& buffer : module->buffers(/*recurse=*/false)) owners.add_buffer(buffer, object);
  }
  session.set_model(tree.objects[kModel]);
  if (sights_[kModel] == CallSight::intercepted) session.note_model_tells();
  ModuleIndex index(tree.modules, tree.objects);
  for (std::size_t place = 0; place < tree.objects.size(); ++place) {
    const auto* module = module_at(tree, place);
    if (module == nullptr || typeid(*module) != typeid(torch::nn::SequentialImpl)) continue;
    // It calls its children one after the other.
    const auto parent = static_cast<ModuleId>(place);
    ModuleId before = -1;
    for (std::size_t child = place + 1; child < tree.modules.size(); ++child) {
      if (tree.modules[child].parent != parent) continue;
      if (before >= 0) {
        const bool seen = sights_[index_of(before)] == CallSight::intercepted;
        index.set_order(static_cast<ModuleId>(child), before, seen);
      }
      before = static_cast<ModuleId>(child);
    }
  }
  session.know(std::move(index), std::move(owners));
}

TorchNn NnAttribution::sights() const { return {sights_, interception_works()}; }

}  // namespace roofprof::observe
