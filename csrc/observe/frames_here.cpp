#include "observe/frames_here.h"

#include <mutex>

#include "observe/session.h"
#include "observe/thread_state.h"
#include "observe/unobserved_work.h"

namespace roofprof::observe {

ThreadState* FramesHere::state() const {
  auto& state = thread_state();
  return state.session.get() == &session_ ? &state : nullptr;
}

ThreadState* FramesHere::innermost(const void* token) const {
  auto* here = state();
  return here != nullptr && here->frames.back().token == token ? here : nullptr;
}

bool FramesHere::enter(ModuleId module, const void* token, FrameKind kind) const {
  if (!session_.active()) return false;
  auto& state = thread_state();
  if (!state.frames.empty() && state.session.get() != &session_) return false;
  return state.open(session_, module, state.phase_of_call(), kind, token);
}

bool FramesHere::enter_observed(ModuleId module, Phase phase, FrameKind kind, const void* token) const {
  return session_.active() && state() != nullptr && state()->open(session_, module, phase, kind, token);
}

bool FramesHere::enter_optimizer(const void* token) const {
  return enter_observed(kOptimizer, Phase::optimizer, FrameKind::module, token);
}

bool FramesHere::enter_closure(const void* token) const {
  return enter_observed(kOutside, Phase::forward, FrameKind::base, token);
}

void FramesHere::pause() const { enter_observed(kOutside, Phase::forward, FrameKind::pause, this); }

std::optional<ModuleId> FramesHere::leave(const void* token) const {
  auto* here = state();
  return here == nullptr ? std::nullopt : here->close(token);
}

void FramesHere::count_if_uncalled(ModuleId module) const {
  const auto* here = state();
  if (here == nullptr || !session_.active()) return;
  const auto phase = here->phase_of_call();
  const std::lock_guard guard(here->lent.table->lock);
  if (!here->lent.table->was_called(module)) here->lent.table->count_call({module, phase, here->region});
}

Evidence FramesHere::evidence_inside(const void* token) const {
  const auto* here = innermost(token);
  return here == nullptr || here->in_owned_work() ? kWorkSeen : here->bypass.evidence;
}

void FramesHere::note_unobserved_module(std::string_view type, Unobserved kind) const {
  auto* here = state();
  if (here == nullptr) return;
  note_unobserved(*here, type, kind);
  here->bypass.numpy_exchange.forget(here->frames.back().exchanges_before);
}

std::vector<MemoryRange> FramesHere::imported(const void* token) const {
  const auto* here = innermost(token);
  if (here == nullptr || here->bypass.numpy_exchange.size() == 0 || here->in_owned_work()) return {};
  return here->bypass.numpy_exchange.results(here->frames.back().exchanges_before);
}

void FramesHere::forget_imported(const void* token) const {
  auto* here = innermost(token);
  if (here != nullptr) here->bypass.numpy_exchange.forget_results(here->frames.back().exchanges_before);
}

void FramesHere::note_outputs(const void* token, const std::vector<const void*>& blocks) const {
  const auto* here = innermost(token);
  if (here != nullptr && here->lent.memory) here->lent.memory->returns(here->frames.back().memory, blocks);
}

}  // namespace roofprof::observe
