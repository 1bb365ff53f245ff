#pragma once
// Measures how much memory is touched between two touches of the same memory: the distance at which a cache must
// remember it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

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
// Memory is known by its addresses: what is allocated where something was freed is as near as that was, and views are
// parts of their storage. A touch forgets what it covers, so there are never more intervals than touches.
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
  // The op touches it. Look up all that an op touches first.
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

}  // namespace roofprof::observe
