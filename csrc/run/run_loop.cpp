#include "run/run_loop.h"

#include <cxxabi.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "join/launch_order.h"
#include "machine/cpu/background_load.h"

namespace roofprof::run {
namespace {

// The number of repeats where the caller gives none.
constexpr std::size_t kRepeats = 10;
// Calls that compile are not timed. After this number of them, they are: the model compiles in each call.
constexpr std::int64_t kCompilingCalls = 16;
// The number of calls after which TorchScript's executor does not change its code any more.
constexpr std::size_t kCallsOfExecutor = 3;

constexpr const char* kOtherWork =
    "did other work than the one before it (a cache grew, an input was consumed, or others called its modules)";

class FurtherCalls {
 public:
  FurtherCalls(RunTarget& target, const RunLimits& limits, RunResult& result, bool among_ranks)
      : target_(target), limits_(limits), result_(result), among_ranks_(among_ranks) {}

  // Makes bare calls alone.
  void make_bare() {
    has_limit_ = has_limit_of_warmup_ = !among_ranks_;
    if (!warm_up()) return;
    const BackgroundLoad background(BackgroundLoad::Ranks::are_our_own);
    while (wants_more(result_.bare_ns)) {
      const auto compiled = target_.compilations().count;
      target_.prepare();
      const auto bare_ns = target_.bare();
      ++made_;
      if (!is_last_chance(result_.bare_ns) && is_for_the_compiler(compiled, 1)) continue;
      target_.keep();
      result_.bare_ns.push_back(bare_ns);
    }
    result_.others_share = background.share();
  }

  void make() {
    if (among_ranks_) {
      note_fixed_number();
      if (warm_up()) time();
      target_.leave_out_counters("other ranks may take another number of calls for them");
      return;
    }
    const auto raised = what_raises([&] {
      if (warm_up()) time();
    });
    if (raised) {  // the counting call went well, so its counts stand
      stop("raised " + *raised);
      return;
    }
    if (const auto why = what_raises([&] { target_.read_counters(result_.timed); })) {
      add_note(result_.notes, "no-counters", "no counters: a call under them raised " + *why);
    }
  }

 private:
  // Returns what the calls threw, if a note can say it; else rethrows it. (A cancelled thread throws nothing that has
  // an address: gcc binds the reference to null.)
  __attribute__((no_sanitize("null"))) std::optional<std::string> what_raises(
      const std::function<void()>& calls) const {
    try {
      calls();
      return std::nullopt;
    } catch (const abi::__forced_unwind&) {  // the thread is being cancelled
      throw;
    } catch (const std::exception& error) {
      if (auto what = target_.described(&error)) return what;
      throw;
    } catch (...) {
      if (auto what = target_.described(nullptr)) return what;
      throw;
    }
  }

  // Returns whether the calls so far and one of `more` take longer than that share of the time.
  bool spent(double share, std::chrono::nanoseconds more = {}) const {
    if (!has_limit_) return false;
    return limits_.now() - started_ - compiling() + more > share * limits_.time;
  }

  std::chrono::duration<double> compiling() const {
    return std::chrono::duration<double>(target_.compilations().seconds);
  }

  // Returns whether something was compiled since; the latest `calls` are then warm-up, whatever was requested: their
  // time is the compiler's.
  bool is_for_the_compiler(std::int64_t compilations_before, std::int64_t calls) {
    if (target_.compilations().count == compilations_before || compiling_calls_ >= kCompilingCalls) return false;
    compiling_calls_ += calls;
    result_.warmup += calls;
    return true;
  }

  // False where nothing can be timed.
  bool warm_up() {
    std::chrono::nanoseconds latest(result_.counting ? result_.counting->wall_ns : 0);
    const auto wanted = limits_.warmup.value_or(kWarmUpCalls);
    while (result_.warmup < wanted && !(has_limit_of_warmup_ && spent(limits_.warmup_share, latest))) {
      const auto compiling_before = compiling();
      target_.prepare();
      const std::chrono::nanoseconds bare(target_.bare());
      // The expected time of the next call, which does not compile the same again.
      latest =
          std::max({}, bare - std::chrono::duration_cast<std::chrono::nanoseconds>(compiling() - compiling_before));
      if (target_.device_lost()) return stop("found the device lost");
      ++result_.warmup;
    }
    return true;
  }

  // Returns whether a further call or pair is to be timed, after those in `timed`.
  template <class Timed>
  bool wants_more(const Timed& timed) const {
    return wants_more(timed, repeats_);
  }
  template <class Timed>
  bool wants_more(const Timed& timed, std::size_t repeats) const {
    return among_ranks_ ? made_ < repeats : timed.size() < repeats && (timed.empty() || !spent(1));
  }
  // Returns whether nothing is timed unless the call or pair just made is.
  template <class Timed>
  bool is_last_chance(const Timed& timed) const {
    return among_ranks_ && made_ == repeats_ && timed.empty() && !unlike_first_;
  }

