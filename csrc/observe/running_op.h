#pragma once
// One op that runs on a thread, from its start to its end: what the dispatcher reports (op_observer.h), or declared
// work (declared_work.h). These two push and pop the stack of them.

#include <cstddef>
#include <memory>

#include "observe/collectives/collective_log.h"
#include "observe/launches.h"
#include "observe/lent.h"
#include "observe/operators/op_signature.h"

namespace roofprof::observe {

struct RunningOp {
  // Not `= default`: to be made in place it would be filled with zeros first.
  RunningOp() {}  // NOLINT(modernize-use-equals-default)

  const void* record = nullptr;  // what ends it: a RecordFunction, the token of declared work
  OpInfo* op = nullptr;
  BucketKey key;  // its signature is that of the inputs until the op ends
  NestedWork nested_work = NestedWork::transparent;
  bool muted = false;        // what it dispatches inside is not even reported
  bool only_shapes = false;  // no work at all: it asks for shapes
  bool owned = false;        // it belongs to the module whose parameters it takes, not to the one that runs
  DispatchPath dispatch_path;
  WorkInside inside;
  int nested = 0;           // records seen inside, while they are its own work
  unsigned exceptions = 0;  // in flight when it started
  Ticks start = 0;
  Ticks inner_ticks = 0;                             // of the ops that were counted inside
  std::unique_ptr<ops::OpCall> inputs;               // only where these inputs are seen for the first time
  bool described = true;                             // false: a tensor of it could not be read
  bool tells_results = false;                        // the inputs' signature is that of the call
  BucketTable::Index bucket = BucketTable::kNone;    // where it is known as the op starts
  bool logged = false;                               // its traffic is
  bool watched = false;                              // it reads storages that are watched (StorageWatch)
  BucketTable::Index declared = BucketTable::kNone;  // of declared work: its bucket
  LaunchMarks::Mark mark = 0;                        // while a device is traced
  std::uint32_t event = 0;                           // its id, where events are kept
  std::size_t operands_before = 0;                   // of the ops around it, in ThreadState::traffic
  RunningCollective collective;
};

// Keeps the event of an op that counts, from its start to `end`.
inline void keep_op(const Lent& lent, const RunningOp& running, BucketTable::Index bucket, Ticks end) {
  if (lent.event_ids != nullptr) {
    lent.keep({.id = running.event, .bucket = bucket, .begin = running.start, .end = end});
  }
}
// Keeps the event of an op that does not count, but was marked for launches.
inline void keep_transparent(const Lent& lent, const RunningOp& running, Ticks end) {
  if (lent.event_ids == nullptr || running.mark == 0) return;
  lent.keep({.id = running.event,
             .kind = EventKind::transparent,
             .owner = running.key.owner,
             .op = running.op,
             .begin = running.start,
             .end = end});
}

}  // namespace roofprof::observe
