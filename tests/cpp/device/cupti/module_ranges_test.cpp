// Counters module by module, on the simulated device, which takes one flat range at a time and no name twice.
#include "device/cupti/range_session.h"

#include <future>
#include <map>
#include <thread>

#include "device/cupti/counted.h"

namespace roofprof::cupti {
namespace {

using ModuleRangesOfARun = Counting;

constexpr CounterRequest kModules = {.ranges = CounterRanges::modules};

void enter(LaunchMarker* marker, LaunchId module) { marker->push(module, LaunchLevel::module); }
void leave(LaunchMarker* marker) { marker->pop(LaunchLevel::module); }

// DRAM bytes by module.
std::map<LaunchId, std::optional<double>> bytes(const CounterTrace& trace) {
  std::map<LaunchId, std::optional<double>> found;
  for (const CounterRecord& record : trace.records) found[record.range] = value(record, Counter::dram_bytes);
  return found;
}

using Bytes = std::map<LaunchId, std::optional<double>>;

TEST_F(ModuleRangesOfARun, ALaunchCountsInItsInnermostModule) {
  const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
    ASSERT_NE(marker, nullptr);
    launch(1, 0);  // outside
    enter(marker, 10);
    launch(100, 0);
    marker->push(77, LaunchLevel::op);  // ops have no ranges
    launch(200, 0);
    enter(marker, 11);
    launch(1000, 0);
    leave(marker);
    launch(400, 0);
    marker->pop(LaunchLevel::op);
    leave(marker);
    enter(marker, 11);  // called once more
    launch(2000, 0);
    leave(marker);
    launch(2, 0);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 3}, {10, 700}, {11, 3000}}));
  EXPECT_EQ(trace.ranges, CounterRanges::modules);
  EXPECT_EQ(trace.passes, 1);
  EXPECT_TRUE(trace.notes.empty());
}

TEST_F(ModuleRangesOfARun, EmptyRangesMayBeReportedOrNot) {
  for (const bool reported : {true, false}) {
    fake_set("empty_ranges", reported ? 1 : 0);
    const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
      enter(marker, 1);
      enter(marker, 2);
      launch(5, 0);
      leave(marker);
      leave(marker);
    });
    const Bytes all = {{kNoLaunch, 0}, {1, 0}, {2, 5}};
    EXPECT_EQ(bytes(trace), reported ? all : (Bytes{{2, 5}}));
  }
}

TEST_F(ModuleRangesOfARun, AModuleInsideItselfStaysInOneRange) {
  const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
    enter(marker, 1);
    enter(marker, 1);
    launch(5, 0);
    leave(marker);
    launch(6, 0);
    leave(marker);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 0}, {1, 11}}));
  EXPECT_EQ(fake_calls("cuptiRangeProfilerPushRange"), 3);  // outside, the module, outside
}

TEST_F(ModuleRangesOfARun, APassMoreRunsTheBodyOnceMoreAndCountsTheSame) {
  int runs = 0;
  const CounterTrace trace = count_ranges({.memory = false, .executed_flops = true, .ranges = CounterRanges::modules},
                                          [&](LaunchMarker* marker) {
                                            ++runs;
                                            enter(marker, 1);
                                            launch(5, 0);
                                            leave(marker);
                                          });
  // SASS, six tensor types; fp16 and int8 take two passes each, which are the body's to repeat.
  EXPECT_EQ(runs, 9);
  EXPECT_EQ(trace.passes, 9);
  ASSERT_EQ(trace.records.size(), 2U);
  EXPECT_EQ(value(trace.records[1], Counter::fp32_flops), 5);
  EXPECT_EQ(value(trace.records[1], Counter::tensor_fp16_flops), 0);
}

TEST_F(ModuleRangesOfARun, AModuleThatIsNotThereInEachPassIsUnknown) {
  int runs = 0;
  const CounterTrace trace = count_ranges({.memory = false, .executed_flops = true, .ranges = CounterRanges::modules},
                                          [&](LaunchMarker* marker) {
                                            enter(marker, ++runs == 3 ? 2 : 1);  // the second pass of tensor fp16
                                            launch(5, 0);
                                            leave(marker);
                                          });
  EXPECT_EQ(value(trace.records[1], Counter::fp32_flops), 5);
  EXPECT_EQ(value(trace.records[1], Counter::tensor_bf16_flops), 0);
  EXPECT_EQ(value(trace.records[1], Counter::tensor_fp16_flops), std::nullopt);
  EXPECT_NE(source(trace, Counter::tensor_fp16_flops).missing, "");
}

