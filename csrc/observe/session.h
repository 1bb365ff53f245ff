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
#include "observe/memory/allocations.h"
#include "observe/modules/call_shapes.h"
#include "observe/modules/calls_of_others.h"
#include "observe/modules/module_index.h"
#include "observe/modules/parameter_owners.h"
#include "observe/modules/scope_kind.h"
#include "observe/numpy_exchange.h"
#include "observe/operators/parameter_reads.h"
#include "observe/regions.h"
#include "observe/reuse/reuse_log.h"
#include "observe/script_frames.h"
#include "observe/sequence_ring.h"

namespace roofprof::observe {

class ScriptPlaces;

class Session : public std::enable_shared_from_this<Session> {
 public:
  // `modules`: how many the model's tree has; regions get the ids after them.
  explicit Session(std::size_t modules = kOptimizer + 1) : regions_(static_cast<ModuleId>(modules)) {}

  // The model's modules by their addresses, so that their calls are found (module_calls.h). To be given before the
  // first pass.
  void know(ModuleIndex modules, ParameterOwners owners);
  const ModuleIndex* module_index() const { return module_index_ ? &*module_index_ : nullptr; }
  // Null where no op has to be attributed by its parameters.
  const ParameterOwners* parameter_owners() const { return parameter_owners_ ? &*parameter_owners_ : nullptr; }

  // The object whose calls are those of the model; null where there is none. Before the first pass.
  void set_model(const void* model) { model_ = model; }
  const void* model() const { return model_; }
  // From the next pass on, calls of the model that the run does not make are left out (own_calls.h).
  void leave_out_others() { leaves_out_others_ = true; }
  bool leaves_out_others() const { return leaves_out_others_; }
  CallsOfOthers& others() { return others_; }
  const CallsOfOthers& others() const { return others_; }
  // In C++: calls of the model tell of themselves (ROOFPROF_SCOPE, an intercepted class).
  void note_model_tells() { model_tells_.store(true, std::memory_order_relaxed); }
  bool model_tells() const { return model_tells_.load(std::memory_order_relaxed); }

  // Throws std::logic_error where this thread is already inside a profiler's block or run.
  static void refuse_nesting();
  // Refuses nesting, and a pass while another one of this session is active.
  // With a base module, ops outside every module on this thread are given to it (blocks: kOutside); without, they are
  // not counted.
  // A marker is told around ops and frames what is launched there. It outlives the threads of the pass: one that is
  // still at work when the pass ends pops its marks when it comes to.
  void start(std::optional<ModuleId> base, LaunchMarker* marker = nullptr);
  // Ends the pass: no callback is left when the last session stops. Called on any thread but best on start's.
  Pass stop();
  bool active() const { return active_.load(std::memory_order_acquire); }
  // This process was forked since the pass began: it is the parent's, which alone sees it end. Nothing is observed
  // here.
  bool is_of_parent() const { return process_ != forks_so_far(); }

  // Frames on the calling thread; ignored while no pass is active. `token` identifies the frame to leave().
  bool enter(ModuleId module, const void* token, FrameKind kind = FrameKind::module);
  // The module whose frame was left; empty where none of that token was open.
  std::optional<ModuleId> leave(const void* token);
  // Where this pass has not seen a call of that module on this thread, what ran under its name is one.
  void count_if_uncalled(ModuleId module);
  // An op computed, on tensors that hold data or without (meta, fake).
  void note_computed(bool without_data) {
    auto& seen = without_data ? computed_without_data_ : computed_with_data_;
    if (!seen.load(std::memory_order_relaxed)) seen.store(true, std::memory_order_relaxed);
  }
  bool computed_with_data() const { return computed_with_data_.load(std::memory_order_relaxed); }
  bool computed_without_data() const { return computed_without_data_.load(std::memory_order_relaxed); }
  // What was seen inside the frame of that token, where it is the innermost here and what runs in it is counted at all.
  Evidence evidence_inside(const void* token) const;
  // The module of that type whose frame is the innermost here did work that bypassed the dispatcher.
  void note_unobserved_module(std::string_view type, Unobserved kind = Unobserved::module);
  // What came in from outside inside that frame, after a tensor had been read out there; of the innermost frame alone.
  std::vector<MemoryRange> imported(const void* token) const;
  // It was nobody's work.
  void forget_imported(const void* token);
  // Until resume(), what this thread does is no work of the model's; its time goes to (outside).
  void pause();
  void resume();
  // The optimizer's step runs on this thread.
  bool enter_optimizer(const void* token);
  // The closure that a step was given: what it does is work as outside of the step.
  bool enter_closure(const void* token);

