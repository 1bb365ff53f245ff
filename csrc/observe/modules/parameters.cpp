#include "observe/modules/parameters.h"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <iterator>

#include "observe/operators/operands.h"
#include "observe/operators/tensor_format.h"

namespace roofprof::observe {

SubtreeSizes::Held& SubtreeSizes::held_at(std::uint64_t identity, const at::Tensor& tensor) {
  const auto [known, fresh] = held_.try_emplace(identity);
  if (fresh) known->second = {tensor.numel(), bytes_of(tensor), tensor.requires_grad(), {}, {}};
  return known->second;
}

void SubtreeSizes::add(ModuleId place, const OwnTensors& tensors) {
  const auto held = [&](const at::Tensor& tensor) -> Held& {
    return held_at(reinterpret_cast<std::uintptr_t>(tensor.unsafeGetTensorImpl()), tensor);
  };
  for (const auto& parameter : tensors.parameters) {
    if (parameter.defined()) held(parameter).as_parameter.push_back(place);
  }
  for (const auto& buffer : tensors.buffers) {
    if (buffer.defined()) held(buffer).as_buffer.push_back(place);
  }
}

void SubtreeSizes::add_copy(ModuleId place, const at::Tensor& parameter, std::uint64_t identity) {
  held_at(identity, parameter).as_parameter.push_back(place);
}

void SubtreeSizes::write_to(std::vector<Module>& modules) const {
  const auto row = [&](ModuleId place) -> Module& { return modules[index_of(place)]; };
  // Calls add(place, factor) such that each subtree with any of these places has a sum of 1: two that follow each other
  // have been counted twice in the subtrees that hold both. A parent stands before what is below it.
  const auto once_in_each = [&](const std::vector<ModuleId>& places, const auto& add) {
    ModuleId before = -1;
    for (const auto place : places) {
      add(place, 1);
      if (before >= 0) {
        auto a = before;
        auto b = place;
        while (a != b && a >= 0 && b >= 0) (a > b ? a : b) = row(std::max(a, b)).parent;
        if (a == b) add(a, -1);
      }
      before = place;
    }
  };
  for (const auto& [identity, held] : held_) {
    once_in_each(held.as_parameter, [&, &held = held](ModuleId place, std::int64_t times) {
      row(place).params += times * held.elements;
      row(place).trainable_params += held.trainable ? times * held.elements : 0;
      row(place).param_bytes += times * held.bytes;
    });
    if (held.as_buffer.empty()) continue;
    const auto add_buffer = [&, &held = held](ModuleId place, std::int64_t times) {
      row(place).buffer_bytes += times * held.bytes;
    };
    std::vector<ModuleId> anywhere;
    std::ranges::merge(held.as_buffer, held.as_parameter, std::back_inserter(anywhere));
    once_in_each(anywhere, add_buffer);
    once_in_each(held.as_parameter, [&](ModuleId place, std::int64_t times) { add_buffer(place, -times); });
  }
  for (auto place = modules.size(); place-- > 0;) {
    const auto& below = modules[place];
    if (below.parent < 0) continue;
    auto& above = row(below.parent);
    above.params += below.params;
    above.trainable_params += below.trainable_params;
    above.param_bytes += below.param_bytes;
    above.buffer_bytes += below.buffer_bytes;
  }
}

void ParameterOwners::add(const at::Tensor& tensor, Owner owner) {
  may_own_.set(bit_of(tensor.unsafeGetTensorImpl()));
  const auto [known, fresh] = owners_.try_emplace(tensor.unsafeGetTensorImpl(), owner);
  if (!fresh && known->second.module != owner.module) known->second.module = nullptr;
}

bool ParameterOwners::empty() const {
  return std::ranges::none_of(owners_, [](const auto& entry) { return entry.second.module != nullptr; });
}

const ParameterOwners::Owner* ParameterOwners::find(const at::Tensor& tensor) const {
  auto found = owners_.find(tensor.unsafeGetTensorImpl());
  if (found == owners_.end()) {
    // A transposed weight, say.
    const auto* view = torch::autograd::impl::get_view_autograd_meta(tensor);
    if (view == nullptr || !view->has_bw_view()) return nullptr;
    found = owners_.find(view->get_backward_view().base_.unsafeGetTensorImpl());
  }
  return found == owners_.end() || found->second.module == nullptr ? nullptr : &found->second;
}

const void* ParameterOwners::owner_of(const OpInfo& op, c10::ArrayRef<const c10::IValue> inputs) const {
  const void* module = nullptr;
  bool foreign = false;
  const auto look_at = [&](const at::Tensor& tensor, bool written) {
    const auto* owner = may_find(*tensor.unsafeGetTensorImpl()) ? find(tensor) : nullptr;
    if (owner == nullptr) return;
    foreign |= (written && owner->is_parameter) || (module != nullptr && module != owner->module);
    module = owner->module;
  };
  for (const auto& slot : op.slots) {
    if (slot.position >= inputs.size()) continue;
    for_each_tensor_value(inputs[slot.position],
                          [&](const c10::IValue& tensor, std::size_t) { look_at(tensor.toTensor(), slot.written); });
  }
  return foreign ? nullptr : module;
}

}  // namespace roofprof::observe
