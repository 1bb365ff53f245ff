#include "observe/active_passes.h"

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "observe/module_calls.h"
#include "observe/op_observer.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// Throws std::runtime_error in a child of fork() where another thread of its parent held torch's list of callbacks:
// that list's mutex then stays locked.
void refuse_locked_callbacks() {
  static std::uint32_t free_in = 0;  // forks so far: the process in which the list was found free
  constexpr std::chrono::seconds kAtMost{5};
  const auto process = forks_so_far();
  if (process == free_in) return;
  const auto promise = std::make_shared<std::promise<void>>();
  const auto answer = promise->get_future();
  std::thread([promise] {
    at::hasGlobalCallbacks();
    promise->set_value();
  }).detach();
  if (answer.wait_for(kAtMost) == std::future_status::timeout) {
    throw RuntimeError(
        "roofprof: this process cannot be profiled: when it was forked, another thread was changing torch's list of "
        "callbacks (each backward() does), which is locked here for ever. Fork while no other thread runs backward(), "
        "or start processes with the method spawn");
  }
  free_in = process;
}

}  // namespace

ActivePasses& ActivePasses::instance() {
  static auto* passes = [] {
    handle_forks({&before_fork, &leave_to_parent});
    return new ActivePasses;  // outlives every thread
  }();
  return *passes;
}

bool ActivePasses::install() {
  if (callback != at::INVALID_CALLBACK_HANDLE) return false;
  refuse_locked_callbacks();
  const bool alone = !at::hasGlobalCallbacks();
  callback = at::addGlobalCallback(op_observer_callback());
  return alone;
}

void ActivePasses::remove() {
  if (inherited || callback == at::INVALID_CALLBACK_HANDLE) return;
  at::removeCallback(std::exchange(callback, at::INVALID_CALLBACK_HANDLE));
}

// Reads torch's callbacks for this thread, which reads them again after each change, under a mutex of torch's. In the
// child they have not changed since, so its ops do not touch that mutex, which may be locked there for ever: each
// backward() of each thread locks it.
void ActivePasses::before_fork() { at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION); }

// Leaves the passes to the parent, in a child. Other threads may have been changing their part of a session at the
// fork, so the child neither looks at a session again nor destroys it.
void ActivePasses::leave_to_parent() {
  static auto* left = new std::vector<std::shared_ptr<Session>>;
  auto& passes = instance();
  for (const auto& session : passes.sessions) session->active_.store(false, std::memory_order_relaxed);
  left->insert(left->end(), passes.sessions.begin(), passes.sessions.end());
  left->push_back(thread_state().leave_to_parent());
  passes.sessions.clear();
  call_listeners = 0;
  passes.inherited = passes.callback != at::INVALID_CALLBACK_HANDLE;
}

std::vector<std::shared_ptr<Session>> active_sessions() {
  auto& passes = ActivePasses::instance();
  const std::lock_guard lock(passes.mutex);
  return passes.sessions;
}

}  // namespace roofprof::observe
