#include "observe/nn_attribution.h"

#include <torch/nn/module.h>

#include "observe/interception.h"
#include "observe/nn_tree.h"
#include "observe/session.h"

namespace roofprof::observe {
namespace {

const torch::nn::Module* module_at(const ModelTree& tree, std::size_t place) {
  return static_cast<const torch::nn::Module*>(tree.objects[place]);
}

std::vector<std::int64_t> calls_of(const ProfileData& data) {
  std::vector<std::int64_t> calls(data.modules.size());
  for (const auto& time : data.times) calls[static_cast<std::size_t>(time.module)] += time.calls;
  return calls;
}

// The places that have work of their own.
std::vector<bool> places_with_work(const ProfileData& data) {
  std::vector<bool> with_work(data.modules.size());
  for (const auto& op : data.ops) {
    if (!op.costed || op.work != Work{}) with_work[static_cast<std::size_t>(op.module)] = true;
  }
  return with_work;
}

}  // namespace

NnAttribution::NnAttribution(const ModelTree& tree) {
  for (std::size_t place = 0; place < tree.objects.size(); ++place) {
    const auto* module = module_at(tree, place);
    sights_.push_back(module == nullptr                 ? Sight::none
                      : is_container(*module)           ? Sight::container
                      : is_intercepted(typeid(*module)) ? Sight::intercepted
                                                        : Sight::custom);
  }
}

void NnAttribution::attach(const ModelTree& tree, Session& session) const {
  ParameterOwners owners;
  for (std::size_t place = 0; place < tree.objects.size(); ++place) {
    const auto* module = module_at(tree, place);
    if (module == nullptr) continue;
    // What lies in a ParameterList is its parent's.
    auto owner = place;
    while (sights_[owner] == Sight::container && tree.modules[owner].parent >= 0) {
      owner = static_cast<std::size_t>(tree.modules[owner].parent);
    }
    const void* object = sights_[owner] == Sight::intercepted ? nullptr : tree.objects[owner];
    for (const auto& parameter : module->parameters(/*recurse=*/false)) owners.add_parameter(parameter, object);
    for (const auto& buffer : module->buffers(/*recurse=*/false)) owners.add_buffer(buffer, object);
  }
  session.know(ModuleIndex(tree.modules, tree.objects), std::move(owners));
}

void NnAttribution::describe(ProfileData& data) const {
  const auto calls = calls_of(data);
  const auto with_work = places_with_work(data);
  // A module at several places tells of its calls wherever it was called.
  const auto first_place = [&](std::size_t place) {
    const auto first = data.modules[place].same_as;
    return first < 0 ? place : static_cast<std::size_t>(first);
  };
  std::vector<bool> seen(data.modules.size());
  for (std::size_t place = 0; place < calls.size(); ++place) {
    if (calls[place] > 0) seen[first_place(place)] = true;
  }
  for (std::size_t place = 0; place < sights_.size(); ++place) {
    auto& module = data.modules[place];
    if (sights_[place] == Sight::none) continue;
    if (seen[first_place(place)]) {
      module.calls_visible = true;
      continue;
    }
    module.calls_visible = sights_[place] == Sight::intercepted;
    if (sights_[place] != Sight::custom) continue;
    // Its own work stands in the nearest row above whose calls are seen, among that row's, but for what was known by
    // its parameters.
    auto above = module.parent;
    while (above >= 0 && calls[static_cast<std::size_t>(above)] == 0) {
      above = data.modules[static_cast<std::size_t>(above)].parent;
    }
    const auto holder = static_cast<std::size_t>(above >= 0 ? above : kOutside);
    if (with_work[holder]) data.modules[holder].inferred = module.inferred = true;
    if (with_work[place]) module.inferred = true;
  }
  if (!interception_works()) {
    data.notes.push_back(std::string(kAttention) +
                         "calls of torch::nn modules are not seen, as libroofprof_nn does not come before libtorch in "
                         "this program's link order: an op stands in the module whose parameters it takes, else in the "
                         "innermost scope that is open; optimizers' steps are not told apart");
  }
}

}  // namespace roofprof::observe
