// The passes that are under way, and what a fork leaves of them.

#include <thread>
#include <utility>

#include "observe/module_calls.h"
#include "observe/op_observer.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {

ActivePasses& ActivePasses::instance() {
  static auto* passes = [] {
    handle_forks({&before_fork, &leave_to_parent});
    return new ActivePasses;  // outlives every thread
  }();
  return *passes;
}

void ActivePasses::install() {
  callback = at::addGlobalCallback(op_observer_callback());
  changed = std::chrono::steady_clock::now();
}

void ActivePasses::remove() {
  at::removeCallback(std::exchange(callback, at::INVALID_CALLBACK_HANDLE));
  changed = std::chrono::steady_clock::now();
}

// Each thread reads torch's callbacks anew with its first op after a change, under a mutex of torch's that a child
// would find held.
void ActivePasses::before_fork() {
  constexpr std::chrono::milliseconds kUntilRead{1};
  const auto since = std::chrono::steady_clock::now() - instance().changed;
  if (since < kUntilRead) std::this_thread::sleep_for(kUntilRead - since);
}

// In a child. Other threads may have been about to change what is theirs of a session, so none is looked at again, nor
// destroyed.
void ActivePasses::leave_to_parent() {
  static auto* left = new std::vector<std::shared_ptr<Session>>;
  auto& passes = instance();
  for (const auto& session : passes.sessions) session->active_.store(false, std::memory_order_relaxed);
  left->insert(left->end(), passes.sessions.begin(), passes.sessions.end());
  left->push_back(thread_state().leave_to_parent());
  passes.sessions.clear();
  call_listeners = 0;
  if (passes.callback != at::INVALID_CALLBACK_HANDLE) passes.remove();
}

std::vector<std::shared_ptr<Session>> Session::active_sessions() {
  auto& passes = ActivePasses::instance();
  const std::lock_guard lock(passes.mutex);
  return passes.sessions;
}

}  // namespace roofprof::observe
