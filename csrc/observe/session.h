#pragma once
// One profiler's observation: starts and stops passes, owns what its threads observed, hands it out merged.

#include <ATen/record_function.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/forks.h"
#include "core/pass.h"
#include "observe/bucket_table.h"
#include "observe/collectives/collective_log.h"
#include "observe/events.h"
#include "observe/launches.h"
#include "observe/lent.h"
#include "observe/memory/allocations.h"
#include "observe/memory/boundary_log.h"
#include "observe/memory/stable_places.h"
#include "observe/memory/traffic_sample.h"
#include "observe/modules/calls.h"
#include "observe/modules/module_index.h"
#include "observe/modules/parameters.h"
#include "observe/numpy_exchange.h"
#include "observe/operators/parameter_reads.h"
#include "observe/regions.h"
#include "observe/reuse/reuse_log.h"
#include "observe/script_frames.h"
#include "observe/sequence_ring.h"

namespace roofprof::observe {

class ScriptPlaces;

// What the front ends set up before the first pass; memory, reuse and events may be changed between passes.
struct SessionSetup {
  const void* model = nullptr;               // the object whose calls are those of the model; null where no object is
  bool leaves_out_others = false;            // calls of the model that the run does not make (own_calls.h)
  bool measures_memory = false;              // what modules allocate
  std::vector<OwnedStorage> owned_storages;  // the model's parameters, buffers and gradients, for that
  // The reuse distance of what ops move, and, where the tree of modules is known, what crosses their boundaries.
  bool tracks_reuse = false;
  bool samples_traffic = false;        // of a long block, these are logged of some calls
  std::vector<ModuleId> parents;       // of each module of the tree; empty: not known
  bool keeps_events = false;           // the begin and end of single ops and frames: Pass::events
  std::optional<ModuleIndex> modules;  // by their addresses, so that their calls are found (module_calls.h)
  std::optional<ParameterOwners> parameter_owners;  // empty: no op has to be attributed by its parameters
  std::shared_ptr<const ScriptPlaces> scripts;      // of TorchScript's modules; null where the model has none
  std::shared_ptr<ParameterReads> parameter_reads;  // gets the modules whose parameters ops read; null: nobody asks
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // `modules`: how many the model's tree has; regions get the ids after them.
  explicit Session(std::size_t modules = kOptimizer + 1) : regions_(static_cast<ModuleId>(modules)) {}

  SessionSetup setup;

  CallsOfOthers& others() { return others_; }
  const CallsOfOthers& others() const { return others_; }
  // Notes that calls of the model announce themselves (in C++: by ROOFPROF_SCOPE or as calls of an intercepted class).
  void note_model_tells() { model_tells_.store(true, std::memory_order_relaxed); }
  bool model_tells() const { return model_tells_.load(std::memory_order_relaxed); }

  // ---- passes

  // Throws std::logic_error where this thread is already inside a profiler's block or run.
  static void refuse_nesting();
  // Starts a pass. Refuses nesting, and a pass while another one of this session is active. With a base module, ops
  // outside every module on this thread belong to it (blocks: kOutside); without one, they are not counted. A marker
  // learns the owner of the launches in each op and frame. It outlives the threads of the pass: a thread that is still
  // at work when the pass ends pops its marks when it returns to the observer.
  void start(std::optional<ModuleId> base, LaunchMarker* marker = nullptr);
  // Ends the pass: no callback is left when the last session stops. Called on any thread but best on start's.
  Pass stop();
  bool active() const { return active_.load(std::memory_order_acquire); }
  // Returns whether this process was forked since the pass began. Then the pass is the parent's, which alone sees it
  // end, and nothing is observed here.
  bool is_of_parent() const { return process_ != forks_so_far(); }

  // ---- the frames of the calling thread

  // Opens a frame on the calling thread; ignored while no pass is active. `token` identifies the frame to leave().
  bool enter(ModuleId module, const void* token, FrameKind kind = FrameKind::module);
  // Closes the frame and returns its module; empty where none with that token was open.
  std::optional<ModuleId> leave(const void* token);
  // Counts a call of that module if this pass has seen none on this thread: what ran under its name was one.
  void count_if_uncalled(ModuleId module);
  // Notes that an op computed, on tensors that hold data or without (meta, fake).
  void note_computed(bool without_data) {
    auto& seen = without_data ? computed_without_data_ : computed_with_data_;
    if (!seen.load(std::memory_order_relaxed)) seen.store(true, std::memory_order_relaxed);
  }
  bool computed_with_data() const { return computed_with_data_.load(std::memory_order_relaxed); }
  bool computed_without_data() const { return computed_without_data_.load(std::memory_order_relaxed); }
  // Returns the evidence seen inside the frame of that token. kWorkSeen where that frame is not the innermost one here,
  // or an op owns what runs in it.
  Evidence evidence_inside(const void* token) const;
  // Notes that the module of that type whose frame is the innermost here did work that bypassed the dispatcher.
  void note_unobserved_module(std::string_view type, Unobserved kind = Unobserved::module);
  // Returns the memory that came in from outside during that frame, after a tensor had been read out there. Empty where
  // that frame is not the innermost one.
  std::vector<MemoryRange> imported(const void* token) const;
  // Forgets that memory: it was not the result of unobserved work.
  void forget_imported(const void* token);
  // Stops observing this thread until resume(): what it does is not the model's work, and its time goes to (outside).
  void pause();
  void resume();
  // Opens the frame of an optimizer's step on this thread.
  bool enter_optimizer(const void* token);
  // Opens the frame of the closure that a step was given: its work counts as outside of the step.
  bool enter_closure(const void* token);

  // ---- what threads note and ask

