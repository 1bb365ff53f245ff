#pragma once
// Holds the observer's state of one thread: the stack of open frames and the stack of running ops.
//
// Scopes say which module runs here (ModuleStack in the design); ops are what the dispatcher reports. Everything in
// this file is touched by its own thread only, except the bucket table, which has a lock.

#include <ATen/SavedTensorHooks.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "observe/bucket_table.h"
#include "observe/collectives/collective_log.h"
#include "observe/graph_calls.h"
#include "observe/in_flight.h"
#include "observe/launches.h"
#include "observe/lent.h"
#include "observe/memory/allocations.h"
#include "observe/memory/boundary_log.h"
#include "observe/memory/traffic_sample.h"
#include "observe/modules/calls.h"
#include "observe/modules/module_index.h"
#include "observe/numpy_exchange.h"
#include "observe/operators/op_signature.h"
#include "observe/regions.h"
#include "observe/reuse/reuse_log.h"
#include "observe/rule/counting_rule.h"
#include "observe/script/script_places.h"
#include "observe/sequence_ring.h"

namespace at {
struct RecordFunction;
}

namespace roofprof::observe {

class Session;

struct Frame {
  ModuleId module = kModel;
  Phase phase = Phase::forward;
  FrameKind kind = FrameKind::module;
  bool grad_mode = false;        // node: grad mode at its start (on where the backward itself is differentiated)
  bool is_certain = true;        // module: it runs at this place, not at another one of the same object
  LastCall last = {};            // of a module, inside
  int graph_task = -1;           // node: the running backward that it is part of
  const void* token = nullptr;   // who opened it: the module object, the RecordFunction of a node
  Evidence evidence_before = 0;  // seen outside, before it was opened
  std::size_t exchanges_before = 0;
  LaunchMarks::Mark mark = 0;          // while a device is traced
  Allocations::Call memory = {};       // of a module's call, where memory is measured
  bool bounded = false;                // it has a boundary: a call, or a region with a row
  bool began_part = false;             // region: a part of the block began in it (memory/traffic_sample.h)
  bool opens_region = false;           // a region, or a call that is one: no region of its path was open
  RegionId region_before = kNoRegion;  // of a region: that around it
  Ticks opened = 0;                    // or moved to its module
  std::uint32_t event = 0;             // its id, where events are kept
};

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
  std::size_t operands_before = 0;                   // of the ops around it, in ThreadState::operands
  RunningCollective collective;
};

// A call of a normalisation whose operator did not end yet.
struct NormCall {
  CallShapes shapes;
  const void* ends_with = nullptr;  // the operator's record, once it has begun
};

// A Python autograd.Function's forward.
struct RunningFunction {
  const at::RecordFunction* record = nullptr;
  Evidence evidence_before = 0;
  std::size_t exchanges_before = 0;
};

// What is known of the backward that runs here (autograd_ranges.h).
struct BackwardState {
  int nodes = 0;  // among the frames: running autograd nodes
  ModuleId last_module = kModel;
  int last_task = -1;                   // the backward that the last node was part of; -1: not of an observed model
  std::weak_ptr<Session> last_session;  // of the last node, for what the engine does between nodes
};

// What shows whether code bypassed the dispatcher.
struct BypassState {
  std::vector<RunningFunction> functions;
  NumpyExchange numpy_exchange;  // since the outermost module was called
  Evidence evidence = 0;         // seen since the innermost frame or function began
};

// TorchScript's code that runs here (script_frames.h).
struct ScriptState {
  std::vector<ScriptFrame> frames;
  KnownScriptPlace place;
  const void* place_frame = nullptr;  // the record of its frame
  int instrumented_copies = 0;        // running here (instrumented_copy.h): they open their frames themselves
};

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
  std::vector<Operand> operands;  // that these ops took, where their traffic is tracked
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
  void close_all();
  // Returns the last call on this thread in that session's pass that had no frame around it.
  LastCall last_call_of(const Session& in) const;
  // Moves the innermost frame to another module from now on.
  void move_scope(ModuleId module);
  // Forgets everything, and charges no module: the pass that it belongs to is over.
  void abandon();
  void abandon_ops();
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

  // Returns where to record what an op of that key reads; null: nowhere. What the optimizer and the user's own code
  // read does not count as a module's read.
  ParameterReads* reads_by(const BucketKey& key) const {
    return key.owner.phase == Phase::forward && key.owner.module != kOutside ? lent.reads : nullptr;
  }

  // Marks the op while a device is traced: launches until it ends belong to it, except those of inner ops with a mark.
  void mark(RunningOp& running) {
    if (!marks.wanted()) return;
    running.mark = marks.push(with_event(launch_of(running.key), running.event), LaunchLevel::op);
  }

  // Returns the id of an op or frame that begins now; 0: it is not kept.
  std::uint32_t next_event() { return lent.event_ids == nullptr ? 0 : lent.event_ids->next(); }
  // Keeps the event of an op that counts, from its start to `end`.
  void keep_op(const RunningOp& running, BucketTable::Index bucket, Ticks end) {
    if (lent.event_ids != nullptr) {
      keep({.id = running.event, .bucket = bucket, .begin = running.start, .end = end});
    }
  }
  // Keeps the event of an op that does not count, but was marked for launches.
  void keep_transparent(const RunningOp& running, Ticks end);

  // Adds calls of a bucket; `work` is what this one adds where the bucket sums call by call. `left_out`: its traffic is
  // not logged, though that of others is.
  void count(BucketTable::Index index, Ticks ticks, const Work& work, std::int64_t calls = 1, bool left_out = false);
  // Returns whether a call or step that begins now begins a part of the block: the first one in a region does, and from
  // then on none in the same region.
  bool begins_part();
  // Returns whether the traffic of an op that starts now is logged.
  bool logs_traffic() const { return lent.reuse != nullptr && (lent.sample == nullptr || lent.sample->logs_op()); }
  // Notes the reuse and the crossings of an op that was counted there, whose inputs are in `operands`; `work` as for
  // count(). Called where the op's traffic is logged.
  void note_traffic(const at::RecordFunction& fn, const RunningOp& running, BucketTable::Index index, const Work& work);
  // Moves the operands from that one on to their stable places. Inputs have to be placed as the op begins:
  // TorchScript's interpreter may have freed them when it ends.
  void place_operands(std::size_t first);
  // Notes that work was counted which is not an op's: the ops around it count as transparent.
  void note_work(const Work& work);
  // Lists unobserved work: what was seen so far inside the innermost frame or function of that kind cannot explain its
  // results.
  void note_unobserved(std::string_view name, Unobserved kind) { note_unobserved(name, kind, now().module, 1); }
  // Lists `calls` calls of that work, which belong to `module`.
  void note_unobserved(std::string_view name, Unobserved kind, ModuleId module, std::int64_t calls);

 private:
  void forget_open();
  // The caller holds the table's lock.
  void charge(Ticks now);  // with the table locked
  void pop();
  void begin_region(Frame& frame, RegionId id);
  void begin_boundary(Frame& frame);
  // Returns whether the innermost frame, which is a call, is inside of no other.
  bool is_outermost_call() const;
  void keep(TimedEvent event);
  void keep_frame(const Frame& frame);
  void end_region(const Frame& frame);
  Owner owner_of(const Frame& frame) const { return {frame.module, frame.phase, region}; }
  LaunchId launch_of(const BucketKey& key);
  Phase phase_now() const;
};

ThreadState& thread_state();

// True in what runs here after the thread's own variables, torch's among them, have ended: destructors of statics.
bool thread_has_ended() noexcept;

}  // namespace roofprof::observe
