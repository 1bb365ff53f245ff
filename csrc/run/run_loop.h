#pragma once
// The one loop of all runs: the counting call, warm-up, pairs of a bare and a timed call, counters; or bare calls
// alone.

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/note_codes.h"
#include "core/pass.h"
#include "core/profile.h"

namespace roofprof::run {

// The interface through which the loop calls a model. C++'s profiler and Python's each implement it.

// The number of times that a compiler (torch.compile) ran so far, and their duration.
struct Compilations {
  std::int64_t count = 0;
  double seconds = 0;
};

class RunTarget {
 public:
  RunTarget() = default;
  virtual ~RunTarget() = default;
  RunTarget(const RunTarget&) = delete;
  RunTarget& operator=(const RunTarget&) = delete;

  // Makes the counting call, which is the caller's own. Fills in `pass` once the call has begun, also when it throws.
  virtual void count(std::optional<Pass>& pass) = 0;
  // Returns why no further calls can be made, as the end of a sentence; empty: they can.
  virtual std::string why_only_once() const { return {}; }
  // Calls `further`, in which further calls are made. Then everything within reach (state_snapshot.h) is put back as
  // the counting call left it, also when `further` throws. Returns how many tensors could not be put back.
  virtual std::int64_t undoing(const std::function<void()>& further) = 0;

  // Gives a further call what the first one got.
  virtual void prepare() = 0;
  // Makes a further call without any observer, and returns its wall time in ns, with the device's part.
  virtual std::int64_t bare() = 0;
  // The bare call before was timed, and not for warm-up; called where bare calls alone are made.
  virtual void keep() {}
  // Makes a further call that is observed.
  virtual Pass observed() = 0;
  // Returns whether a call can be traced alone: a device tells when it ran what, and nobody observes the call.
  virtual bool can_trace_alone() const { return false; }
  // Makes such a further call: its wall time and, where that was possible, its trace without owners.
  virtual Pass traced_alone() { return {}; }
  // Reads hardware counters after the timed calls. They need separate further calls, each of them prepared.
  virtual void read_counters(const std::vector<Pass>& timed) = 0;
  // Notes why no counters are read, where they would have been.
  virtual void leave_out_counters(const std::string& /*why*/) {}
  // Returns whether the process is one of several ranks, which may wait in their calls for this one's. Known after the
  // first call.
  virtual bool is_among_ranks() const { return false; }

  // Returns true where the device cannot be used any more, so that further calls cannot be made either.
  virtual bool device_lost() const { return false; }
  // Returns whether TorchScript's executor runs parts of the model. It dispatches other ops than were counted.
  virtual bool by_executor() const { return false; }
  virtual Compilations compilations() const { return {}; }
  // Returns what a further call threw, for a note: "ValueError: no". Empty where the exception must pass as it was
  // thrown. Called while it is handled; null: it does not derive from std::exception.
  virtual std::optional<std::string> described(const std::exception* error) const = 0;
};

// The steps of a block: how many, and how long each took.

// A step lasts from the end of the one before it, the first from the start, without what was between them, by the
// host's clock: nothing waits for a device meanwhile.
class StepClock {
 public:
  void start() {
    times_ns_.reserve(kStepsTimed);  // a step's end neither waits for memory nor fails
    last_ = Clock::now();
  }
  // A step has ended.
  void step() {
    leave();
    enter();
    ++count_;
    if (times_ns_.size() < kStepsTimed) {
      times_ns_.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(in_step_).count());
    }
    total_ += std::exchange(in_step_, {});
  }
  // Ends the time in a step, until enter().
  void leave() { in_step_ += Clock::now() - last_; }
  void enter() { last_ = Clock::now(); }

  std::int64_t count() const { return count_; }
  // Returns the time of all steps together.
  std::int64_t total_ns() const { return std::chrono::duration_cast<std::chrono::nanoseconds>(total_).count(); }
  // Returns the times of the first kStepsTimed steps.
  const std::vector<std::int64_t>& times_ns() const { return times_ns_; }

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t count_ = 0;
  std::vector<std::int64_t> times_ns_;
  Clock::time_point last_;
  Clock::duration in_step_{}, total_{};
};

// The number of calls that are not timed where the caller gives none.
inline constexpr std::int64_t kWarmUpCalls = 3;
// The number of repeats of ranks where the caller gives none: nothing ends them sooner.
inline constexpr std::int64_t kRepeatsOfRanks = 5;

struct RunLimits {
  // Calls that are not timed; empty: kWarmUpCalls, or as many as begin within `warmup_share` of `time`.
  std::optional<std::int64_t> warmup{};
  std::optional<std::int64_t> repeat{};  // timed pairs; empty: at most 10, or as many as begin within `time`
  // The time limit, which compilations do not count to. Observed runs have none for what is given: `warmup` calls are
  // made however long they take, and where `repeat` is given nothing is left out.
  std::chrono::nanoseconds time = std::chrono::seconds(5);
  double warmup_share = 0.5;  // of that time
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// The passes and notes so far. All of them stay when a call throws.
struct RunResult {
  std::optional<Pass> counting;  // empty: no call has begun
  std::vector<Pass> timed;
  std::vector<Pass> kernel_passes;     // of code that was compiled for its kernels
  std::vector<std::int64_t> bare_ns;   // of the bare call before each timed one; or of the timed bare calls
  std::int64_t warmup = 0;             // further calls that were not timed
  std::optional<double> others_share;  // of the processors: what other programs used while calls were timed
  bool partial = false;                // the counting call threw
  // Set where all later calls did other work than the first: `counting` is then a later one.
  std::optional<Pass> first_call;
  std::vector<Note> notes;
  StepClock steps;  // of a block
};

// Makes the counting call. Throws what it throws.
void count_call(RunTarget& target, RunResult& result);

// Makes the further calls, after the counting call:
// - warm-up calls, then pairs until the limits are reached; each call is prepared first;
// - a pair in which something was compiled is warm-up, up to a number of them;
// - timed calls are compared with each other. Where the first two agree with each other and not with the counting call,
//   that one set something up, and they take its place (RunResult::first_call). A call that did other work than those
//   before it stops the timing, and is not kept;
// - where calls can be traced alone, the first pair is set aside, and those that are timed are of a bare call and one
//   traced alone. They have the first one's ops and owners, by the order of launches (with_owners_of). Where that order
//   differs, an observed call shows whether the work did, which stops the timing; else observed calls are timed. So are
//   calls that communicate, which the host's clock times;
// - compiled code and TorchScript's executor dispatch other ops than were counted: the counts stand. The executor may
//   change its mind in its first calls, which are then warm-up;
// - a call that throws an exception stops the timing, too; so does a lost device;
// - counters are read at the end.
// Ranks that wait for each other in their calls must all make the same number of them, and none knows what the others
// found. So where there are ranks (RunTarget::is_among_ranks, or a collective of several in the counting call) nothing
// that one of them alone may see changes the number: not the time, work or compilations; no counters are read, and an
// exception comes through, since the others wait for this rank's next collective.
// The counting call's times stay where nothing can be timed that way. Throws what RunTarget::described lets through;
// everything is put back then, too.
void repeat_calls(RunTarget& target, const RunLimits& limits, RunResult& result);

// Makes bare calls alone, by the same rules of warm-up, compilations, time and ranks: those for warm-up, then `repeat`
// timed ones, each of which is kept (RunTarget::keep). Undoes nothing, and throws what a call throws.
void time_calls(RunTarget& target, const RunLimits& limits, RunResult& result);

}  // namespace roofprof::run
