#pragma once
// One run of a C++ profiler: what is called, and the report of it.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "observe/modules/model_tree.h"
#include "profiler/model.h"
#include "roofprof/profiler.h"
#include "run/observed_run.h"
#include "values/observed.h"

namespace roofprof::detail {

// A profiler between its runs.
struct ProfilerState {
  std::unique_ptr<Model> model;
  ProfilerOptions options;
  std::atomic<bool> in_use = false;
  std::mutex mutex;  // guards the report
  std::optional<Report> report;
};

class ProfilerRun {
 public:
  // Throws std::logic_error where the profiler is in use, or another one on this thread; nothing is touched then.
  explicit ProfilerRun(std::shared_ptr<ProfilerState> profiler);
  ~ProfilerRun() { profiler_->in_use = false; }
  ProfilerRun(const ProfilerRun&) = delete;
  ProfilerRun& operator=(const ProfilerRun&) = delete;

  // One call counts, further ones warm up and are timed. `inputs` is what the arguments hold; `first` makes the
  // counting call.
  Report repeated(Call& call, Reach inputs, const std::function<void(const Counted&)>& first);
  // One call, counted and timed.
  Report once(const std::function<void()>& closure);

 private:
  void begin(const std::string& scope, const Reach& inputs);
  // Does it; when it throws, the report of what ran before is kept.
  void reported(const std::function<void()>& calls);
  Counted counted() { return {run_->session(), observed_.modules, observed_.notes}; }
  Report make_report();

  std::shared_ptr<ProfilerState> profiler_;
  observe::ModelTree tree_;  // as it was when the run began: the ids are its
  Observed observed_;        // what is known beside the run
  std::optional<run::ObservedRun> run_;
};

}  // namespace roofprof::detail
