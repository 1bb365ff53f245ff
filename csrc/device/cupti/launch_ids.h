#pragma once
// Keeps a stack of ids for each thread: the topmost owns what the thread launches. CUPTI gets the ids where it does not
// report launches.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "core/device_data.h"
#include "device/cupti/activity_records.h"
#include "device/cupti/api.h"

namespace roofprof::cupti {

// CUPTI's callbacks for launches and for nodes of graphs ask for the topmost id of their thread. Without callbacks
// CUPTI has to know the ids: it keeps a stack of external ids for each thread and writes the topmost into a record
// before each API call's. Ids that a thread left there when a trace ended must be popped before the next one.
class LaunchIds final : public LaunchMarker {
 public:
  static constexpr std::size_t kDeepest = 128;  // what nests deeper belongs to the id at this depth

  // Makes ids pushed before void. Called on the thread that starts a trace. `passed_on`: CUPTI gets the ids.
  void begin(const Api& api, bool passed_on);
  // Returns the number of ids that CUPTI did not take.
  std::int64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // Pops what this thread pushed and did not pop.
  void clear_this_thread() noexcept;

  void push(LaunchId id, LaunchLevel level) noexcept override;
  void pop(LaunchLevel level) noexcept override;
  // The topmost id of this thread.
  LaunchId current() const noexcept;

 private:
  struct Stack {
    std::uint64_t trace = 0;  // that the ids are of
    std::size_t depth = 0;
    std::array<LaunchId, kDeepest> ids;
    std::array<bool, kDeepest> pushed;  // CUPTI has it
  };
  static Stack& stack() noexcept;
  Stack& stack_of_this_trace() noexcept;
  void drain(Stack& stack) noexcept;
  bool pass_on(LaunchId id) noexcept;

  std::atomic<const Api*> api_ = nullptr;
  std::atomic<bool> passed_on_ = false;
  std::atomic<std::uint64_t> trace_ = 0;
  std::atomic<std::int64_t> refused_ = 0;
};

// Remembers which launch id was current when a node of a CUDA graph was captured.

// A launch of a graph runs all its nodes under one correlation id, so a kernel's module is found by its node. The nodes
// that run are clones of the captured ones, with different ids.
class GraphNodes {
 public:
  static constexpr std::size_t kMost = 1'000'000;  // further ones are treated as captured before the trace

  void created(std::uint64_t node, LaunchId launch) {
    const std::lock_guard lock(mutex_);
    if (launches_.size() < kMost) launches_.try_emplace(node, launch);
  }

  void cloned(std::uint64_t node, std::uint64_t original) {
    const std::lock_guard lock(mutex_);
    const LaunchId launch = find(original);
    if (launches_.size() < kMost || launches_.contains(node)) launches_[node] = launch;
  }

  // kNoLaunch: not known, or outside of every scope.
  LaunchId captured_by(std::uint64_t node) const {
    const std::lock_guard lock(mutex_);
    return find(node);
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    launches_.clear();
  }

 private:
  LaunchId find(std::uint64_t node) const {
    const auto known = launches_.find(node);
    return known == launches_.end() ? kNoLaunch : known->second;
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, LaunchId> launches_;
};

}  // namespace roofprof::cupti
