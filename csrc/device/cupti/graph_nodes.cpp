#include "device/cupti/graph_nodes.h"

namespace roofprof::cupti {

void GraphNodes::created(std::uint64_t node, LaunchId launch) {
  const std::lock_guard lock(mutex_);
  if (launches_.size() < kMost) launches_[node] = launch;
}

void GraphNodes::cloned(std::uint64_t node, std::uint64_t original) {
  const std::lock_guard lock(mutex_);
  const auto known = launches_.find(original);
  if (known == launches_.end() || launches_.size() >= kMost) return;
  const LaunchId launch = known->second;
  launches_[node] = launch;
}

std::optional<LaunchId> GraphNodes::captured_by(std::uint64_t node) const {
  const std::lock_guard lock(mutex_);
  const auto known = launches_.find(node);
  return known == launches_.end() ? std::nullopt : std::optional(known->second);
}

void GraphNodes::clear() {
  const std::lock_guard lock(mutex_);
  launches_.clear();
}

}  // namespace roofprof::cupti
