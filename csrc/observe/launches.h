#pragma once
// Names the owners of launches for a device's collector: ids for a session's modules and ops, and the marks that one
// thread has open.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/device_data.h"
#include "core/run_record.h"
#include "observe/bucket_table.h"

namespace roofprof::observe {

// Gives a key the same id in all passes and threads of a session. A key without an op means the module itself; the
// signature is that of the op's inputs.
class LaunchRegistry {
 public:
  // The number of distinct ids; further inputs of an op share one.
  static constexpr std::size_t kMost = 1 << 14;

  LaunchId id_of(BucketKey key);
  // Returns the keys by id; the first is the key of kNoLaunch.
  std::vector<LaunchKey> keys() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<BucketKey, LaunchId, BucketKeyHash> ids_;
  std::vector<BucketKey> keys_ = {BucketKey{.owner = {kOutside}}};
};

// The marks that one thread has open, of what launches belong to until it ends, except for those of marks inside. Each
// mark that was pushed is popped exactly once, the innermost first, also when an op ends after its frame.
class LaunchMarks {
 public:
  using Mark = std::uint32_t;  // how many were open with it; 0: none

  // Null: no device is traced. `table` is this thread's.
  void start(LaunchMarker* marker, LaunchRegistry& registry, BucketTable& table) {
    marker_ = marker;
    registry_ = &registry;
    table_ = &table;
  }
  bool wanted() const { return marker_ != nullptr; }
  // Called where marks are wanted. `event`: the op's, where events are kept.
  Mark push(const BucketKey& key, LaunchLevel level, std::uint32_t event = 0);
  // Ends the mark and those left open inside it; does nothing if it ended already.
  void end(Mark mark) {
    if (mark == 0) return;
    while (open_.size() >= mark) {
      marker_->pop(open_.back().level);
      open_.pop_back();
    }
  }
  // The mark means something else from now on; marks inside it stay open.
  void move(Mark mark, const BucketKey& key);
  // Pops all open marks and forgets the marker.
  void end_all() {
    end(1);
    marker_ = nullptr;
  }

 private:
  struct Open {
    LaunchId id;
    LaunchLevel level;
  };
  LaunchId id_of(const BucketKey& key);

  LaunchMarker* marker_ = nullptr;
  LaunchRegistry* registry_ = nullptr;
  BucketTable* table_ = nullptr;
  std::vector<Open> open_;
};

}  // namespace roofprof::observe
