#include "observe/parameter_owners.h"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {

void ParameterOwners::add(const at::Tensor& tensor, Owner owner) {
  const auto [known, fresh] = owners_.try_emplace(tensor.unsafeGetTensorImpl(), owner);
  if (!fresh && known->second.module != owner.module) known->second.module = nullptr;
}

bool ParameterOwners::empty() const {
  return std::ranges::none_of(owners_, [](const auto& entry) { return entry.second.module != nullptr; });
}

const ParameterOwners::Owner* ParameterOwners::find(const at::Tensor& tensor) const {
  if (!tensor.defined()) return nullptr;
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
    const auto* owner = find(tensor);
    if (owner == nullptr) return;
    foreign |= (written && owner->is_parameter) || (module != nullptr && module != owner->module);
    module = owner->module;
  };
  for (const auto& slot : op.slots) {
    if (slot.position >= inputs.size()) continue;
    const auto& input = inputs[slot.position];
    if (input.isTensor()) {
      look_at(input.toTensor(), slot.written);
    } else if (input.isTensorList()) {
      for (const at::Tensor& tensor : input.toTensorList()) look_at(tensor, slot.written);
    }
  }
  return foreign ? nullptr : module;
}

std::optional<ModuleId> owner_of_op(const ThreadState& state, const OpInfo& op,
                                    c10::ArrayRef<const c10::IValue> inputs) {
  const auto* owners = state.session->parameter_owners();
  if (owners == nullptr) return std::nullopt;
  if (!state.ops.empty() && state.ops.back().owned) return state.ops.back().key.module;
  const auto running = state.place_now();
  if (running.phase == Phase::backward || running.phase == Phase::optimizer) return std::nullopt;
  const void* module = owners->owner_of(op, inputs);
  if (module == nullptr) return std::nullopt;
  const auto& index = *state.session->module_index();
  const auto place = index.place_of(module, state);
  // A module that opens scopes of its own says itself what its calls are.
  if (!place || state.table->was_called(*place)) return std::nullopt;
  for (auto scope = state.scopes.rbegin(); scope != state.scopes.rend(); ++scope) {
    if (scope->kind == ScopeKind::region) continue;
    if (scope->module != kOutside && !index.is_below(*place, scope->module)) return std::nullopt;
    break;
  }
  return place;
}

}  // namespace roofprof::observe
