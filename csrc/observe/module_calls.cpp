#include "observe/module_calls.h"

#include "observe/interception.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// The first call on a thread: any profile's model may have the module.
bool enter_first(const void* module, ThreadState& state, ScopeKind kind) {
  for (const auto& session : Session::active_sessions()) {
    const auto* index = session->module_index();
    if (const auto place = index == nullptr ? std::nullopt : index->place_of(module, state.scopes)) {
      return session->enter(*place, module, kind);
    }
  }
  note_unknown_call(module);
  return false;
}

bool enter(const void* module, ScopeKind kind) {
  auto& state = thread_state();
  // A normalisation calls no modules: an error between its beginning and its operator was caught by its caller.
  if (!state.scopes.empty() && state.scopes.back().kind == ScopeKind::norm) state.close(state.scopes.back().token);
  if (!state.is_observed()) return enter_first(module, state, kind);
  if (state.scopes.back().token == module || state.is_paused() || state.in_owned_work()) return false;
  const auto* index = state.session->module_index();
  const auto place = index == nullptr ? std::nullopt : index->place_of(module, state.scopes);
  if (place) return state.open(*state.session, *place, state.phase_of_call(), kind, module);
  note_unknown_call(module);
  return false;
}

void leave(const void* entered) noexcept {
  if (entered != nullptr) thread_state().close(entered);
}

// Opens a scope on a thread that is observed, and only there.
template <bool (Session::*open)(const void*)>
const void* entered_here(const void* token) {
  if (call_listeners.load(std::memory_order_relaxed) == 0) return nullptr;
  const auto& state = thread_state();
  return state.is_observed() && (*state.session.*open)(token) ? token : nullptr;
}

}  // namespace

std::atomic<int> call_listeners{0};

bool enter_module(const void* module) { return enter(module, ScopeKind::module); }
void leave_module(const void* module) noexcept { thread_state().close(module); }
void enter_norm(const void* module) { enter(module, ScopeKind::norm); }

OptimizerStep::OptimizerStep(const void* optimizer) : entered_(entered_here<&Session::enter_optimizer>(optimizer)) {}
OptimizerStep::~OptimizerStep() { leave(entered_); }
StepsClosure::StepsClosure(const void* closure) : entered_(entered_here<&Session::enter_closure>(closure)) {}
StepsClosure::~StepsClosure() { leave(entered_); }

}  // namespace roofprof::observe
