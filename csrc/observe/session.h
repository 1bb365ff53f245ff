#pragma once
// One profiler's observation: starts and stops passes, and owns what its threads observed.
//
// Runs and blocks start and stop it (csrc/run). Others use its parts: the front ends' hooks open `frames` and mark
// `steps`, threads borrow from `lender` and note in `seen`, and a report is made of the rest.

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "core/forks.h"
#include "core/pass.h"
#include "core/region_table.h"
#include "observe/block_steps.h"
#include "observe/frames_here.h"
#include "observe/graph_calls.h"
#include "observe/launches.h"
#include "observe/lender.h"
#include "observe/memory/memory_ledger.h"
#include "observe/modules/calls.h"
#include "observe/modules/module_index.h"
#include "observe/modules/parameters.h"
#include "observe/operators/parameter_reads.h"
#include "observe/script_frames.h"
#include "observe/seen_on_threads.h"

namespace roofprof::observe {

class ScriptPlaces;

// The setup that the front ends make before the first pass; memory, reuse and events may be changed between passes.
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
  explicit Session(std::size_t modules = kOptimizer + 1) : regions(static_cast<ModuleId>(modules)) {}

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
  // Returns the number of passes started so far.
  std::uint64_t pass() const { return pass_.load(std::memory_order_relaxed); }
  // Returns when the pass began.
  Ticks started() const { return started_; }
  // Returns whether this process was forked since the pass began. Then the pass is the parent's, which alone sees it
  // end, and nothing is observed here.
  bool is_of_parent() const { return process_ != forks_so_far(); }
  // Returns whether ops may be muted: other observers would lose the ops that muting hides.
  bool may_mute() const { return may_mute_; }

  SessionSetup setup;
  FramesHere frames{*this};
  Lender lender;
  BlockSteps steps{lender};
  SeenOnThreads seen;
  Regions regions;
  LastShapes shapes;  // where calls report them (module_calls.h)
  LaunchRegistry launches;
  CallsOfOthers others;
  KeptGraphCalls graph_calls;

 private:
  friend struct ActivePasses;
  struct OpsOfTable;
  void lend_for_pass(LaunchMarker* marker);
  Pass collect(const Lent& of_pass, double ns_per_tick);
  PassEvents take_events(const std::vector<OpsOfTable>& tables, double ns_per_tick);

  std::unique_ptr<ScriptForks> forks_;  // while a pass is active
  std::atomic<bool> active_{false};
  std::atomic<bool> may_mute_{true};
  EventIds event_ids_;
  Ticks started_ = 0;
  std::int64_t started_steady_ns_ = 0;  // the same by std::chrono::steady_clock
  std::atomic<std::uint64_t> pass_{0};
  std::uint32_t process_ = forks_so_far();  // that the pass began in
};

}  // namespace roofprof::observe
