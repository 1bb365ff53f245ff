// Counters module by module, on the simulated device, which takes one flat range at a time and no name twice; and a
// session of CUPTI's by itself.
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "device/cupti/api.h"
#include "device/cupti/counted.h"
#include "device/cupti/range_session.h"

namespace roofprof::cupti {
namespace {

using ModuleRangesOfARun = Counting;

constexpr CounterRequest kModules = {.ranges = CounterRanges::modules};
constexpr CounterRequest kFlops = {.memory = false, .executed_flops = true, .ranges = CounterRanges::modules};

void enter(LaunchMarker* marker, LaunchId module) { marker->push(module, LaunchLevel::module); }
void leave(LaunchMarker* marker) { marker->pop(LaunchLevel::module); }
void call(LaunchMarker* marker, LaunchId module, double read) {
  enter(marker, module);
  launch(read);
  leave(marker);
}

TEST_F(ModuleRangesOfARun, ALaunchCountsInItsInnermostModule) {
  const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
    ASSERT_NE(marker, nullptr);
    launch(1);  // outside
    enter(marker, 10);
    launch(100);
    marker->push(77, LaunchLevel::op);  // ops have no ranges
    launch(200);
    call(marker, 11, 1000);
    launch(400);
    marker->pop(LaunchLevel::op);
    leave(marker);
    call(marker, 11, 2000);  // called once more
    launch(2);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 3}, {10, 700}, {11, 3000}}));
  EXPECT_EQ(trace.ranges, CounterRanges::modules);
  EXPECT_EQ(trace.passes, 1);
  EXPECT_EQ(all_notes(trace), "");
}

TEST_F(ModuleRangesOfARun, EmptyRangesMayBeReportedOrNot) {
  for (const bool reported : {true, false}) {
    fake_set("empty_ranges", reported ? 1 : 0);
    const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
      enter(marker, 1);
      call(marker, 2, 5);
      leave(marker);
    });
    EXPECT_EQ(bytes(trace), reported ? (Bytes{{kNoLaunch, 0}, {1, 0}, {2, 5}}) : (Bytes{{2, 5}}));
  }
}

TEST_F(ModuleRangesOfARun, AModuleInsideItselfStaysInOneRange) {
  const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
    enter(marker, 1);
    call(marker, 1, 5);
    launch(6);
    leave(marker);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 0}, {1, 11}}));
  EXPECT_EQ(fake_calls("cuptiRangeProfilerPushRange"), 3);  // outside, the module, outside
}

// SASS, six tensor types; fp16 and int8 take two passes each, which are the body's to repeat. A module that is not
// there in each pass is unknown.
TEST_F(ModuleRangesOfARun, APassMoreRunsTheBodyOnceMoreAndCountsTheSame) {
  for (const int other_run : {0, 3}) {  // the second pass of tensor fp16
    int runs = 0;
    const CounterTrace trace =
        count_ranges(kFlops, [&](LaunchMarker* marker) { call(marker, ++runs == other_run ? 2 : 1, 5); });
    EXPECT_EQ(runs, 9);
    EXPECT_EQ(trace.passes, 9);
    ASSERT_EQ(trace.records.size(), 2U);
    EXPECT_EQ(value(trace.records[1], Counter::fp32_flops), 5);
    EXPECT_EQ(value(trace.records[1], Counter::tensor_bf16_flops), 0);
    EXPECT_EQ(value(trace.records[1], Counter::tensor_fp16_flops), other_run == 0 ? std::optional(0.0) : std::nullopt);
    EXPECT_EQ(missing(trace, Counter::tensor_fp16_flops).empty(), other_run == 0);
  }
}

TEST_F(ModuleRangesOfARun, AThreadOfItsOwnReturnsToTheModuleThatIsStillOpen) {
  const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
    enter(marker, 1);
    launch(100);
    std::thread([marker] {  // as autograd's, while the caller waits
      enter(marker, 2);
      call(marker, 3, 10);
      launch(20);
      leave(marker);
    })
        .join();
    launch(200);
    leave(marker);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 0}, {1, 300}, {2, 20}, {3, 10}}));
  EXPECT_SAYS("counters-between-threads: several threads were in modules at once", all_notes(trace));
}

TEST_F(ModuleRangesOfARun, ThreadsThatLeaveInAnyOrderLeaveTheirOwnModules) {
  const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
    std::promise<void> entered;
    std::promise<void> left;
    enter(marker, 1);
    std::thread other([&] {
      enter(marker, 2);
      entered.set_value();
      left.get_future().wait();
      launch(10);  // still in 2
      leave(marker);
    });
    entered.get_future().wait();
    leave(marker);  // of 1, while 2 is the one entered last
    left.set_value();
    other.join();
    launch(1);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 1}, {1, 0}, {2, 10}}));
}

TEST_F(ModuleRangesOfARun, ThreadsAtOnceKeepTheRangesInOrder) {
  constexpr int kTimes = 200;
  const CounterTrace trace =
      count_ranges({.ranges = CounterRanges::modules, .expected_launches = 4 * kTimes}, [](LaunchMarker* marker) {
        const auto work = [marker](LaunchId module) {
          for (int i = 0; i < kTimes; ++i) call(marker, module, 1);
        };
        std::thread first(work, 1);
        std::thread second(work, 2);
        first.join();
        second.join();
        launch(1000);
      });
  double sum = 0;
  for (const auto& [module, counted] : bytes(trace)) sum += counted.value_or(0);
  EXPECT_LE(sum, 1000 + 2 * kTimes);
  EXPECT_GE(sum, 1000 + kTimes);  // while the one thread changes ranges, few of the other's launches can be lost
  EXPECT_GE(bytes(trace).at(kNoLaunch).value_or(0), 1000);
  EXPECT_EQ(trace.dropped, 0);
}

