#pragma once
// Reads from c10d's operators, as the dispatcher shows them, which group a collective is of and when it ends.

#include <ATen/record_function.h>

#include <cstdint>
#include <memory>

#include "observe/collectives/collective_log.h"

namespace roofprof::observe {

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
