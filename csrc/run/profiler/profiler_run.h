#pragma once
// One run or block of a C++ profiler: what is called, and the report of it.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/run_record.h"
#include "machine/known/given.h"
#include "observe/modules/module_index.h"
#include "roofprof/profiler.h"
#include "run/observed_run.h"
#include "run/profiler/model.h"

namespace roofprof::detail {

// Holds a run's record until it becomes a report.
struct Observation {
  RunRecord observed;  // the facts that `run` does not hold
  std::optional<run::ObservedRun> run;
};

// A profiler between its runs.
struct ProfilerState {
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
  void begin(const std::string& scope, const Reach& inputs, std::optional<ModuleId> base = {});
  // Hands the observation to the profiler, if the run has one.
  void end();
  run::ObservedRun& run() { return *observation_->run; }
  Counted counted() {
    return {run().session(), tree_.objects[kModel], observation_->observed.modules, observation_->observed.notes};
  }

  std::shared_ptr<ProfilerState> profiler_;
  observe::ModelTree tree_;  // as it was when the run began: the ids are its
  std::unique_ptr<Observation> observation_;
};

}  // namespace roofprof::detail
