#include "collect/cupti/graph_nodes.h"

namespace roofprof::cupti {

void GraphNodes::created(std::uint64_t node, LaunchId launch) {
  const std::lock_guard lock(mutex_);
  if (launches_.size() < kMost) launches_.try_emplace(node, launch);
}

void GraphNodes::cloned(std::uint64_t node, std::uint64_t original) {
  const std::lock_guard lock(mutex_);
  const auto known = launches_.find(original);
  const LaunchId launch = known == launches_.end() ? kNoLaunch : known->second;
  if (launches_.size() < kMost || launches_.contains(node)) launches_[node] = launch;
}

LaunchId GraphNodes::captured_by(std::uint64_t node) const {
  const std::lock_guard lock(mutex_);
  const auto known = launches_.find(node);
  return known == launches_.end() ? kNoLaunch : known->second;
}

void GraphNodes::clear() {
  const std::lock_guard lock(mutex_);
  launches_.clear();
}

}  // namespace roofprof::cupti
