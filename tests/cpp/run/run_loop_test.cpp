// The run loop with a scripted target: what is called, how often, what stops it, what is said.

#include "run/run_loop.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "machine/cpu/host.h"
#include "observe/session.h"
#include "run/scenario_table.h"

namespace roofprof::run {
namespace {

using testing::Scenario;
using namespace std::chrono_literals;

struct Interrupt {};

// The loop's clock: it stands still but where a test moves it.
std::chrono::steady_clock::time_point clock_now;

RunLimits by_test_clock(RunLimits limits) {
  limits.now = [] { return clock_now; };
  return limits;
}

// Does what its script says for the n-th call; each call is prepared but the first.
class ScriptedTarget final : public RunTarget {
 public:
  std::function<void(std::int64_t call)> script = [](std::int64_t) {};
  std::function<bool(std::int64_t call)> compiles = [](std::int64_t) { return false; };
  std::function<std::int64_t(std::int64_t call)> work = [](std::int64_t) { return 1; };
  bool executor = false;
  bool in_compiled_code = false;
  bool lost = false;
  bool among_ranks = false;
  ProcessGroup group;  // of a collective in the counting call; without ranks: there is none
  std::string only_once;
  std::int64_t could_not_put_back = 0;
  std::int64_t calls = 0;
  std::int64_t prepared = 0;
  std::int64_t undone = 0;
  std::int64_t counter_runs = 0;
  std::string no_counters;
  std::vector<std::int64_t> kept;  // the bare calls that were timed, by number
  // On a device: the kernels that a call launches, each under an id of its own where it is observed.
  std::function<std::vector<std::string>(std::int64_t call)> launches;
  bool communicates = false;  // in observed calls
  std::int64_t traced_alone_calls = 0;

  void count(std::optional<Pass>& pass) override {
    counting_ = true;
    observe(pass);
    if (group.ranks > 0) pass->collectives.groups = {group};
    counting_ = false;
  }
  std::string why_only_once() const override { return only_once; }
  std::int64_t undoing(const std::function<void()>& further) override {
    struct Undo {
      std::int64_t& undone;
      ~Undo() { ++undone; }
    } undo{undone};
    further();
    return could_not_put_back;
  }
  void prepare() override { ++prepared; }
  std::int64_t bare() override {
    const auto before = clock_now;
    call();
    return bare_takes_its_time ? (clock_now - before + 7ns).count() : 7;
  }
  bool bare_takes_its_time = false;  // by the test's clock; else each takes 7 ns
  void keep() override { kept.push_back(calls); }
  Pass observed() override {
    std::optional<Pass> pass;
    observe(pass);
    if (launches) pass->device = trace(/*with_ids=*/true);
    if (communicates) pass->collectives.groups = {{"group", "gloo", 1}};
    return *pass;
  }
  bool can_trace_alone() const override { return static_cast<bool>(launches); }
  Pass traced_alone() override {
    ++traced_alone_calls;
    call();
    Pass pass;
    pass.wall_ns = 1'000 + calls;
    pass.device = trace(/*with_ids=*/false);
    return pass;
  }
  void read_counters(const std::vector<Pass>& timed) override {
    if (timed.empty()) return;
    ++counter_runs;
    if (counters_raise) throw std::runtime_error("no counters here");
  }
  bool is_among_ranks() const override { return among_ranks; }
  void leave_out_counters(const std::string& why) override { no_counters = why; }
  bool device_lost() const override { return lost; }
  bool by_executor() const override { return executor; }
  Compilations compilations() const override { return compilations_; }
  std::optional<std::string> described(const std::exception* error) const override {
    if (error == nullptr) return std::nullopt;
    return error->what();
  }

  bool counters_raise = false;

 private:
  std::shared_ptr<const DeviceTrace> trace(bool with_ids) const {
    DeviceTrace trace;
    for (const auto& name : launches(calls)) {
      KernelRecord record;
      record.name = static_cast<std::uint32_t>(trace.names.size());
      trace.names.push_back(name);
      record.correlation = trace.records.size() + 1;
      if (with_ids) record.launch = 10 + trace.records.size();
      record.start_ns = record.end_ns = calls;
      trace.records.push_back(record);
    }
    return std::make_shared<const DeviceTrace>(std::move(trace));
  }

