#pragma once
// Owns the tables and rings of a session's threads and lends them: ThreadState borrows as a thread opens its first
// frame, and gives back as it closes its last. The session collects the tables at the end of a pass.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/profile.h"
#include "observe/lent.h"

namespace roofprof::observe {

class Lender {
 public:
  // Empties the tables. From now on each thread is lent `of_pass`, with its own table and ring.
  void start_pass(Lent of_pass);
  // Stops lending the marker of launches.
  void forget_marker();
  // Returns what all threads of the pass are lent.
  Lent of_pass() const;

  // Lends what a thread needs while it has frames open: the number of tables follows the threads at work at the same
  // time, not all that ever were. The ring outlives the thread, because autograd may run its nodes later; the oldest go
  // when threads come and go.
  Lent lend();
  void take_back(const Lent& lent);
  // Returns the number of tables that threads have now, beyond those that they had when the pass began: such threads
  // were inside of an earlier one.
  std::int64_t lent_in_pass() const;
  // Returns all tables, which live as long as this. Each has a lock.
  std::vector<BucketTable*> tables() const;

  // Returns the module that ran when that autograd node was made.
  std::optional<ModuleId> module_of_node(std::uint64_t forward_thread, std::uint64_t sequence_number) const;

 private:
  std::int64_t lent_now() const { return std::ssize(tables_) - std::ssize(free_tables_); }
  std::shared_ptr<SequenceRing> ring_of_this_thread();

  mutable std::mutex mutex_;  // guards what follows; never taken per op
  Lent of_pass_;
  std::vector<std::unique_ptr<BucketTable>> tables_;
  std::vector<BucketTable*> free_tables_;
  std::int64_t lent_before_ = 0;  // when the pass began
  // Keyed by at::RecordFunction::currentThreadId(), which rises and is never given twice: the first entry is the
  // oldest.
  std::map<std::uint64_t, std::shared_ptr<SequenceRing>> rings_;
};

}  // namespace roofprof::observe
