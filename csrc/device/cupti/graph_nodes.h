#pragma once
// Remembers which launch id was current when a node of a CUDA graph was captured.

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "core/device_data.h"

namespace roofprof::cupti {

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
