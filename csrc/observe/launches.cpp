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

LaunchId LaunchMarks::id_of(const BucketKey& key) {
  if (const auto known = table_->launch_of(key); known != kNoLaunch) return known;
  const auto id = registry_->id_of(key);
  table_->keep_launch(key, id);
  return id;
}

LaunchMarks::Mark LaunchMarks::push(const BucketKey& key, LaunchLevel level, std::uint32_t event) {
  const auto id = with_event(id_of(key), event);
  open_.push_back({id, level});
  marker_->push(id, level);
  return static_cast<Mark>(open_.size());
}

void LaunchMarks::move(Mark mark, const BucketKey& key) {
  if (mark == 0 || open_.size() < mark) return;
  for (auto inner = open_.rbegin(); inner != open_.rend() - (mark - 1); ++inner) marker_->pop(inner->level);
  open_[mark - 1].id = id_of(key);
  for (auto i = static_cast<std::size_t>(mark - 1); i < open_.size(); ++i) marker_->push(open_[i].id, open_[i].level);
}

}  // namespace roofprof::observe