  void call() {
    ++calls;
    if (compiles(calls)) {
      ++compilations_.count;
      compilations_.seconds += 3600;
      clock_now += 1h;
    }
    script(calls);
    at::mm(at::ones({work(calls), 2}), at::ones({2, 2}));
  }
  void observe(std::optional<Pass>& pass) {
    session_->start(kOutside);
    try {
      at::RecordFunction package(at::RecordScope::USER_SCOPE);
      if (in_compiled_code && !counting_) package.before("AOTIModelContainerRunner::run");
      call();
      package.end();
    } catch (...) {
      pass = session_->stop();
      throw;
    }
    pass = session_->stop();
  }

  std::shared_ptr<observe::Session> session_ = std::make_shared<observe::Session>();
  Compilations compilations_;
  bool counting_ = false;
};

struct Ran {
  RunResult result;
  bool raised = false;
};

std::vector<std::string> texts(const RunResult& result) {
  std::vector<std::string> texts;
  for (const auto& note : result.notes) texts.push_back(note.text);
  return texts;
}

Ran run_all(ScriptedTarget& target, const RunLimits& limits) {
  Ran ran;
  try {
    count_call(target, ran.result);
    repeat_calls(target, by_test_clock(limits), ran.result);
  } catch (const std::exception&) {
    ran.raised = true;
  } catch (const Interrupt&) {
    ran.raised = true;
  }
  return ran;
}

class Scenarios : public ::testing::TestWithParam<Scenario> {};

TEST_P(Scenarios, OfTheLoopItself) {
  const auto& scenario = GetParam();
  ScriptedTarget target;
  if (scenario.model == "used up") target.only_once = "it is used up";
  if (scenario.model == "grows") target.work = [](std::int64_t call) { return call; };
  if (scenario.model == "other work") {
    target.work = [&](std::int64_t call) { return call >= scenario.at ? 2 : 1; };
  }
  if (scenario.model == "sets up") target.work = [&](std::int64_t call) { return call < scenario.at ? 2 : 1; };
  target.script = [&](std::int64_t call) {
    if (call != scenario.at) return;
    if (scenario.model == "raises") throw std::runtime_error("no");
    if (scenario.model == "interrupts") throw Interrupt();
    if (scenario.model == "lost") target.lost = true;
  };
  const auto [result, raised] = run_all(target, scenario.limits);
  EXPECT_EQ(target.calls, scenario.calls);
  EXPECT_EQ(target.prepared, scenario.calls - 1);
  EXPECT_EQ(result.warmup, scenario.warmup);
  EXPECT_EQ(std::ssize(result.timed), scenario.timed);
  EXPECT_EQ(result.bare_ns, std::vector<std::int64_t>(static_cast<std::size_t>(scenario.bare), 7));
  EXPECT_EQ(result.partial, scenario.ends == "partial");
  EXPECT_EQ(raised, scenario.ends != "well");
  auto note = testing::expected_note(scenario, "no", "it is used up");
  const bool of_the_join = note.starts_with("the first call ran");  // which names what it did
  EXPECT_EQ(result.first_call.has_value(), of_the_join);
  if (of_the_join) note.clear();
  EXPECT_EQ(texts(result), note.empty() ? std::vector<std::string>() : std::vector{note});
  EXPECT_EQ(target.undone, target.calls > 1 ? 1 : 0) << "further calls are undone however they end";
}

INSTANTIATE_TEST_SUITE_P(Table, Scenarios, ::testing::ValuesIn(testing::read_scenarios()), testing::test_name);

// ---- limits of time

TEST(Limits, AreOfTimeWhereThereIsNoWish) {
  struct Slow {
    const char* what;
    RunLimits limits;
    std::int64_t warmup;
    std::size_t timed;
  };
  for (const auto& slow :
       {Slow{"calls that begin within 15 hours, and pairs that begin after 20, 40 and 60",
             {.time = 75h, .warmup_share = 0.2},
             2,
             3},
        Slow{"one timed pair however slow", {.warmup = 1, .time = 1h}, 1, 1},
        Slow{"warm-ups that were wished for", {.warmup = 5, .time = 1h}, 5, 1},
        Slow{"a wish has none", {.warmup = 2, .repeat = 4, .time = 1ns}, 2, 4},
        Slow{"the counting call, by the observer's clock, is longer than what is left", {.time = 1ns}, 0, 1}}) {
    SCOPED_TRACE(slow.what);
    ScriptedTarget target;
    target.script = [](std::int64_t) { clock_now += 10h; };
    const auto ran = run_all(target, slow.limits);
    EXPECT_EQ(ran.result.warmup, slow.warmup);
    EXPECT_EQ(ran.result.timed.size(), slow.timed);
    EXPECT_TRUE(texts(ran.result).empty());
  }
}

TEST(Limits, TheCompilersTimeDoesNotCount) {
  ScriptedTarget target;
  target.compiles = [](std::int64_t call) { return call == 2; };
  const auto ran = run_all(target, {.warmup = 1, .time = 59min});
  EXPECT_EQ(ran.result.timed.size(), 10U);
}

// The first warm-up call compiles for an hour, which says nothing of the time that the next one takes.
TEST(Limits, ACallThatCompiledIsNoMeasureOfTheNextOne) {
  ScriptedTarget target;
  target.compiles = [](std::int64_t call) { return call == 2; };
  target.bare_takes_its_time = true;
  EXPECT_EQ(run_all(target, {.time = 59min}).result.warmup, 3);
}

// ---- a first call that sets something up

ScriptedTarget& setting_up(ScriptedTarget& target) {
  target.work = [](std::int64_t call) { return call == 1 ? 2 : 1; };
  return target;
}

TEST(SettingUp, TheLaterCallsAreCounted) {
  ScriptedTarget target;
  const auto ran = run_all(setting_up(target), {.warmup = 0, .repeat = 2});
  ASSERT_TRUE(ran.result.first_call);
  EXPECT_FALSE(same_work(*ran.result.first_call, *ran.result.counting));
  for (const auto& pass : ran.result.timed) EXPECT_TRUE(same_work(*ran.result.counting, pass));
}

TEST(SettingUp, IsNotKnownWhereTheSecondPairRaises) {
  ScriptedTarget target;
  target.script = [](std::int64_t call) {
    if (call == 4) throw std::runtime_error("no");
  };
  const auto ran = run_all(setting_up(target), {.warmup = 0, .repeat = 2});
  EXPECT_FALSE(ran.result.first_call);
  ASSERT_EQ(ran.result.timed.size(), 1U);
  EXPECT_TRUE(same_work(ran.result.timed[0], *ran.result.counting)) << "times and counts are of one call";
  EXPECT_TRUE(ran.result.bare_ns.empty());
}

TEST(SettingUp, HappensInTurnsWhereEverySecondTimedCallDoesOtherWork) {
  ScriptedTarget target;
  target.work = [](std::int64_t call) { return call % 4 == 3 ? 2 : 1; };  // the first pair's
  const auto ran = run_all(target, {.warmup = 0, .repeat = 3});
  EXPECT_FALSE(ran.result.first_call);
  EXPECT_EQ(ran.result.timed.size(), 1U);
  EXPECT_EQ(texts(ran.result).size(), 1U);
}

// ---- calls that are traced alone

std::vector<LaunchId> ids(const Pass& pass) {
  std::vector<LaunchId> ids;
  for (const auto& record : pass.device->records) ids.push_back(record.launch);
  return ids;
}

TEST(TracedAlone, TimesAreThoseOfCallsThatNobodyObserves) {
  ScriptedTarget target;
  target.launches = [](std::int64_t) { return std::vector<std::string>{"a", "b"}; };
  const auto ran = run_all(target, {.warmup = 2, .repeat = 3});
  EXPECT_EQ(target.calls, 1 + 2 + 2 + 2 * 3);  // counted, warm-up, a pair with an observed call, pairs
  EXPECT_EQ(target.traced_alone_calls, 3);
  EXPECT_EQ(ran.result.warmup, 2 + 2);
  EXPECT_EQ(ran.result.bare_ns, (std::vector<std::int64_t>{7, 7, 7}));
  ASSERT_EQ(ran.result.timed.size(), 3U);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto& pass = ran.result.timed[static_cast<std::size_t>(i)];
    const auto call = 1 + 2 + 2 + 2 * (i + 1);
    EXPECT_EQ(pass.wall_ns, 1'000 + call);
    EXPECT_EQ(pass.device->records[0].start_ns, call);
    EXPECT_EQ(ids(pass), (std::vector<LaunchId>{10, 11}));
    EXPECT_TRUE(same_work(pass, *ran.result.counting)) << "the ops of the observed call";
  }
  EXPECT_TRUE(texts(ran.result).empty());
}

TEST(TracedAlone, InAnotherOrderObservedCallsAreTimed) {
  ScriptedTarget target;
  // Call 5 is the first that is traced alone, 6 the observed one after it.
  target.launches = [](std::int64_t call) {
    return call == 5 ? std::vector<std::string>{"b", "a"} : std::vector<std::string>{"a", "b"};
  };
  const auto ran = run_all(target, {.warmup = 0, .repeat = 3});
  EXPECT_EQ(target.traced_alone_calls, 1);
  ASSERT_EQ(ran.result.timed.size(), 3U);
  EXPECT_EQ(ran.result.bare_ns.size(), 3U);
  for (const auto& pass : ran.result.timed) EXPECT_EQ(ids(pass), (std::vector<LaunchId>{10, 11}));
  ASSERT_EQ(ran.result.notes.size(), 1U);
  EXPECT_EQ(ran.result.notes[0].code, "order-differs");
}

TEST(TracedAlone, OtherWorkStopsTheTimingAndLeavesWhatWasTimed) {
  ScriptedTarget target;
  target.work = [](std::int64_t call) { return call >= 7 ? 2 : 1; };
  target.launches = [](std::int64_t call) { return std::vector<std::string>(call >= 7 ? 2 : 1, "a"); };
  const auto ran = run_all(target, {.warmup = 0, .repeat = 5});  // calls 2 and 3 are the observed pair, 5 and 7 alone
  ASSERT_EQ(ran.result.timed.size(), 1U);
  EXPECT_EQ(ran.result.timed[0].wall_ns, 1'005);
  ASSERT_EQ(ran.result.notes.size(), 1U);
  EXPECT_EQ(ran.result.notes[0].code, "timing-stopped");
  EXPECT_NE(ran.result.notes[0].text.find("after 1 repeat: a further call did other work"), std::string::npos);
}

TEST(TracedAlone, CallsThatCommunicateAreObserved) {
  ScriptedTarget target;
  target.communicates = true;
  target.launches = [](std::int64_t) { return std::vector<std::string>{"a"}; };
  const auto ran = run_all(target, {.warmup = 0, .repeat = 3});
  EXPECT_EQ(target.traced_alone_calls, 0);
  EXPECT_EQ(ran.result.timed.size(), 3U);
}

// ---- ranks, whose calls wait for each other

struct OneRank {
  std::string what;
  std::function<void(ScriptedTarget& target)> meets;
};

class RankLoop : public ::testing::TestWithParam<OneRank> {};

// The other ranks meet nothing of it, and make as many calls.
TEST_P(RankLoop, MakesAsManyCallsAsTheOthers) {
  for (const bool seen : {false, true}) {
    ScriptedTarget target;
    target.among_ranks = !seen;
    if (seen) target.group = {"group", "gloo", 2};
    GetParam().meets(target);
    const auto ran = run_all(target, {.time = 1h});
    EXPECT_EQ(target.calls, 1 + 3 + 2 * 5);
    EXPECT_FALSE(ran.result.timed.empty());
    EXPECT_FALSE(ran.raised);
    EXPECT_EQ(target.counter_runs, 0);
    EXPECT_FALSE(target.no_counters.empty());
    ASSERT_FALSE(ran.result.notes.empty());
    EXPECT_EQ(ran.result.notes.front().code, "fixed-calls");

    ScriptedTarget wish;
    wish.among_ranks = true;
    GetParam().meets(wish);
    run_all(wish, {.warmup = 1, .repeat = 2, .time = 1h});
    EXPECT_EQ(wish.calls, 1 + 1 + 2 * 2);

    ScriptedTarget bare;
    bare.among_ranks = true;
    GetParam().meets(bare);
    RunResult result;
    time_calls(bare, by_test_clock({.warmup = 4, .repeat = 6, .time = 1h}), result);
    EXPECT_EQ(bare.calls, 10);
    EXPECT_FALSE(result.bare_ns.empty());
  }
}

std::function<void(ScriptedTarget&)> working(std::function<std::int64_t(std::int64_t)> work) {
  return [work = std::move(work)](ScriptedTarget& target) { target.work = work; };
}
std::function<void(ScriptedTarget&)> compiling(std::function<bool(std::int64_t)> compiles) {
  return [compiles = std::move(compiles)](ScriptedTarget& target) { target.compiles = compiles; };
}

INSTANTIATE_TEST_SUITE_P(
    Meets, RankLoop,
    ::testing::Values(OneRank{"Nothing", [](ScriptedTarget&) {}},
                      OneRank{"SlowCalls",
                              [](ScriptedTarget& target) { target.script = [](std::int64_t) { clock_now += 10h; }; }},
                      OneRank{"OtherWorkLater", working([](std::int64_t call) { return call > 6 ? 2 : 1; })},
                      OneRank{"OtherWorkEachTime", working([](std::int64_t call) { return call; })},
                      OneRank{"OtherWorkInTheFirstCall", working([](std::int64_t call) { return call == 1 ? 2 : 1; })},
                      OneRank{"ACompilation", compiling([](std::int64_t call) { return call == 3; })},
                      OneRank{"CompilationsEachTime", compiling([](std::int64_t call) { return call > 1; })},
                      OneRank{"AnExecutor",
                              [](ScriptedTarget& target) {
                                target.executor = true;
                                target.work = [](std::int64_t call) { return call > 7 ? 2 : 1; };
                              }}),
    [](const auto& info) { return info.param.what; });

// The others wait for its next collective.
TEST(RanksOfTheLoop, AnExceptionComesThrough) {
  for (const std::int64_t at : {2, 5, 8}) {
    ScriptedTarget target;
    target.among_ranks = true;
    target.script = [&](std::int64_t call) {
      if (call == at) throw std::runtime_error("no");
    };
    const auto ran = run_all(target, {});
    EXPECT_TRUE(ran.raised);
    EXPECT_EQ(target.calls, at);
    EXPECT_EQ(target.undone, 1);
    EXPECT_TRUE(ran.result.counting);
  }
}

TEST(RanksOfTheLoop, OneRankAloneAndRanksThatDoNotExistAreNone) {
  for (const auto& group : {ProcessGroup{"group", "gloo", 1}, ProcessGroup{"group", "fake", 8}}) {
    ScriptedTarget target;
    target.group = group;
    const auto ran = run_all(target, {});
    EXPECT_EQ(target.calls, 1 + 3 + 2 * 10);
    EXPECT_TRUE(texts(ran.result).empty());
  }
}

// ---- compiled code

TEST(Compiling, PairsThatCompileAreWarmUp) {
  ScriptedTarget target;
  target.compiles = [](std::int64_t call) { return call == 2 || call == 5; };  // in the first and the second pair
  const auto ran = run_all(target, {.warmup = 0, .repeat = 2});
  EXPECT_EQ(ran.result.warmup, 4);
  EXPECT_EQ(ran.result.timed.size(), 2U);
  EXPECT_EQ(target.calls, 1 + 4 + 4);
}

TEST(Compiled, CodeIsComparedWithItsFirstTimedCall) {
  ScriptedTarget target;
  target.in_compiled_code = true;
  target.work = [](std::int64_t call) { return call == 1 ? 1 : 3; };
  EXPECT_EQ(run_all(target, {.warmup = 0, .repeat = 3}).result.timed.size(), 3U);

  ScriptedTarget changes;
  changes.in_compiled_code = true;
  changes.work = [](std::int64_t call) { return call > 4 ? 2 : 1; };
  const auto ran = run_all(changes, {.warmup = 0, .repeat = 3});
  EXPECT_EQ(ran.result.timed.size(), 1U);
  EXPECT_EQ(texts(ran.result).size(), 1U);
}

// ---- bare calls alone

RunResult time_all(ScriptedTarget& target, const RunLimits& limits) {
  RunResult result;
  time_calls(target, by_test_clock(limits), result);
  return result;
}

TEST(BareCalls, AreThoseForWarmUpAndTheTimedOnes) {
  ScriptedTarget target;
  const auto result = time_all(target, {.warmup = 2, .repeat = 3});
  EXPECT_EQ(result.warmup, 2);
  EXPECT_EQ(target.kept, (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(result.bare_ns, std::vector<std::int64_t>(3, 7));
  EXPECT_EQ(target.prepared, 5);
  EXPECT_TRUE(result.timed.empty());
  EXPECT_EQ(target.undone, 0) << "the caller undoes them";
}

TEST(BareCalls, HaveALimitOfTime) {
  ScriptedTarget target;
  target.script = [](std::int64_t) { clock_now += 10h; };
  const auto result = time_all(target, {.warmup = 50, .repeat = 200, .time = 55h, .warmup_share = 0.2});
  EXPECT_EQ(result.warmup, 2) << "those that begin within 11 hours";
  EXPECT_EQ(target.kept.size(), 4U) << "those that begin after 20, 30, 40 and 50 hours";
  ScriptedTarget slow;
  slow.script = target.script;
  EXPECT_EQ(time_all(slow, {.warmup = 0, .repeat = 5, .time = 1h}).bare_ns.size(), 1U);
}

TEST(BareCalls, ThatCompileAreWarmUp) {
  ScriptedTarget target;
  target.compiles = [](std::int64_t call) { return call == 2; };
  const auto result = time_all(target, {.warmup = 0, .repeat = 2, .time = 1min});
  EXPECT_EQ(result.warmup, 1);
  EXPECT_EQ(target.kept, (std::vector<std::int64_t>{1, 3}));

  ScriptedTarget first;
  first.compiles = [](std::int64_t call) { return call == 1; };
  first.bare_takes_its_time = true;
  EXPECT_EQ(time_all(first, {.warmup = 3, .repeat = 2, .time = 59min}).warmup, 3);

  ScriptedTarget always;
  always.compiles = [](std::int64_t) { return true; };
  EXPECT_EQ(time_all(always, {.warmup = 0, .repeat = 2}).warmup, 16);
}

// ---- TorchScript's executor

TEST(Executor, MayChangeItsMindInItsFirstCalls) {
  ScriptedTarget target;
  target.executor = true;
  target.work = [](std::int64_t call) { return std::min<std::int64_t>(call, 6); };  // timed: 3, 5, 6, 6, ...
  const auto ran = run_all(target, {.warmup = 0, .repeat = 2});
  EXPECT_EQ(ran.result.warmup, 4);
  EXPECT_EQ(ran.result.timed.size(), 2U);
  EXPECT_EQ(ran.result.bare_ns.size(), 2U);
  EXPECT_TRUE(texts(ran.result).empty());
}

// ---- counters, and what could not be put back

TEST(Counters, AreReadAfterTheTimedCalls) {
  ScriptedTarget target;
  EXPECT_TRUE(texts(run_all(target, {.warmup = 0, .repeat = 1}).result).empty());
  EXPECT_EQ(target.counter_runs, 1);

  ScriptedTarget raising;
  raising.counters_raise = true;
  EXPECT_EQ(texts(run_all(raising, {.warmup = 0, .repeat = 1}).result),
            std::vector<std::string>{"no counters: a call under them raised no counters here"});
}

// ---- other work on the processors

TEST(Lost, TensorsAreNamed) {
  ScriptedTarget target;
  target.could_not_put_back = 2;
  EXPECT_EQ(texts(run_all(target, {.warmup = 0, .repeat = 1}).result),
            std::vector<std::string>{
                "further calls wrote to 2 tensors that the first did not: they are not as it left them"});
}

}  // namespace
}  // namespace roofprof::run
