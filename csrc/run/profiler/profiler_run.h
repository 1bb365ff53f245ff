#pragma once
// Holds one run or block of a C++ profiler: its calls, and its report.

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/run_record.h"
#include "machine/known/file.h"
#include "observe/script/script_tree.h"
#include "roofprof/profiler.h"
#include "run/observed_run.h"
#include "run/profiler/model.h"
#include "run/state_snapshot.h"

namespace roofprof::detail {

// Puts back what further calls of a C++ model change; run/state_snapshot.h lists what that is.

// Each tensor once, with those that script values hold, and gradients.
std::vector<at::Tensor> tensors_of(const Reach& reach);

// Returns the device on which the work may run: one that is neither the CPU nor meta if there is one, else "cpu".
std::string device_of(const std::vector<at::Tensor>& tensors);

// Lets a call be made again and again, and leaves all within reach as its first call left it. It must be made before
// the first call.
class ModelSnapshot {
 public:
  ModelSnapshot(const Model& model, Reach inputs);

  // Returns why no further calls can be made, after the first call; empty: they can.
  std::string why_only_once() const { return tensors_.why_only_once(); }
  // Gives a further call the containers and random numbers that the first one got.
  void before_call() const;
  // Must begin after the first call. What is called in `further` is undone at its end, also when it throws. Returns how
  // many tensors could not be put back.
  std::int64_t undoing(const std::function<void()>& further);

 private:
  const Model& model_;
  Reach inputs_;
  observe::ScriptValues input_values_;
  run::AmbientState ambient_;
  run::TensorSnapshot tensors_;
};

// Holds a run's record until it becomes a report.
struct Observation {
  RunRecord observed;  // the facts that `run` does not hold
  std::optional<run::ObservedRun> run;
};

// A profiler between its runs.
struct ProfilerState {
  std::shared_ptr<const void> handle;  // keeps the module, where it has owners: a block may outlive the profiler
  std::unique_ptr<Model> model;
  ProfilerOptions options;
  std::optional<MeasuredCeilings> given_roofs;  // empty: this machine's
  std::atomic<bool> in_use = false;
  std::mutex mutex;                       // guards what follows
  std::unique_ptr<Observation> observed;  // of the last run, while it has no report
  std::optional<Report> report;

  // Returns the report, which is made when it is first requested: roofs of the machine that are not known yet are
  // measured then, never inside a run.
  Report last_report();
};

class ProfilerRun {
 public:
  // Throws std::logic_error where the profiler is in use, or another one on this thread; nothing is touched then.
  explicit ProfilerRun(std::shared_ptr<ProfilerState> profiler);
  ~ProfilerRun() { profiler_->in_use = false; }
  ProfilerRun(const ProfilerRun&) = delete;
  ProfilerRun& operator=(const ProfilerRun&) = delete;

  // Makes one call that counts; as requested, further ones warm up and are timed. `inputs` is what the arguments hold;
  // `first` makes the counting call.
  void calls(Call& call, Reach inputs, RunMode wish, const std::function<void(const Counted&)>& first);
  // Runs a block once: counted, and timed as requested.
  void block(const std::function<void()>& body, RunMode wish = RunMode::times);
  void open_block(RunMode wish = RunMode::times);
  void close_block(bool raised);
  // Notes that a step of the block has ended.
  void step() { run().step(); }

  // Returns the report of the last run or block that ended.
  Report report() { return profiler_->last_report(); }

 private:
  // `base` has the ops outside of all modules; without it they are not counted.
  void begin(Mode mode, const Reach& inputs, std::optional<ModuleId> base = {});
  // Hands the observation to the profiler, if the run has one.
  void end();
  run::ObservedRun& run() { return *observation_->run; }
  Counted counted() {
    return {run().session(), object_, observation_->observed.tree.modules, observation_->observed.notes};
  }

  std::shared_ptr<ProfilerState> profiler_;
  const void* object_ = nullptr;  // the model
  std::unique_ptr<Observation> observation_;
};

}  // namespace roofprof::detail
