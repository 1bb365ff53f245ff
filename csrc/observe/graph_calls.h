#pragma once
// Records the ranges in calls of a graph that was compiled to show its kernels: torch opens one in each kernel, and its
// own operators are ranges anyway.

#include <ATen/record_function.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "core/pass.h"

namespace roofprof::observe {

class Session;

// The call of a graph that is open on a thread.
struct OpenGraph {
  GraphCall call;
  int depth = 0;  // graphs that are open inside one another: the outermost is kept
  const at::RecordFunction* range = nullptr;
  std::chrono::steady_clock::time_point begin;

  bool is_open() const { return depth > 0; }
  // Note the begin and the end of the outermost ranges in it.
  void begin_range(const at::RecordFunction& fn);
  void end_range(const at::RecordFunction& fn);
};

// The calls of a pass, in the order of their ends, whatever the thread.
class KeptGraphCalls {
 public:
  void keep(GraphCall call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  std::vector<GraphCall> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<GraphCall> calls_;
};

// Mark the begin and the end of a graph's call on this thread. Where no pass observes the thread, nothing is kept.
void enter_graph(Session& session, std::int64_t graph);
void leave_graph(Session& session);

}  // namespace roofprof::observe
