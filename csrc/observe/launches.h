#pragma once
// What a device's collector is told that launches belong to: ids for a session's modules and ops, and the marks that
// one thread has open.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/device_data.h"
#include "observe/bucket_table.h"

namespace roofprof::observe {

// The same id for a key in all passes and threads of a session. A key without an op stands for the module itself, the
// signature is that of the op's inputs.
class LaunchIds {
 public:
  // Distinct ones; further inputs of an op share an id.
  static constexpr std::size_t kMost = 1 << 14;

  LaunchId id_of(BucketKey key);
  // By id; the first stands for kNoLaunch.
  std::vector<BucketKey> keys() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<BucketKey, LaunchId, BucketKeyHash> ids_;
  std::vector<BucketKey> keys_ = {BucketKey{nullptr, kOutside, Phase::forward, 0}};
};

// Whatever ends in whatever order, each mark that was pushed is popped once, the innermost first.
class LaunchMarks {
 public:
  using Mark = std::uint32_t;  // how many were open with it; 0: none

  bool wanted() const { return marker_ != nullptr; }
  void tell(LaunchMarker* marker) { marker_ = marker; }

  Mark push(LaunchId id, LaunchLevel level) {
    open_.push_back({id, level});
    marker_->push(id, level);
    return static_cast<Mark>(open_.size());
  }
  // Ends it and what was left open inside; nothing where it ended already.
  void end(Mark mark) {
    if (mark == 0) return;
    while (open_.size() >= mark) {
      marker_->pop(open_.back().level);
      open_.pop_back();
    }
  }
  // The mark means something else from now on; what is open inside stays open.
  void move(Mark mark, LaunchId id);
  // All that is open, and nobody is told any more.
  void end_all() {
    end(1);
    marker_ = nullptr;
  }

 private:
  struct Open {
    LaunchId id;
    LaunchLevel level;
  };
  LaunchMarker* marker_ = nullptr;
  std::vector<Open> open_;
};

}  // namespace roofprof::observe
