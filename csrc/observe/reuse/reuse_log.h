#pragma once
// Records the reuse distance of the memory that the ops of one pass move, by bucket.

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
#include "observe/reuse/reuse_tracker.h"
#include "roofprof/work.h"

namespace roofprof::observe {

// A tensor that an op takes or makes, as memory of one device.
struct Operand {
  enum class Kind : std::uint8_t { input, written_input, result };
  TouchedMemory memory;
  std::int32_t device = 0;  // any number for each
  Kind kind = Kind::input;
};

// Threads share it, as they share the largest cache: what one computed, another one finds there.
class ReuseLog {
 public:
  // The place where an op was counted: a thread's table and the bucket in it.
  using Place = std::pair<const void*, std::uint32_t>;

  // Counts a call of an op that ended. No operand is read or written more than `work` says; an op that moves nothing
  // touches nothing.
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