  // The module that ran when that autograd node was made.
  std::optional<ModuleId> module_of_node(std::uint64_t forward_thread, std::uint64_t sequence_number);
  Regions& regions() { return regions_; }
  const Regions& regions() const { return regions_; }
  // From the next pass on, what modules allocate is noted, or no more.
  void measure_memory(bool wanted) { memory_wanted_ = wanted; }
  // Null where nobody wants to know, in this pass.
  std::shared_ptr<Allocations> memory();
  // From the next pass on, from how far it comes what ops move is noted, or no more.
  void track_reuse(bool wanted) { reuse_wanted_ = wanted; }
  // Null where nobody wants to know, in this pass.
  std::shared_ptr<ReuseLog> reuse() {
    const std::lock_guard lock(mutex_);
    return reuse_;
  }
  // Of the pass that runs, or ran last.
  std::shared_ptr<CollectiveLog> collectives();
  // Of calls that tell them (module_calls.h).
  LastShapes& shapes() { return shapes_; }
  const LastShapes& shapes() const { return shapes_; }
  // What the innermost frame returns, if it is of that token, is in these blocks (allocations.h).
  void note_outputs(const void* token, const std::vector<const void*>& blocks);
  // Where TorchScript's modules stand, before the first pass; null where the model has none.
  void set_scripts(std::shared_ptr<const ScriptPlaces> scripts) { scripts_ = std::move(scripts); }
  const ScriptPlaces* scripts() const { return scripts_.get(); }
  // Whose parameters are read is to be told from the next pass on.
  void tell_reads(std::shared_ptr<ParameterReads> reads) { parameter_reads_ = std::move(reads); }
  ParameterReads* parameter_reads() const { return parameter_reads_.get(); }
  LaunchRegistry& launches() { return launches_; }
  const LaunchRegistry& launches() const { return launches_; }
  // Null while no device is traced.
  LaunchMarker* marker() const { return marker_.load(std::memory_order_relaxed); }
  // Other observers would lose the ops that muting hides.
  bool may_mute() const { return may_mute_; }

  // From the next pass on, what single ops and frames took is kept: Pass::events.
  void keep_events() { keeps_events_ = true; }
  // Null where it is not.
  EventIds* event_ids() { return keeps_events_ ? &event_ids_ : nullptr; }
  // When the pass began.
  Ticks started() const { return started_; }

  // A step of this pass's block has ended.
  void mark_step() { steps_marked_.fetch_add(1, std::memory_order_relaxed); }
  std::int64_t steps_marked() const { return steps_marked_.load(std::memory_order_relaxed); }

  // Counts the passes started so far.
  std::uint64_t pass() const { return pass_.load(std::memory_order_relaxed); }

  // Tables are lent for as long as a thread has frames open: their number follows the threads at work at the same time,
  // not all that ever were.
  BucketTable* lend_table();
  void return_table(BucketTable* table);
  // Outlives the thread, because autograd may run its nodes later. The oldest go when threads come and go.
  std::shared_ptr<SequenceRing> ring_of_this_thread();

  // An op ran on a thread that no session has a frame open on.
  static void note_op_elsewhere();
  // So did one on a thread that works for this session's run.
  void note_own_op_elsewhere() { own_op_elsewhere_.store(true, std::memory_order_relaxed); }

  // Sessions with an active pass, for autograd threads that must find their own.
  static std::vector<std::shared_ptr<Session>> active_sessions();

 private:
  friend struct ActivePasses;
  Pass collect(double ns_per_tick);
  PassEvents take_events(const std::vector<std::vector<std::int64_t>>& ops, double ns_per_tick);
  bool observes_this_thread() const;

  const void* model_ = nullptr;
  bool leaves_out_others_ = false;
  std::atomic<bool> model_tells_{false};
  CallsOfOthers others_;
  std::atomic<bool> own_op_elsewhere_{false};
  std::atomic<bool> computed_with_data_{false};
  std::atomic<bool> computed_without_data_{false};
  Regions regions_;
  LastShapes shapes_;
  LaunchRegistry launches_;
  std::atomic<LaunchMarker*> marker_{nullptr};
  bool memory_wanted_ = false;
  bool reuse_wanted_ = false;
  std::optional<ModuleIndex> module_index_;
  std::optional<ParameterOwners> parameter_owners_;
  std::shared_ptr<const ScriptPlaces> scripts_;
  std::shared_ptr<ParameterReads> parameter_reads_;
  std::unique_ptr<ScriptForks> forks_;  // while a pass is active
  std::atomic<bool> active_{false};
  std::atomic<bool> may_mute_{true};
  bool keeps_events_ = false;
  EventIds event_ids_;
  Ticks started_ = 0;
  std::int64_t started_steady_ns_ = 0;  // the same by std::chrono::steady_clock
  std::atomic<std::uint64_t> pass_{0};
  std::atomic<std::int64_t> steps_marked_{0};
  std::uint32_t process_ = forks_so_far();  // that the pass began in
  std::uint64_t start_ = 0;                 // which of all sessions' starts its pass began with
  std::mutex mutex_;                        // guards what follows; never taken per op
  std::shared_ptr<Allocations> memory_;
  std::shared_ptr<ReuseLog> reuse_;
  std::shared_ptr<CollectiveLog> collectives_ = std::make_shared<CollectiveLog>();
  std::vector<std::unique_ptr<BucketTable>> tables_;
  std::vector<BucketTable*> free_tables_;
  // By at::RecordFunction::currentThreadId(), which rises and is never given twice: the first is the oldest.
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
