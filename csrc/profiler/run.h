#pragma once
// One run of a profiler: what is called, how often, and the report of it.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "observe/session.h"
#include "profiler/device_runs.h"
#include "profiler/model.h"
#include "profiler/rewind.h"
#include "roofprof/profiler.h"

namespace roofprof::detail {

// A profiler between its runs.
struct ProfilerState {
  std::unique_ptr<Model> model;
  ProfilerOptions options;
  std::atomic<bool> in_use = false;
  std::mutex mutex;  // guards the report
  std::optional<Report> report;
};

class Run {
 public:
  // Throws std::logic_error where the profiler is in use, or another one on this thread; nothing is touched then.
  explicit Run(std::shared_ptr<ProfilerState> profiler);
  ~Run() { profiler_->in_use = false; }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // One call counts, further ones warm up and are timed. `inputs` is what the arguments hold; `first` makes the
  // counting call.
  Report repeated(Call& call, Reach inputs, const std::function<void(const Counted&)>& first);
  // One call, counted and timed.
  Report once(const std::function<void()>& closure);

 private:
  void begin(const std::string& scope, const Reach& inputs);
  std::optional<ModuleId> base() const;
  // The counting call, the caller's own. When it throws, the report of what ran before is kept.
  void count(const std::function<void()>& call);
  // The call in the model's scope, where it is the model's.
  void in_model(const std::function<void()>& call);
  // Fills in `pass`, also when the call throws.
  void observed(const std::function<void()>& call, observe::Pass& pass);
  void repeat(Call& call, const Rewind& rewind);
  void time_repeats(Call& call, const std::function<void()>& prepare);
  std::int64_t bare(Call& call);
  void stop_timing(const std::string& reason);
  bool untimed();
  Counted counted() const { return {session_, data_->modules, data_->notes}; }
  Report make_report();

  std::shared_ptr<ProfilerState> profiler_;
  observe::ModelTree tree_;  // as it was when the run began: the ids are its
  std::shared_ptr<observe::Session> session_;
  std::shared_ptr<ProfileData> data_;
  std::string untimed_;  // why calls cannot be timed where they run; empty: they can
  std::optional<DeviceRuns> device_;
  observe::Pass counting_;
  std::vector<observe::Pass> timed_;
};

}  // namespace roofprof::detail