TEST_F(ModuleRangesOfARun, AThreadOfItsOwnReturnsToTheModuleThatIsStillOpen) {
  const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
    enter(marker, 1);
    launch(100, 0);
    std::thread([marker] {  // as autograd's, while the caller waits
      enter(marker, 2);
      enter(marker, 3);
      launch(10, 0);
      leave(marker);
      launch(20, 0);
      leave(marker);
    })
        .join();
    launch(200, 0);
    leave(marker);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 0}, {1, 300}, {2, 20}, {3, 10}}));
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_EQ(trace.notes[0].text,
            "several threads were in modules at once: what they launched counts for the module that was entered last, "
            "and while one range gives way to another for none");
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
      launch(10, 0);  // still in 2
      leave(marker);
    });
    entered.get_future().wait();
    leave(marker);  // of 1, while 2 is the one entered last
    left.set_value();
    other.join();
    launch(1, 0);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 1}, {1, 0}, {2, 10}}));
}

TEST_F(ModuleRangesOfARun, ThreadsAtOnceKeepTheRangesInOrder) {
  constexpr int kTimes = 200;
  const auto body = [](LaunchMarker* marker) {
    const auto work = [marker](LaunchId module) {
      for (int i = 0; i < kTimes; ++i) {
        enter(marker, module);
        launch(1, 0);
        leave(marker);
      }
    };
    std::thread first(work, 1);
    std::thread second(work, 2);
    first.join();
    second.join();
    launch(1000, 0);
  };
  const CounterTrace trace = count_ranges({.ranges = CounterRanges::modules, .expected_launches = 4 * kTimes}, body);
  double sum = 0;
  for (const auto& [module, counted] : bytes(trace)) sum += counted.value_or(0);
  EXPECT_LE(sum, 1000 + 2 * kTimes);
  EXPECT_GE(sum, 1000 + kTimes);  // while the one thread changes ranges, few of the other's launches can be lost
  EXPECT_GE(bytes(trace).at(kNoLaunch).value_or(0), 1000);
  EXPECT_EQ(trace.dropped, 0);
}

// A module once, and another one so often that its ranges need several rounds.
void enter_often(LaunchMarker* marker) {
  enter(marker, 1);
  launch(5, 0);
  leave(marker);
  for (int i = 0; i < 1100; ++i) {
    enter(marker, 2);
    launch(1, 0);
    leave(marker);
  }
}

TEST_F(ModuleRangesOfARun, MoreRangesThanThereIsRoomForTakeSeveralRounds) {
  for (const int most : {0, 200}) {
    fake_set("most_ranges", most);
    int runs = 0;
    const CounterTrace trace = count_ranges(kModules, [&](LaunchMarker* marker) {
      ++runs;
      enter_often(marker);
    });
    EXPECT_EQ(trace.dropped, 0);
    EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 0}, {1, 5}, {2, 1100}}));
    EXPECT_EQ(runs, most == 0 ? 3 : 18);  // 2,203 ranges: 1,024 at a time, or 128
    ASSERT_EQ(trace.notes.size(), 1U);
    EXPECT_EQ(trace.notes[0].code, "counters-in-rounds");
  }
}

TEST_F(ModuleRangesOfARun, AModuleWhoseRangeHadNoRoomIsUnknown) {
  int runs = 0;
  const CounterTrace trace = count_ranges(kModules, [&](LaunchMarker* marker) {
    enter_often(marker);
    if (++runs > 1) enter(marker, 3);  // another run: it cannot be put together with the first one
  });
  EXPECT_GT(trace.dropped, 0);
  const Bytes found = bytes(trace);
  EXPECT_EQ(found.at(1), 5);
  EXPECT_EQ(found.at(2), std::nullopt);  // 1,100 x 1, of which some were lost
}

TEST_F(ModuleRangesOfARun, AMarkerWithoutAPassIsIgnored) {
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
  const auto body = [](LaunchMarker* marker) {
    enter(marker, 1);
    launch(5, 0);
    leave(marker);
  };
  const std::string message = message_of<CollectorError>([&] { count_ranges(kModules, body); });
  EXPECT_NE(message.find("cuptiRangeProfilerPushRange"), std::string::npos) << message;
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

}  // namespace
}  // namespace roofprof::cupti
