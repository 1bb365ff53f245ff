#include "observe/module_calls.h"

#include "observe/active_passes.h"
#include "observe/interception.h"
#include "observe/operators/op_signature.h"
#include "observe/operators/operands.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

const std::vector<Frame> kNone;  // are open

// Returns whether this thread, which nobody is known to have started, runs a call of the model itself. Where calls of
// the model do not announce themselves, the answer is: perhaps.
InModel in_model(const Session& session) {
  if (!session.seen.model_tells.is_set()) return InModel::perhaps;
  return is_announced_around(session.setup.model) ? InModel::yes : InModel::no;
}

bool open(Session& session, ThreadState& state, const PlacedCall& call, FrameKind kind, const void* module) {
  if (!session.frames.enter(call.place, module, kind)) return false;
  if (call.is_certain()) return true;
  state.frames.back().is_certain = false;
  const std::lock_guard guard(state.lent.table->lock);
  state.lent.table->uncertain_places.insert(call.may_be.begin(), call.may_be.end());
  return true;
}

// The first call on a thread: any profile's model may have the module.
bool enter_first(const void* module, ThreadState& state, FrameKind kind) {
  bool known = false;
  for (const auto& session : active_sessions()) {
    const auto& index = session->setup.modules;
    const auto call = !index ? std::nullopt : index->place_of(module, kNone, state.last_call_of(*session));
    if (!call) continue;
    known = true;
    if (is_counted(*session, call->place, [&] { return in_model(*session); })) {
      return open(*session, state, *call, kind, module);
    }
  }
  if (!known) note_unknown_call(module);
  return false;
}

bool enter(const void* module, FrameKind kind, CallMark mark = {}) {
  auto& state = thread_state();
  // A normalisation calls no modules: an error between its beginning and its operator was caught by its caller.
  if (!state.frames.empty() && state.frames.back().kind == FrameKind::norm) state.close(state.frames.back().token);
  if (!state.is_observed()) return enter_first(module, state, kind);
  if (state.frames.back().token == module && !is_announced_around(module, mark)) {
    if (module == state.session->setup.model) state.session->seen.model_tells.set();
    return false;
  }
  if (state.is_paused()) return false;
  const auto& index = state.session->setup.modules;
  const auto call = !index ? std::nullopt : index->place_of(module, state.frames, state.frames.back().last);
  if (!call) {
    note_unknown_call(module);
    return false;
  }
  const bool opened = open(*state.session, state, *call, kind, module);
  // Inside an op that counts as a whole, the operator that ends a normalisation is not looked at.
  if (kind == FrameKind::norm && state.in_owned_work()) state.close(module);
  return opened;
}

}  // namespace

std::atomic<int> call_listeners{0};

bool enter_module(const void* module, CallMark mark) { return enter(module, FrameKind::module, mark); }
void leave_module(const void* module) noexcept { thread_state().close(module); }
void enter_norm(const void* module, const at::Tensor& input) {
  if (!enter(module, FrameKind::norm)) return;
  auto& state = thread_state();
  state.norm.reset();
  if (!state.is_observed() || state.frames.back().kind != FrameKind::norm || !state.session->shapes.wanted()) return;
  state.norm = std::make_unique<NormCall>();
  state.norm->shapes.inputs.add(input);
}

void leave_norm(ThreadState& state, const at::RecordFunction& fn) {
  if (!state.norm || state.norm->ends_with != &fn) return;
  const auto norm = std::move(state.norm);
  const OpInfo* op = op_info(fn);
  const auto* result = op == nullptr ? nullptr : first_result(fn, *op);
  if (result != nullptr) tell_results(&fn, std::move(norm->shapes), TensorSpan(&result, 1));
}

void tell_results(const void* token, CallShapes&& call, std::optional<TensorSpan> results) {
  const auto& state = thread_state();
  if (!state.is_observed() || state.frames.back().token != token || !state.session->shapes.wanted()) return;
  for (const auto* result : results.value_or(TensorSpan())) call.outputs.add(*result);
  if (results && state.lent.memory) {
    std::vector<const void*> blocks;
    bool known = true;
    for (const auto* result : *results) known &= add_output_block(*result, blocks);
    if (known) state.session->frames.note_outputs(token, blocks);
  }
  state.session->shapes.keep(state.frames.back().module, std::move(call));
}

bool ModuleCall::keeps_shapes() {
  const auto& state = thread_state();
  return state.is_observed() && state.session->shapes.wanted();
}
void ModuleCall::takes(const Tensors& inputs) {
  shapes_.emplace();
  for (const auto* input : inputs) shapes_->inputs.add(*input);
}
void ModuleCall::returns(const Tensors& results) {
  if (shapes_) tell_results(entered_, std::move(*shapes_), TensorSpan(results));
}

StepCall::StepCall(Of of, const void* token) {
  if (call_listeners.load(std::memory_order_relaxed) == 0 || !thread_state().is_observed()) return;
  const auto& frames = thread_state().session->frames;
  if (of == Of::optimizer ? frames.enter_optimizer(token) : frames.enter_closure(token)) entered_ = token;
}
StepCall::~StepCall() {
  if (entered_ != nullptr) thread_state().close(entered_);
}

}  // namespace roofprof::observe
