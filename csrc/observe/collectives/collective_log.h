#pragma once
// The collectives of one pass: which were called, and when each began and ended. Calls end on threads of their backend,
// perhaps after the pass.

#include <ATen/record_function.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/collective_data.h"
#include "observe/clock/clock.h"

namespace roofprof::observe {

class CollectiveLog {
 public:
  using Id = std::uint32_t;
  static constexpr Id kNone = 0;
  // The place where an op was counted: a thread's table and the bucket in it.
  using Place = std::pair<const void*, std::uint32_t>;

  // Returns the number of the group of that name, which is known from now on.
  std::int64_t group(const std::string& name, const std::string& backend, std::int64_t ranks);

  // Notes a call that is under way since then. Returns kNone where there is no more room. Calls that all ranks of the
  // group make are numbered, calls between two are not: gloo's own numbers count both, and differ from rank to rank.
  Id begin(std::int64_t group, Ticks begun, bool is_of_all);
  void end(Id id, Ticks ended, bool failed);
  // Handles the Work of a backend that does not report its end: the call ends when poll() finds it completed, or
  // released by its waiter.
  void end_when_released(Id id, const c10::intrusive_ptr<c10d::Work>& work);
  // Notes that nothing reports when the call ends.
  void never_ends(Id id);
  // Notes that the op which made the call was counted there.
  void count(Id id, std::int64_t group, Place place);

  // Returns whether a call was under way at some time since `start`. Each op asks this, so it takes no lock.
  bool any_since(Ticks start) const {
    return under_way_.load(std::memory_order_relaxed) > 0 || last_end_.load(std::memory_order_relaxed) > start;
  }
  bool wants_poll() const { return polled_count_.load(std::memory_order_relaxed) > 0; }
  void poll(Ticks now);
  // Waits for callbacks, a few milliseconds at most, when the pass has ended: a thread that waits for a call wakes up
  // before its callback here runs.
  void settle(Ticks now);
  // Notes that an op which overlaps a call computed meanwhile.
  void computed(Ticks start, Ticks end);
  // Notes that a thread ran code of that module meanwhile.
  void ran(const Owner& owner, Ticks start, Ticks end);

  // Returns what was seen so far, without what ends later. `op_of` gives the index into Pass::ops; -1: the op is not in
  // it.
  PassCollectives collect(const std::function<std::int64_t(Place)>& op_of,
                          const std::function<std::int64_t(Ticks)>& to_ns) const;

 private:
  struct Call {
    std::int64_t group = -1;
    std::int64_t sequence = -1;
    Ticks begin = 0;
    Ticks end = 0;
    bool tells_end = true;
    bool failed = false;
    bool counted = false;
    Place place{nullptr, 0};
  };
  struct Ran {
    Owner owner;
    Ticks start = 0;
    Ticks end = 0;
  };
  struct Seen {
    std::vector<ProcessGroup> groups;
    std::map<std::pair<Place, std::int64_t>, std::int64_t> calls;  // by place and group
    std::vector<Call> timed;
    std::int64_t left_out = 0;
    std::vector<Ran> ran;
    bool all_ran = true;
    std::vector<std::pair<Ticks, Ticks>> computed;
    Ticks computed_until = std::numeric_limits<Ticks>::max();
  };

  Seen seen() const;
  void end_locked(Id id, Ticks ended, bool failed);

  std::atomic<int> under_way_{0};
  std::atomic<int> polled_count_{0};
  std::atomic<Ticks> last_end_{0};
  mutable std::mutex mutex_;  // guards what follows; ops take it only where they overlap a collective
  Seen seen_;
  std::vector<std::pair<Id, c10::weak_intrusive_ptr<c10d::Work>>> polled_;
  std::vector<std::int64_t> numbers_;  // given so far, by group
};

// ---- c10d's operators, as the dispatcher shows them, say which group a collective is of and when it ends

// A collective that an op begins. c10d's own operator may be nested in a functional one, which is the one that counts.
struct RunningCollective {
  std::int64_t group = -1;  // -1: c10d's operator was not seen yet
  CollectiveLog::Id call = CollectiveLog::kNone;
  const void* record = nullptr;  // of c10d's operator
};

// Begins a collective where `fn` is c10d's op, which takes a group; else does nothing.
void begin_collective(CollectiveLog& log, const at::RecordFunction& fn, RunningCollective& running, Ticks now);
// Follows the collective's Work, which reports its end, when the op has returned.
void follow_collective(const std::shared_ptr<CollectiveLog>& log, const at::RecordFunction& fn,
                       const RunningCollective& running);

}  // namespace roofprof::observe
