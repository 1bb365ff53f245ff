#pragma once
// Finds the calls that a backward pass followed: autograd numbers its nodes as they are made, and runs them by these
// numbers.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include <ATen/record_function.h>

#include "core/forks.h"

namespace roofprof::python {

// Knows the nodes that calls made on their threads, and which of these calls a backward went through since.
class BackwardRuns {
 public:
  static BackwardRuns& instance();

  // Listen to autograd from now on, or no more.
  void watch();
  void ignore();

  // Returns the number of the next node of the calling thread.
  static std::int64_t next_node();
  // Adds a call that made this thread's nodes from `first` on; returns its number, or -1 if it made none.
  std::int64_t add(std::int64_t first);
  bool reached(std::int64_t call) const;
  // Forgets the calls before that one.
  void forget_before(std::int64_t call);
  // Returns how many nodes have run.
  std::int64_t nodes() const;

 private:
  struct Call {
    std::uint64_t thread = 0;
    std::int64_t first = 0;
    std::int64_t end = 0;
    bool reached = false;
  };

  void ran(std::uint64_t thread, std::int64_t node);

  mutable ForkMutex mutex_;  // guards what follows
  std::optional<at::CallbackHandle> callback_;
  std::int64_t nodes_ = 0;
  std::int64_t forgotten_ = 0;  // how many calls
  std::deque<Call> calls_;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::int64_t> by_end_;  // numbers of calls, by thread and end
};

}  // namespace roofprof::python