  // Returns the module that ran when that autograd node was made.
  std::optional<ModuleId> module_of_node(std::uint64_t forward_thread, std::uint64_t sequence_number);
  Regions& regions() { return regions_; }
  const Regions& regions() const { return regions_; }
  // Returns the allocations of this pass; null where it does not measure them.
  std::shared_ptr<Allocations> memory();
  // Returns the shapes of the last calls, where calls report them (module_calls.h).
  LastShapes& shapes() { return shapes_; }
  const LastShapes& shapes() const { return shapes_; }
  // Notes that what the innermost frame returns is in these blocks, if the frame has that token (allocations.h).
  void note_outputs(const void* token, const std::vector<const void*>& blocks);
  LaunchRegistry& launches() { return launches_; }
  const LaunchRegistry& launches() const { return launches_; }
  // Returns when the pass began.
  Ticks started() const { return started_; }
  // Returns whether ops may be muted: other observers would lose the ops that muting hides.
  bool may_mute() const { return may_mute_; }

  // Notes that a step of this pass's block has ended.
  void mark_step();
  // Say that what this thread does is no step's, until the next one begins: it is in the region kBetweenSteps, and
  // modules have no calls meanwhile.
  void leave_steps();
  void enter_steps();
  bool between_steps() const { return between_steps_.load(std::memory_order_relaxed); }
  std::int64_t steps_marked() const { return steps_marked_.load(std::memory_order_relaxed); }

  // Keeps a call of a graph for the pass (graph_calls.h).
  void keep_graph_call(GraphCall call) {
    const std::lock_guard lock(mutex_);
    graph_calls_.push_back(std::move(call));
  }

  // Returns the number of passes started so far.
  std::uint64_t pass() const { return pass_.load(std::memory_order_relaxed); }

  // Lends what a thread needs while it has frames open: the number of tables follows the threads at work at the same
  // time, not all that ever were. The ring outlives the thread, because autograd may run its nodes later; the oldest go
  // when threads come and go.
  Lent lend();
  void take_back(const Lent& lent);
  // Returns the number of tables that threads have now.
  std::int64_t lent_tables();

  // Notes that an op ran on a thread that no session has a frame open on.
  static void note_op_elsewhere();
  // Notes the same of a thread that works for this session's run.
  void note_own_op_elsewhere() { own_op_elsewhere_.store(true, std::memory_order_relaxed); }

  // Returns the sessions with an active pass, for autograd threads that must find their own.
  static std::vector<std::shared_ptr<Session>> active_sessions();

 private:
  friend struct ActivePasses;
  std::shared_ptr<SequenceRing> ring_of_this_thread();  // with mutex_ held
  std::shared_ptr<CollectiveLog> collectives();
  Pass collect(double ns_per_tick);
  PassEvents take_events(const std::vector<std::vector<std::int64_t>>& ops, double ns_per_tick);
  bool observes_this_thread() const;

  std::atomic<bool> model_tells_{false};
  CallsOfOthers others_;
  std::atomic<bool> own_op_elsewhere_{false};
  std::atomic<bool> computed_with_data_{false};
  std::atomic<bool> computed_without_data_{false};
  Regions regions_;
  LastShapes shapes_;
  LaunchRegistry launches_;
  std::atomic<LaunchMarker*> marker_{nullptr};
  std::unique_ptr<ScriptForks> forks_;  // while a pass is active
  std::atomic<bool> active_{false};
  std::atomic<bool> may_mute_{true};
  EventIds event_ids_;
  Ticks started_ = 0;
  std::int64_t started_steady_ns_ = 0;  // the same by std::chrono::steady_clock
  std::atomic<std::uint64_t> pass_{0};
  std::atomic<std::int64_t> steps_marked_{0};
  std::atomic<bool> between_steps_{false};
  std::atomic<bool> left_steps_{false};     // in this pass
  std::uint32_t process_ = forks_so_far();  // that the pass began in
  std::uint64_t start_ = 0;                 // which of all sessions' starts its pass began with
  std::mutex mutex_;                        // guards what follows; never taken per op
  std::vector<GraphCall> graph_calls_;
  std::shared_ptr<Allocations> memory_;
  std::shared_ptr<ReuseLog> reuse_;
  std::shared_ptr<StablePlaces> places_;  // where reuse is tracked
  std::shared_ptr<BoundaryLog> boundaries_;
  std::shared_ptr<TrafficSample> sample_;
  std::shared_ptr<CollectiveLog> collectives_ = std::make_shared<CollectiveLog>();
  std::vector<std::unique_ptr<BucketTable>> tables_;
  std::vector<BucketTable*> free_tables_;
  std::int64_t lent_before_ = 0;  // when the pass began: threads that were inside of an earlier one
  // Keyed by at::RecordFunction::currentThreadId(), which rises and is never given twice: the first entry is the
  // oldest.
  std::map<std::uint64_t, std::shared_ptr<SequenceRing>> rings_;
};

// The passes of all sessions that are under way in this process. The observer's callback is
// installed while there is at least one.
struct ActivePasses {
  ForkMutex mutex;  // guards what follows
  std::vector<std::shared_ptr<Session>> sessions;
  at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
  // The callback came with a fork. It stays, as to remove it would lock a mutex that may be locked in this process for
  // ever; without a pass it does nothing.
  bool inherited = false;

  static ActivePasses& instance();
  // Installs the callback where it is missing. Returns whether no pass and no observer of others was there before.
  // std::runtime_error where torch's list of callbacks was locked when this process was forked.
  bool install();
  void remove();

 private:
  static void before_fork();
  static void leave_to_parent();
};

}  // namespace roofprof::observe
