#include "run/run_loop.h"

#include <string>
#include <utility>

namespace roofprof::run {
namespace {

using Clock = std::chrono::steady_clock;

// Without a wish of the caller's.
constexpr std::size_t kRepeats = 10;
// Calls that compile are not timed, but a model that compiles in each call is, after so many.
constexpr std::size_t kCompilingCalls = 16;
// After so many, TorchScript's executor has made up its mind.
constexpr std::size_t kCallsOfExecutor = 3;

class FurtherCalls {
 public:
  FurtherCalls(RunTarget& target, const RunLimits& limits, RunResult& result)
      : target_(target), limits_(limits), result_(result) {}

  void make() {
    try {
      warm_up() && time();
    } catch (const std::exception& error) {  // the counting call went well, so its counts stand
      const auto what = target_.described(error);
      if (!what) throw;
      stop("raised " + *what);
      return;
    }
    try {
      target_.read_counters(result_.timed);
    } catch (const std::exception& error) {
      const auto what = target_.described(error);
      if (!what) throw;
      add_note(result_.notes, "no-counters", "no counters: a call under them raised " + *what);
    }
  }

 private:
  // Whether the calls so far and one of `more` take longer than that.
  bool spent(std::chrono::nanoseconds limit, std::chrono::nanoseconds more = {}) const {
    if (limits_.repeat) return false;
    const std::chrono::duration<double> compiling(target_.compilations().seconds);
    return Clock::now() - started_ - compiling + more > limit;
  }

  // False where nothing can be timed.
  bool warm_up() {
    const std::chrono::nanoseconds one_call(result_.counting->wall_ns);
    while (result_.warmup < limits_.warmup && !spent(limits_.time / 2, one_call)) {
      target_.prepare();
      target_.bare();
      if (target_.device_lost()) return stop("found the device lost");
      ++result_.warmup;
    }
    return true;
  }

  bool time() {
    const auto repeats = limits_.repeat ? static_cast<std::size_t>(*limits_.repeat) : kRepeats;
    while (result_.timed.size() < repeats && (result_.timed.empty() || !spent(limits_.time))) {
      const auto compiled = target_.compilations().count;
      target_.prepare();
      const auto bare_ns = target_.bare();
      if (target_.device_lost()) return stop("found the device lost");
      target_.prepare();
      auto pass = target_.observed();
      ++observed_;
      if (target_.device_lost()) return stop("found the device lost");
      const auto calls = result_.timed.size() + static_cast<std::size_t>(result_.warmup);
      if (target_.compilations().count > compiled && calls < kCompilingCalls) {
        result_.warmup += 2;  // whatever was wished: its time is the compiler's
        continue;
      }
      if (!is_repeat(pass)) return stop("did other work than the first (a cache grew, or an input was consumed)");
      result_.bare_ns.push_back(bare_ns);
      result_.timed.push_back(std::move(pass));
    }
    return true;
  }

  // Whether the call did what the others did. Timed calls of an executor that has changed its mind become warm-up.
  bool is_repeat(const Pass& pass) {
    const bool by_executor = target_.by_executor();
    if (!by_executor && !ran_compiled_code(pass)) {
      return same_work(*result_.counting, pass);
    }
    if (result_.timed.empty() || same_work(result_.timed.front(), pass)) return true;
    if (!by_executor || observed_ > kCallsOfExecutor) return false;
    result_.warmup += static_cast<std::int64_t>(2 * result_.timed.size());
    result_.timed.clear();
    result_.bare_ns.clear();
    return true;
  }

  bool stop(const std::string& reason) {
    add_note(result_.notes, "timing-stopped",
             "timing stopped after " + std::to_string(result_.timed.size()) + " repeats: a further call " + reason +
                 (result_.timed.empty() ? "; the times are those of the first call" : ""));
    return false;
  }

  RunTarget& target_;
  const RunLimits& limits_;
  RunResult& result_;
  const Clock::time_point started_ = Clock::now();
  std::size_t observed_ = 0;
};

}  // namespace

void count_call(RunTarget& target, RunResult& result) {
  try {
    target.count(result.counting);
  } catch (...) {
    result.partial = result.counting.has_value();
    throw;
  }
}

void repeat_calls(RunTarget& target, const RunLimits& limits, RunResult& result) {
  if (const auto why = target.why_only_once(); !why.empty()) {
    add_note(result.notes, "timed-once", "timed in the first call alone: " + why);
  } else if (!target.device_lost()) {
    const auto lost = target.undoing([&] { FurtherCalls(target, limits, result).make(); });
    if (lost > 0) {
      add_note(result.notes, "state-not-restored",
               "further calls wrote to " + std::to_string(lost) +
                   " tensors that the first did not: they are not as it left them");
    }
  }
  if (result.timed.empty()) result.timed.push_back(*result.counting);
}

}  // namespace roofprof::run