// A module once, and another one so often that its ranges, 2,203 in all, need several rounds: of 1,024, or of 128.
TEST_F(ModuleRangesOfARun, MoreRangesThanThereIsRoomForTakeSeveralRoundsIfAllRunsAreAlike) {
  for (const bool alike : {true, false}) {
    for (const int most : {0, 200}) {
      fake_set("most_ranges", most);
      int runs = 0;
      const CounterTrace trace = count_ranges(kModules, [&](LaunchMarker* marker) {
        call(marker, 1, 5);
        const int times = ++runs > 1 && !alike ? 1101 : 1100;
        for (int i = 0; i < times; ++i) call(marker, 2, 1);
      });
      EXPECT_SAYS("counters-in-rounds", all_notes(trace));
      if (alike) {
        EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 0}, {1, 5}, {2, 1100}}));
        EXPECT_EQ(runs, most == 0 ? 3 : 18);
        EXPECT_EQ(trace.dropped, 0);
      } else {  // what is left stays unknown
        EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, std::nullopt}, {1, 5}, {2, std::nullopt}}));
        EXPECT_EQ(runs, 2);
        EXPECT_EQ(trace.dropped, 2203 - (most == 0 ? 1024 : 128));
      }
    }
  }
}

TEST_F(ModuleRangesOfARun, MarkersOutsideOfAPassDoNothing) {
  LaunchMarker* kept = nullptr;
  count_ranges(kModules, [&](LaunchMarker* marker) {
    leave(marker);  // of a module that was entered before
    kept = marker;
    enter(marker, 1);  // and never left
  });
  EXPECT_NE(kept, nullptr);
}

TEST_F(ModuleRangesOfARun, ARangeThatCannotBeOpenedEndsTheCounting) {
  fake_fail("cuptiRangeProfilerPushRange", CUPTI_ERROR_OUT_OF_MEMORY, 1);
  EXPECT_SAYS("cuptiRangeProfilerPushRange", message_of<CollectorError>([] {
                count_ranges(kModules, [](LaunchMarker* marker) { call(marker, 1, 5); });
              }));
}

TEST(RangeNames, AreReadBack) {
  const auto module = read_range_name(range_name(7, 123));
  ASSERT_TRUE(module);
  EXPECT_EQ(module->ordinal, 7U);
  EXPECT_EQ(module->id, 123U);
  EXPECT_EQ(read_range_name("12")->ordinal, 12U);  // of a kernel
  EXPECT_EQ(read_range_name("kernels/12")->ordinal, 12U);
  EXPECT_EQ(read_range_name("a/3:4/5:6")->id, 6U);
  for (const char* foreign : {"", "forward", "3:", "3:x", ":3", "3 ", "3/"}) EXPECT_FALSE(read_range_name(foreign));
}

// ---- one session

using Session = Counting;

TEST_F(Session, EndsCleanlyAtAnyStepAndTakesTheRoomsThatItIsGiven) {
  const ProfilerLibrary library(api());
  {
    const HostProfiler host(api(), "GH100");
    EXPECT_TRUE(host.has("dram__bytes"));
    EXPECT_FALSE(host.has("dram__bytes.sum"));
    EXPECT_EQ(supported_chips(api()), std::vector<std::string>{"GH100"});
    const Configuration configuration(host, {"dram__bytes.sum"});
    auto* const context = static_cast<CUcontext>(context_->get());
    const auto open = [&](RangeRooms rooms) {
      return std::make_unique<RangeSession>(configuration, context, RangeMode::kernels, rooms);
    };
    for (int steps = 0; steps < 3; ++steps) {
      const auto session = open({4, 4});
      EXPECT_THROW(open({4, 4}), CuptiError) << "one at a time";
      EXPECT_THROW(counter_availability(api(), context), CuptiError);
      if (steps > 0) session->start();
      EXPECT_TRUE(steps < 2 || session->stop());
    }
    // What is wanted, then what is needed, then half of that each time; fewer than 16 are not tried.
    for (const int refusal : {7, 8}) {
      fake_set("most_ranges_error", refusal);
      for (const auto& [most, taken] : {std::pair(0, 1150), std::pair(1149, 1000), std::pair(999, 500), {300, 250}}) {
        fake_set("most_ranges", most);
        EXPECT_EQ(open({1150, 1000})->rooms(), taken) << most;
      }
      fake_set("most_ranges", 15);
      EXPECT_THROW(open({1150, 1000}), CuptiError) << "it is not their number then";
      EXPECT_EQ(fake_live("range_profiler"), 0);
    }
    fake_set("most_ranges_error", CUPTI_ERROR_INVALID_PARAMETER);
    const long long before = fake_calls("cuptiRangeProfilerSetConfig");
    EXPECT_THROW(open({1150, 1000}), CuptiError);
    EXPECT_EQ(fake_calls("cuptiRangeProfilerSetConfig") - before, 1) << "another refusal is none of numbers";
  }
}

}  // namespace
}  // namespace roofprof::cupti