  bool time() {
    const BackgroundLoad background(BackgroundLoad::Ranks::are_our_own);
    const bool goes_on = make_pairs();
    if (!result_.timed.empty()) result_.others_share = background.share();
    return goes_on;
  }

  bool make_pairs() {
    if (among_ranks_ || target_.by_executor() || !target_.can_trace_alone()) return make_observed_pairs(repeats_);
    if (!make_observed_pairs(1)) return false;
    const auto& observed = result_.timed.back();
    if (observed.device == nullptr || !observed.collectives.groups.empty()) return make_observed_pairs(repeats_);
    set_aside();
    try {
      const bool goes_on = make_pairs_traced_alone();
      use_what_was_set_aside();
      return goes_on;
    } catch (...) {
      use_what_was_set_aside();
      throw;
    }
  }

  struct Pair {
    Pass pass;
    std::int64_t bare_ns;
  };

  // Makes a bare call and then the other one. Empty where the device was lost, which is noted.
  std::optional<Pair> make_pair(const std::function<Pass()>& other_call) {
    target_.prepare();
    const auto bare_ns = target_.bare();
    if (!target_.device_lost()) {
      target_.prepare();
      Pair pair{other_call(), bare_ns};
      ++made_;
      if (!target_.device_lost()) return pair;
    }
    stop("found the device lost");
    return std::nullopt;
  }

  bool make_pairs_traced_alone() {
    while (wants_more(result_.timed)) {
      const auto compiled = target_.compilations().count;
      const auto made = make_pair([this] { return target_.traced_alone(); });
      if (!made) return false;
      if (is_for_the_compiler(compiled, 2)) continue;
      const auto& [alone, bare_ns] = *made;
      if (alone.device == nullptr) return true;  // which is noted
      auto trace = with_owners_of(*observed_pair_->pass.device, *alone.device);
      if (!trace) return observe_instead();
      auto pass = observed_pair_->pass;
      pass.device = std::make_shared<const DeviceTrace>(*std::move(trace));
      pass.wall_ns = alone.wall_ns;
      pass.trace_start_ns = alone.trace_start_ns;
      add({std::move(pass), bare_ns});
    }
    return true;
  }

  // A call launched in another order: was it other work?
  bool observe_instead() {
    target_.prepare();
    const auto pass = target_.observed();
    ++observed_;
    result_.warmup += 3;
    if (target_.device_lost()) return stop("found the device lost");
    if (!ran_compiled_code(pass) && !same_work(observed_pair_->pass, pass)) return stop(kOtherWork);
    add_note(result_.notes, "order-differs",
             "calls that were traced without an observer launched in another order than the observed one, so that it "
             "is not known whose their kernels are: the times are those of observed calls");
    drop_timed();
    use_what_was_set_aside();
    return make_observed_pairs(repeats_);
  }

  void drop_timed() {
    result_.warmup += static_cast<std::int64_t>(2 * result_.timed.size());
    result_.timed.clear();
    result_.bare_ns.clear();
  }
  // The latest pair shows what ran and to what it belongs; it is timed if no other is.
  void set_aside() {
    observed_pair_ = Pair{std::move(result_.timed.back()), result_.bare_ns.back()};
    drop_timed();
  }
  void use_what_was_set_aside() {
    if (!observed_pair_ || !result_.timed.empty()) return;
    result_.warmup -= 2;
    add(*std::exchange(observed_pair_, std::nullopt));
  }

  bool make_observed_pairs(std::size_t repeats) {
    bool keeps = true;
    while (wants_more(result_.timed, repeats)) {
      const auto compiled = target_.compilations().count;
      auto made = make_pair([this] {
        auto pass = target_.observed();
        ++observed_;
        return pass;
      });
      if (!made) return false;
      if (!keeps || (!is_last_chance(result_.timed) && is_for_the_compiler(compiled, 2))) continue;
      keeps = keep(*std::move(made));
      if (!keeps) {
        stop(kOtherWork);
        if (!among_ranks_) return false;
      }
    }
    if (among_ranks_ && keeps && unlike_first_ && result_.timed.empty()) {
      return stop("did other work than the first one, and none came after it to tell which is the usual");
    }
    return true;
  }

  void add(Pair pair) {
    result_.bare_ns.push_back(pair.bare_ns);
    result_.timed.push_back(std::move(pair.pass));
  }

