#pragma once
// Measures how much memory is touched between two touches of the same memory (the distance at which a cache must
// remember it), and records that for the ops of one pass, by bucket.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/pass.h"
#include "core/reuse.h"
#include "roofprof/work.h"

namespace roofprof::observe {

// A touch of `bytes` bytes in [begin, end): fewer than its length where a view has gaps.
struct TouchedMemory {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::int64_t bytes = 0;
};

// Ops touch memory one after the other, and each touches all of its memory at once. The distance of memory that an op
// touches is what was touched by the op that touched it last, and by all ops since: each byte counts once. So an op
// that runs again and again finds its memory at the distance of its footprint.
//
// Memory is known by its addresses, which are those of stable places where ops of a pass are observed: what is
// allocated where something was freed is as near as that was, and views are parts of their storage. A touch forgets
// what it covers, so there are never more intervals than touches.
class ReuseTracker {
 public:
  static constexpr std::int64_t kNever = -1;
  // The number of intervals that are remembered; beyond it, those that were touched longest ago are forgotten.
  static constexpr std::size_t kMost = 1 << 14;

  // A part of what was looked up; `distance` is kNever where it was not touched before.
  struct Part {
    TouchedMemory memory;
    std::int64_t distance = 0;
  };

  // Adds the parts of `memory` to `parts`: those that were touched in different ops, and those that never were. Once
  // intervals have been forgotten, an unknown part gets total() as its distance.
  void look_up(const TouchedMemory& memory, std::vector<Part>& parts);
  // Notes that the op touches the memory. Look up all memory of an op first.
  void touch(const TouchedMemory& memory);
  // Ends the op: another op makes the touches from now on.
  void next_op();

  // Returns the bytes that are remembered.
  std::int64_t total() const { return total_; }

 private:
  struct Interval {
    std::uintptr_t end = 0;
    std::int64_t bytes = 0;
    std::size_t op = 0;  // that touched it last
  };
  using Intervals = std::map<std::uintptr_t, Interval>;  // disjoint, by their begin

  // The interval that was found lately for a begin: most memory is touched again with the same bounds.
  struct Found {
    std::uintptr_t begin = 0;
    Intervals::iterator interval;  // of that begin; where that is 0, of none
  };
  static std::size_t slot_of(std::uintptr_t begin) { return (begin >> 4) * 0x9E3779B97F4A7C15ULL >> 54; }

  Intervals::iterator find(const TouchedMemory& memory);
  Intervals::const_iterator first_behind(std::uintptr_t begin) const;
  Intervals::const_iterator erase(Intervals::const_iterator interval);
  std::int64_t touched_since(std::size_t op) const;
  void add_to_tree(std::size_t op, std::int64_t bytes);
  void forget(std::size_t op, std::int64_t bytes);
  void renumber();

  Intervals intervals_;
  std::vector<Found> found_ = std::vector<Found>(1 << 10);  // by slot
  std::size_t op_ = 1;
  std::int64_t total_ = 0;
  std::int64_t of_this_op_ = 0;  // of the total; in the tree when the op is over
  // A Fenwick tree: bytes by the op that touched them last, from 1 on. Small, so that it stays near between two ops.
  std::vector<std::int64_t> sums_ = std::vector<std::int64_t>((1 << 8) + 1);
  bool forgot_ = false;
};

// A tensor that an op takes or makes, as memory of one device.
struct Operand {
  enum class Kind : std::uint8_t { input, written_input, result };
  // The device of tensors without data (meta, fake): their memory is that of their storage, which begins at 0.
  static constexpr std::int32_t kNowhere = -1;

  TouchedMemory memory;
  std::int32_t device = 0;  // any number for each
  Kind kind = Kind::input;
  void* storage = nullptr;    // its c10::StorageImpl
  std::uintptr_t origin = 0;  // where the storage's memory begins
  std::uint64_t layout = 0;   // of a view with gaps: equal for equal strides and sizes, in any order
};

// Threads share it, as they share the largest cache: what one computed, another one finds there.
class ReuseLog {
 public:
  // The place where an op was counted: a thread's table and the bucket in it.
  using Place = std::pair<const void*, std::uint32_t>;

  // Counts a call of an op that ended. No operand is read or written more than `work` says; an op that moves nothing
  // touches nothing, and so do operands without data.
  void count(Place place, std::span<const Operand> operands, const Work& work);
  // Touches the operands of a call of which nothing else is known.
  void touch(std::span<const Operand> operands);

  // Sets Pass::Op::reuse when the pass is over. `op_of` returns the index of a bucket's op; -1: it is none of them. The
  // pass before did the same, so it gives the last touch of memory that this pass touched for the first time.
  void collect(std::vector<Pass::Op>& ops, const std::function<std::int64_t(Place)>& op_of);

 private:
  struct Moved {
    TouchedMemory memory;
    std::int32_t device = 0;
    ReusedBytes bytes;
  };
  struct FirstTouch {
    std::size_t op = 0;
    Place place;
    Moved moved;
  };

  ReuseTracker& tracker_of(std::int32_t device);
  Reuse& reuse_at(Place place);
  void move(Place place, bool counts);

  std::mutex mutex_;                                             // guards what follows; threads rarely share a pass
  std::vector<std::pair<std::int32_t, ReuseTracker>> trackers_;  // of devices, of which there are few
  std::map<const void*, std::vector<Reuse>> by_table_;           // by bucket
  std::vector<FirstTouch> first_touches_;                        // in order
  std::size_t op_ = 0;
  // Scratch for one op, kept so that its memory is used again.
  std::vector<Moved> moved_;
  std::vector<ReuseTracker::Part> parts_;
};

}  // namespace roofprof::observe
