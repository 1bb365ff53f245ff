#include "observe/modules/parameters.h"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "observe/operators/operands.h"

namespace roofprof::observe {

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
