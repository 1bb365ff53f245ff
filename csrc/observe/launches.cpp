#include "observe/launches.h"

namespace roofprof::observe {

LaunchId LaunchRegistry::id_of(BucketKey key) {
  const std::lock_guard lock(mutex_);
  if (ids_.size() >= kMost && !ids_.contains(key)) key.signature = 0;
  const auto [found, fresh] = ids_.try_emplace(key, keys_.size());
  if (fresh) keys_.push_back(key);
  return found->second;
}

std::vector<LaunchKey> LaunchRegistry::keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<LaunchKey> keys;
  for (const auto& key : keys_) keys.push_back({key.plain(), key.op == nullptr ? "" : key.op->name});
  return keys;
}

void LaunchMarks::move(Mark mark, LaunchId id) {
  if (mark == 0 || open_.size() < mark) return;
  for (auto inner = open_.rbegin(); inner != open_.rend() - (mark - 1); ++inner) marker_->pop(inner->level);
  open_[mark - 1].id = id;
  for (auto i = static_cast<std::size_t>(mark - 1); i < open_.size(); ++i) marker_->push(open_[i].id, open_[i].level);
}

}  // namespace roofprof::observe
