#pragma once
// Holds one run, block or count while it is under way: its session, its device, and what was observed so far.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/run_record.h"
#include "machine/common/measurement.h"
#include "machine/cpu/background_load.h"
#include "observe/own_calls.h"
#include "observe/session.h"
#include "roofprof/report.h"
#include "run/device_passes.h"
#include "run/run_loop.h"

namespace roofprof::run {

struct RunSetting {
  Mode mode = Mode::run;
  std::string device;   // whose kernels and roofs count
  std::string untimed;  // why calls cannot be timed there; empty: they can
  Counters counters = Counters::automatic;
  bool all_threads = false;           // of code around a model: what other threads call counts as well
  bool keep_events = false;           // for traces, where calls are timed
  bool holds_data = true;             // false: what is called works on tensors without data (meta, fake)
  std::optional<ModuleId> base = {};  // who has the ops outside of all modules; empty: they are not counted

  bool timed() const { return untimed.empty() && mode != Mode::count; }
};

// The device on which a call runs, and why the call cannot be timed there; empty: it can.
struct Location {
  std::string device;
  std::string untimed;
};

class ObservedRun {
 public:
  // `otherwise` is set where tensors with data and without are within reach, so that the setting is a guess. The
  // counting call shows which of them it computed on; if the guess was wrong, it ran at `otherwise`.
  ObservedRun(std::shared_ptr<observe::Session> session, RunSetting setting,
              std::optional<Location> otherwise = std::nullopt);

  const std::shared_ptr<observe::Session>& session() const { return session_; }
  const RunSetting& setting() const { return setting_; }
  DevicePasses& device() { return device_; }
  const DevicePasses& device() const { return device_; }
  RunResult& result() { return result_; }
  const RunResult& result() const { return result_; }

  // A block is one pass, which is counted, and timed unless the setting says otherwise. In a child that was forked
  // inside of it, its end gives nothing.
  void start_block();
  void stop_block(bool raised);
  // Notes that a step of the block has ended.
  void step() {
    result_.steps.step();
    session_->steps.mark();
  }
  // Mark what follows as outside of all steps: leave_steps() begins it, enter_steps() ends it.
  void leave_steps() {
    result_.steps.leave();
    session_->steps.leave();
  }
  void enter_steps() {
    session_->steps.enter();
    result_.steps.enter();
  }
  // A run is the counting call alone, and then further ones where they can be timed. These throw as the loop's
  // functions do.
  void count(RunTarget& target);
  void repeat(RunTarget& target, const RunLimits& limits);

 private:
  // Replaces a guessed setting by what ran, after the counting call or the block.
  void settle();

  std::shared_ptr<observe::Session> session_;
  RunSetting setting_;
  std::optional<Location> otherwise_;
  DevicePasses device_;
  RunResult result_;
  std::optional<BackgroundLoad> other_load_;  // of a block
  std::optional<observe::OwnBlock> own_block_;
};

// Makes calls that a run's session observes on its device; a subclass decides how a call is made.
class SessionTarget : public RunTarget {
 public:
  std::int64_t bare() override;
  Pass observed() final;
  // Returns true if the device traces and no events are kept: events need an observed call.
  bool can_trace_alone() const final { return run_.device().traces() && !run_.session()->setup.keeps_events; }
  Pass traced_alone() final;
  void read_counters(const std::vector<Pass>& timed) override;
  // Asks the environment: nothing else reveals collectives that a program requests from a backend directly.
  bool is_among_ranks() const override;
  void leave_out_counters(const std::string& why) override { run_.device().leave_out_counters(why); }
  bool device_lost() const final { return !run_.device().lost().empty(); }
  bool by_executor() const override { return run_.session()->setup.scripts != nullptr; }

 protected:
  // `of_model`: its calls are calls of the model itself, and others' calls of it are left out.
  SessionTarget(ObservedRun& run, bool of_model);
  // Makes one observed call. Fills in `pass` once it has begun, also when it throws.
  void observe(const std::function<void()>& call, std::optional<Pass>& pass);

  // Make a further call: plainly, and in the model's scope.
  virtual void call() = 0;
  virtual void call_in_scope() = 0;
  // Runs the body, which makes the observed calls, with hooks in place.
  virtual void hooked(const std::function<void()>& body) { body(); }
  // Runs a body that waits for a device.
  virtual void waiting(const std::function<void()>& body) { body(); }

  ObservedRun& run() { return run_; }

 private:
  // Returns whether a timed call on a device comes right after one that is not timed. What runs between calls takes
  // the host's caches, and the first launches of a trace prepare it: on an H200 a product of 185 us took 210 to 450 us
  // after a pause, and 1 ms as the first call of a trace.
  bool warms_up() const;

  ObservedRun& run_;
  bool of_model_;
  bool is_short_ = false;  // the latest bare call
  observe::OwnThread thread_;
};

// The end of every run, block and count.

// The report of what `run` observed, at least the counting call; takes the passes out of it. `observed` comes with what
// the front end alone knows: the model, its modules, the steps and its notes. `roofs`: none where nothing was timed.
// `depth`: of the report's tables.
Report finish_report(ObservedRun& run, RunRecord observed, const MeasuredCeilings& roofs,
                     std::optional<std::int64_t> depth = {});

}  // namespace roofprof::run