  // False where the call did other work than those before it.
  bool keep(Pair pair) {
    const bool by_executor = target_.by_executor();
    if (!result_.timed.empty()) {
      if (!same_work(result_.timed.front(), pair.pass) && !(by_executor && has_changed_its_mind())) return false;
    } else if (!by_executor && !ran_compiled_code(pair.pass)) {
      const auto& before = unlike_first_ ? unlike_first_->pass : *result_.counting;
      if (!same_work(before, pair.pass)) {
        if (unlike_first_) return false;
        unlike_first_ = std::move(pair);  // the next one shows if the first call set something up
        return true;
      }
      if (unlike_first_) count_later_calls();
    }
    add(std::move(pair));
    return true;
  }

  // The timed calls of an executor that has done so are warm-up.
  bool has_changed_its_mind() {
    if (observed_ > kCallsOfExecutor) return false;
    drop_timed();
    return true;
  }

  // The first call set something up that those after it find: they are what is counted.
  void count_later_calls() {
    auto first = std::exchange(*result_.counting, unlike_first_->pass);
    std::ranges::copy_if(first.ops, std::back_inserter(result_.counting->ops), [](const Pass::Op& op) {
      return op.kind == Pass::Op::Kind::unobserved_module;  // looked for in the first call alone
    });
    result_.counting->memory = first.memory;  // measured in the first call alone
    take_traffic(*result_.counting, first);   // only the first call tracks it
    result_.first_call = std::move(first);
    if (repeats_ > 1) {
      add(std::move(*unlike_first_));
    } else {
      result_.warmup += 2;
    }
  }

  void note_fixed_number() {
    if (limits_.warmup && limits_.repeat) return;
    add_note(result_.notes, "fixed-calls",
             "ranks may wait for each other in these calls, so all make the same number of them, however long that "
             "takes: the first, " +
                 std::to_string(limits_.warmup.value_or(kWarmUpCalls)) + " for warm-up and " +
                 std::to_string(repeats_) +
                 " pairs of a bare and an observed one; give warmup and repeat, the same on all ranks, to change it");
  }

  bool stop(const std::string& reason) {
    use_what_was_set_aside();
    add_note(result_.notes, "timing-stopped",
             "timing stopped after " + std::to_string(result_.timed.size()) +
                 (result_.timed.size() == 1 ? " repeat" : " repeats") + ": a further call " + reason +
                 (result_.timed.empty() ? "; the times are those of the first call" : ""));
    return false;
  }

  RunTarget& target_;
  const RunLimits& limits_;
  RunResult& result_;
  const std::chrono::steady_clock::time_point started_ = limits_.now();
  const bool among_ranks_;
  const std::size_t repeats_ = limits_.repeat ? static_cast<std::size_t>(*limits_.repeat)
                               : among_ranks_ ? static_cast<std::size_t>(kRepeatsOfRanks)
                                              : kRepeats;
  bool has_limit_ = !limits_.repeat && !among_ranks_;
  bool has_limit_of_warmup_ = !limits_.warmup && !among_ranks_;
  std::int64_t compiling_calls_ = 0;
  std::size_t observed_ = 0;
  std::size_t made_ = 0;               // calls or pairs after the warm-up
  std::optional<Pair> observed_pair_;  // that was set aside, where calls are traced alone
  std::optional<Pair> unlike_first_;   // the first pair, where it did other work than the counting call
};

// Returns whether a call used collectives of several ranks that exist.
bool communicates(const Pass& pass) {
  return std::ranges::any_of(pass.collectives.groups,
                             [](const auto& group) { return group.ranks > 1 && group.backend != "fake"; });
}

}  // namespace

void count_call(RunTarget& target, RunResult& result) {
  try {
    target.count(result.counting);
  } catch (...) {
    result.partial = result.counting.has_value();
    throw;
  }
}

void time_calls(RunTarget& target, const RunLimits& limits, RunResult& result) {
  FurtherCalls(target, limits, result, target.is_among_ranks()).make_bare();
}

void repeat_calls(RunTarget& target, const RunLimits& limits, RunResult& result) {
  if (const auto why = target.why_only_once(); !why.empty()) {
    add_note(result.notes, "timed-once", "timed in the first call alone: " + why);
  } else if (!target.device_lost()) {
    const bool among_ranks = target.is_among_ranks() || communicates(*result.counting);
    const auto lost = target.undoing([&] { FurtherCalls(target, limits, result, among_ranks).make(); });
    if (lost > 0) {
      add_note(result.notes, "state-not-restored",
               "further calls wrote to " + std::to_string(lost) +
                   " tensors that the first did not: they are not as it left them");
    }
  }
  if (result.timed.empty()) result.timed.push_back(*result.counting);
}

}  // namespace roofprof::run
