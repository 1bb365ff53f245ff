#pragma once
// Which launch id was current when a node of a CUDA graph was captured.

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "values/device_data.h"

namespace roofprof::cupti {

// Launching a graph runs all its nodes under one correlation id, so a kernel's module is found by its node. The nodes
// that run are clones of the captured ones, with ids of their own.
class GraphNodes {
 public:
  static constexpr std::size_t kMost = 1'000'000;  // further ones are treated as captured before the trace

  void created(std::uint64_t node, LaunchId launch);
  void cloned(std::uint64_t node, std::uint64_t original);
  LaunchId captured_by(std::uint64_t node) const;  // kNoLaunch: not known, or outside of every scope
  void clear();

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, LaunchId> launches_;
};

}  // namespace roofprof::cupti
