#pragma once
// The passes of all sessions that are under way in this process. The observer's callback is installed while there is
// at least one.

#include <ATen/record_function.h>

#include <memory>
#include <vector>

#include "core/forks.h"

namespace roofprof::observe {

class Session;

struct ActivePasses {
  ForkMutex mutex;  // guards what follows
  std::vector<std::shared_ptr<Session>> sessions;
  at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
  // The callback came with a fork. It stays, as to remove it would lock a mutex that may be locked in this process for
  // ever; without a pass it does nothing.
  bool inherited = false;

  static ActivePasses& instance();
  // Installs the callback where it is missing. Returns whether no pass and no observer of others was there before.
  // std::runtime_error where torch's list of callbacks was locked when this process was forked.
  bool install();
  void remove();

 private:
  static void before_fork();
  static void leave_to_parent();
};

// Returns the sessions with an active pass, for threads that must find their own.
std::vector<std::shared_ptr<Session>> active_sessions();

}  // namespace roofprof::observe
