#pragma once
// The one loop of all runs: the counting call, warm-up, pairs of a bare and an observed call, counters; or bare calls
// alone.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/note_codes.h"
#include "core/pass.h"
#include "run/run_target.h"
#include "run/step_clock.h"

namespace roofprof::run {

struct RunLimits {
  std::int64_t warmup = 3;               // calls that are not timed
  std::optional<std::int64_t> repeat{};  // timed pairs; empty: at most 10, or as many as begin within `time`
  // The time limit, which compilations do not count to. Pairs have none where `repeat` is given.
  std::chrono::nanoseconds time = std::chrono::seconds(5);
  double warmup_share = 0.5;  // of that time
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// The passes and notes so far. All of them stay when a call throws.
struct RunResult {
  std::optional<Pass> counting;  // empty: no call has begun
  std::vector<Pass> timed;
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
// - compiled code and TorchScript's executor dispatch other ops than were counted: the counts stand. The executor may
//   change its mind in its first calls, which are then warm-up;
// - a call that throws an exception stops the timing, too; so does a lost device;
// - counters are read at the end.
// The counting call's times stay where nothing can be timed that way. Throws what RunTarget::described lets through;
// everything is put back then, too.
void repeat_calls(RunTarget& target, const RunLimits& limits, RunResult& result);

// Makes bare calls alone, by the same rules of warm-up, compilations and time: those for warm-up, then `repeat` timed
// ones, each of which is kept (RunTarget::keep). Undoes nothing, and throws what a call throws.
void time_calls(RunTarget& target, const RunLimits& limits, RunResult& result);

}  // namespace roofprof::run
