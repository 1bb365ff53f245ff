#pragma once
// Holds what a session's threads were seen to do. The observer and the hooks note it as they work; runs read it.

#include <atomic>
#include <cstdint>

namespace roofprof::observe {

// A flag that is set when something has happened. Threads share it, so it is written once.
class Flag {
 public:
  void set() {
    if (!is_set()) set_.store(true, std::memory_order_relaxed);
  }
  void clear() { set_.store(false, std::memory_order_relaxed); }
  bool is_set() const { return set_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> set_{false};
};

// Knows whether ops ran during a pass on threads without a frame that may work for it.
class OpsElsewhere {
 public:
  void start_pass();
  // Notes one on a thread that works for this session's run.
  void note() { own_.set(); }
  // Notes one on a thread that no session is known to have started: it may be any pass's that is under way.
  static void note_of_nobody();
  bool any() const;

 private:
  Flag own_;
  std::uint64_t start_ = 0;  // which of all sessions' starts its pass began with
};

struct SeenOnThreads {
  Flag computed_with_data;     // an op did
  Flag computed_without_data;  // on meta or fake tensors
  // Calls of the model announce themselves (in C++: by ROOFPROF_SCOPE or as calls of an intercepted class).
  Flag model_tells;
  OpsElsewhere ops_elsewhere;
};

}  // namespace roofprof::observe
