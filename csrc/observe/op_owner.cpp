#include "observe/op_owner.h"

#include "observe/session.h"

namespace roofprof::observe {

std::optional<ModuleId> owner_of_op(const ThreadState& state, const OpInfo& op,
                                    c10::ArrayRef<const c10::IValue> inputs) {
  const auto& owners = state.session->setup.parameter_owners;
  if (!owners) return std::nullopt;
  if (!state.ops.empty() && state.ops.back().owned) return state.ops.back().key.owner.module;
  const auto running = state.now();
  if (running.phase == Phase::backward || running.phase == Phase::optimizer) return std::nullopt;
  const void* module = owners->owner_of(op, inputs);
  if (module == nullptr) return std::nullopt;
  const auto& index = *state.session->setup.modules;
  const auto place = index.place_of(module, state.frames);
  // A module that opens frames reports its calls itself.
  if (!place || state.lent.table->was_called(*place)) return std::nullopt;
  for (auto frame = state.frames.rbegin(); frame != state.frames.rend(); ++frame) {
    if (frame->kind == FrameKind::region) continue;
    if (frame->module != kOutside && !index.is_below(*place, frame->module)) return std::nullopt;
    break;
  }
  return place;
}

}  // namespace roofprof::observe
