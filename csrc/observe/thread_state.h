#pragma once
// Holds the observer's state of one thread. ThreadState itself is the stack of open frames and what follows from it:
// the module, phase and region of what runs now. Everything else that a thread has is a part of it, with a header of
// its own. All of it is touched by its own thread only, except the bucket table, which has a lock.

#include <ATen/SavedTensorHooks.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "observe/autograd_ranges.h"
#include "observe/frame.h"
#include "observe/graph_calls.h"
#include "observe/in_flight.h"
#include "observe/launches.h"
#include "observe/lent.h"
#include "observe/modules/calls.h"
#include "observe/op_traffic.h"
#include "observe/regions.h"
#include "observe/running_op.h"
#include "observe/script/script_places.h"
#include "observe/unobserved_work.h"

namespace roofprof::observe {

class Session;

struct ThreadState {
  std::shared_ptr<Session> session;  // of the open frames; null where there are none
  std::uint64_t pass = 0;            // of that session, to tell frames that outlived theirs
  Lent lent;                         // by that session
  std::vector<Frame> frames;
  RegionId region = kNoRegion;      // the innermost open one's path; what torch starts begins in its starter's
  RegionHandover region_handover;   // to the threads that torch starts here
  Ticks last_switch = 0;            // when the innermost frame last changed
  std::uint64_t next_sequence = 0;  // first autograd sequence number that no module has been given yet
  LastCall last_call;               // of a module that was called with no frame around
  std::unique_ptr<NormCall> norm;   // the last one that began, where its shapes are kept
  std::vector<RunningOp> ops;
  OpTraffic traffic;
  LaunchMarks marks;
  BackwardState backward;
  BypassState bypass;
  ScriptState script;
  OpenGraph graph;
  // This thread's own, found once.
  InFlight exceptions;
  const at::impl::SavedTensorDefaultHooksTLS* saved_tensor_hooks = &at::SavedTensorDefaultHooks::get_tls_state();

  // Opens a frame. The first one on a thread joins it to the session; on a thread that has frames of another session
  // open, or where the session's pass has ended, nothing happens and false is returned. What an earlier pass left open
  // here is abandoned first, so `in` may be this thread's own session.
  bool open(Session& in, ModuleId module, Phase phase, FrameKind kind, const void* token);
  // Opens a region on an observed thread, as a frame of `row`, or of the module that runs where it has no row. `id` is
  // its path; where that is open already, only the row is opened.
  void open_region(std::optional<ModuleId> row, RegionId id, const void* token);
  // Makes the innermost frame, a module's call that has just begun, a region of that path from its beginning.
  void name_call(RegionId id);
  // Closes the innermost frame of that token, and whatever was left open above it. Returns its module, or nothing where
  // none has that token.
  std::optional<ModuleId> close(const void* token);
  // Forgets the ops that run, and closes all frames.
  void close_all();
  // Returns the last call on this thread in that session's pass that had no frame around it.
  LastCall last_call_of(const Session& in) const;
  // Moves the innermost frame to another module from now on.
  void move_scope(ModuleId module);
  // Forgets everything, and charges no module: the pass that it belongs to is over.
  void abandon();
  // Forgets everything in a child of a fork. Touches nothing of the session, and returns it.
  std::shared_ptr<Session> leave_to_parent();

  // Assigns the sequence numbers made since the last call to the module that runs now, or to `module`.
  void claim_sequence_numbers(std::optional<ModuleId> module = std::nullopt);
  bool is_paused() const { return !frames.empty() && frames.back().kind == FrameKind::pause; }
  // Returns whether autograd's engine is at work, but none of its nodes: it sums and reduces gradients itself.
  bool between_nodes() const;
  // Returns the module, phase and region of an op that starts now.
  Owner now() const;
  // Returns where memory of that owner is allocated. `owned`: its module owns the op, whatever frames are open.
  MemoryOrigin origin_of_memory(const Owner& owner, bool owned) const;
  // Returns the phase of a module that is called now.
  Phase phase_of_call() const;
  // Returns whether an active profile observes this thread, in the pass that the frames belong to.
  bool is_observed() const;
  // Returns whether what runs here is part of an op that counts as a whole.
  bool in_owned_work() const { return !ops.empty() && owns_nested(ops.back().nested_work); }

  // Adds calls of a bucket; `work` is what this one adds where the bucket sums call by call. `left_out`: its traffic is
  // not logged, though that of others is.
  void count(BucketTable::Index index, Ticks ticks, const Work& work, std::int64_t calls = 1, bool left_out = false);
  // Returns whether a call or step that begins now begins a part of the block: the first one in a region does, and from
  // then on none in the same region.
  bool begins_part();

 private:
  void forget_ops();
  void forget_open();
  void charge(Ticks now);  // with the table locked
  void pop();
  void begin_region(Frame& frame, RegionId id);
  void begin_boundary(Frame& frame);
  // Returns whether the innermost frame, which is a call, is inside of no other.
  bool is_outermost_call() const;
  void keep_frame(const Frame& frame);
  void end_region(const Frame& frame);
  Owner owner_of(const Frame& frame) const { return {frame.module, frame.phase, region}; }
  Phase phase_now() const;
};

ThreadState& thread_state();

// Returns true in code that runs here after the thread's own variables, torch's among them, have ended: destructors of
// statics.
bool thread_has_ended() noexcept;

}  // namespace roofprof::observe
