// Counters kernel by kernel, on the simulated device: what comes back is what each kernel was given.
#include <tuple>

#include "device/cupti/counted.h"

namespace roofprof::cupti {
namespace {

using KernelRanges = Counting;

TEST_F(KernelRanges, EachKernelHasItsOwnMemoryCounters) {
  int runs = 0;
  const CounterTrace trace = count_ranges({}, [&](LaunchMarker* marker) {
    ++runs;
    EXPECT_EQ(marker, nullptr);
    launch(100, 10);
    launch(7, 0);
  });
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(trace.passes, 1);
  EXPECT_EQ(trace.chip, "GH100");
  EXPECT_EQ(trace.ranges, CounterRanges::kernels);
  EXPECT_EQ(trace.dropped, 0);
  EXPECT_TRUE(trace.notes.empty());
  ASSERT_EQ(trace.records.size(), 2U);
  EXPECT_EQ(trace.records[0].range, 0U);
  EXPECT_EQ(trace.records[1].range, 1U);
  EXPECT_EQ(value(trace.records[0], Counter::dram_read_bytes), 100);
  EXPECT_EQ(value(trace.records[0], Counter::dram_write_bytes), 10);
  EXPECT_EQ(value(trace.records[0], Counter::dram_bytes), 110);
  EXPECT_EQ(value(trace.records[0], Counter::l2_bytes), 220);
  EXPECT_EQ(value(trace.records[0], Counter::l1_bytes), 330);
  EXPECT_EQ(value(trace.records[0], Counter::time_ns), 1000);
  EXPECT_EQ(value(trace.records[1], Counter::dram_bytes), 7);
  EXPECT_EQ(value(trace.records[1], Counter::fp32_flops), std::nullopt);  // was not asked for
  ASSERT_EQ(trace.sources.size(), 6U);
  EXPECT_EQ(source(trace, Counter::l2_bytes).formula, "lts__t_bytes.sum");
}

TEST_F(KernelRanges, FlopsTakeFurtherPassesInWhichTheBodyRunsAgain) {
  fake_set("tensor_flops", 64);
  int runs = 0;
  const CounterTrace trace = count_ranges({.executed_flops = true}, [&](LaunchMarker*) {
    ++runs;
    launch(100, 10);
    launch(30, 0);
  });
  // Of GH100: memory, SASS, and for each of six tensor types a run of its own, as no two fit one pass here.
  EXPECT_EQ(runs, 8);
  EXPECT_EQ(trace.passes, 8);
  ASSERT_EQ(trace.records.size(), 2U);
  EXPECT_EQ(value(trace.records[0], Counter::dram_bytes), 110);
  EXPECT_EQ(value(trace.records[0], Counter::fp32_flops), 100);
  EXPECT_EQ(value(trace.records[1], Counter::fp32_flops), 30);
  EXPECT_EQ(value(trace.records[1], Counter::fp64_flops), 0);
  EXPECT_EQ(value(trace.records[1], Counter::tensor_bf16_flops), 64);
  EXPECT_EQ(value(trace.records[1], Counter::tensor_fp16_flops), 0);
  EXPECT_EQ(value(trace.records[1], Counter::tensor_fp4_flops), std::nullopt);
  EXPECT_EQ(source(trace, Counter::tensor_fp4_flops).missing, "this chip (GH100) has no tensor-core fp4 counter");
}

TEST_F(KernelRanges, RunsThatLaunchDifferentlyAreNotJoined) {
  int runs = 0;
  const CounterTrace trace = count_ranges({.executed_flops = true}, [&](LaunchMarker*) {
    launch(100, 0);
    if (++runs == 2) launch(1, 0);  // the SASS pass
  });
  ASSERT_EQ(trace.records.size(), 1U);
  EXPECT_EQ(value(trace.records[0], Counter::dram_bytes), 100);
  EXPECT_EQ(value(trace.records[0], Counter::fp32_flops), std::nullopt);
  EXPECT_EQ(value(trace.records[0], Counter::tensor_bf16_flops), 0);
  EXPECT_EQ(source(trace, Counter::fp32_flops).missing,
            "the code did not launch the same in each run: 1 ranges in the first one, 2 in that of this counter");
  EXPECT_EQ(source(trace, Counter::tensor_bf16_flops).missing, "");
}

TEST_F(KernelRanges, RangesWithoutARoomAreReported) {
  const auto body = [](LaunchMarker*) {  // tells the marker of nothing
    for (int i = 0; i < 1300; ++i) launch(1, 0);
  };
  const CounterTrace few = count_ranges({}, body);
  EXPECT_EQ(few.records.size(), 1024U);
  EXPECT_EQ(few.dropped, 276);
  const CounterTrace enough = count_ranges({.expected_launches = 1150}, body);  // and a margin of an eighth
  EXPECT_EQ(enough.records.size(), 1300U);
  EXPECT_EQ(enough.dropped, 0);
  EXPECT_TRUE(enough.notes.empty());
}

// Ops of up to three kernels, the i-th of all with i bytes, in modules of ten ops: as an observer tells of them.
void ops_with_kernels(LaunchMarker* marker, int kernels) {
  int launched = 0;
  for (int op = 0; launched < kernels; ++op) {
    if (marker != nullptr && op % 10 == 0) marker->push(1000, LaunchLevel::module);
    if (marker != nullptr) marker->push(static_cast<LaunchId>(op), LaunchLevel::op);
    for (int i = 0; i < op % 4 && launched < kernels; ++i) launch(launched++, 0);
    if (marker != nullptr) marker->pop(LaunchLevel::op);
    if (marker != nullptr && op % 10 == 9) marker->pop(LaunchLevel::module);
  }
}

class KernelRounds : public Counting, public testing::WithParamInterface<std::tuple<int, int>> {};

TEST_P(KernelRounds, EachKernelIsCountedWhateverCuptiTakesAtATime) {
  const auto [kernels, most] = GetParam();
  fake_set("most_ranges", most);
  int runs = 0;
  const CounterTrace trace = count_ranges({.expected_launches = kernels}, [&](LaunchMarker* marker) {
    ++runs;
    ops_with_kernels(marker, kernels);
  });
  ASSERT_EQ(trace.records.size(), kernels);
  EXPECT_EQ(trace.dropped, 0);
  for (int i = 0; i < kernels; ++i) {
    ASSERT_EQ(trace.records[i].range, i);
    ASSERT_EQ(value(trace.records[i], Counter::dram_bytes), i);
  }
  EXPECT_EQ(trace.passes, runs);
  EXPECT_LE(runs, 4 * kernels / most + 8);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_EQ(trace.notes[0].code, "counters-in-rounds");
}

INSTANTIATE_TEST_SUITE_P(Sizes, KernelRounds,
                         testing::Combine(testing::Values(700, 1000), testing::Values(64, 250, 500, 690)));

TEST_F(KernelRanges, WhatWasAcceptedIsRecorded) {
  fake_set("most_ranges", 600);
  const CounterTrace trace =
      count_ranges({.expected_launches = 1000}, [](LaunchMarker* marker) { ops_with_kernels(marker, 1000); });
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_SAYS("CUPTI took 500 ranges at a time of 1141 that were asked for; a set of counters took",
              trace.notes[0].text);
}

TEST_F(KernelRanges, ARunOfOtherLaunchesEndsTheRounds) {
  fake_set("most_ranges", 100);
  int runs = 0;
  const CounterTrace trace = count_ranges(
      {.expected_launches = 400}, [&](LaunchMarker* marker) { ops_with_kernels(marker, runs++ == 0 ? 400 : 4000); });
  EXPECT_EQ(trace.records.size(), 100U);
  EXPECT_EQ(trace.dropped, 300);
  EXPECT_EQ(runs, 2);
}

TEST_F(KernelRanges, KernelsThatNeedAPushedRangeGetOne) {
  fake_set("auto_range_needs_push", 1);
  for (const char* names : {"number", "nested", "odd"}) {
    fake_set_text("auto_range_names", names);
    int runs = 0;
    const auto body = [&](LaunchMarker*) {
      ++runs;
      launch(100, 0);
      launch(7, 0);
    };
    const CounterTrace trace = count_ranges({.executed_flops = true, .expected_launches = 2}, body);
    EXPECT_EQ(runs, 9) << "eight sets, and the first one twice";
    ASSERT_EQ(trace.records.size(), 2U);
    EXPECT_EQ(value(trace.records[0], Counter::dram_bytes), 100);
    EXPECT_EQ(value(trace.records[1], Counter::dram_bytes), 7);
    EXPECT_EQ(value(trace.records[1], Counter::fp32_flops), 7);
    EXPECT_TRUE(trace.notes.empty());
  }
}

TEST_F(KernelRanges, TheNumberOfARangeIsAboutLaunchesNotText) {
  for (const char* names : {"number", "nested", "odd"}) {
    fake_set_text("auto_range_names", names);
    const CounterTrace trace = count_ranges({}, [](LaunchMarker*) {
      for (int i = 0; i < 12; ++i) launch(i, 0);
    });
    ASSERT_EQ(trace.records.size(), 12U);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(trace.records[i].range, i);
      EXPECT_EQ(value(trace.records[i], Counter::dram_bytes), i) << names;
    }
  }
}

TEST_F(KernelRanges, AMetricThatTheSystemRefusesIsLeftOutWithTheReason) {
  fake_set_text("refused_metric", "lts__");
  const CounterTrace trace = count_ranges({}, [](LaunchMarker*) { launch(100, 10); });
  EXPECT_NE(source(trace, Counter::l2_bytes).missing.find("CUPTI_ERROR_INVALID_PARAMETER"), std::string::npos)
      << source(trace, Counter::l2_bytes).missing;
  EXPECT_EQ(value(trace.records.at(0), Counter::l2_bytes), std::nullopt);
  EXPECT_EQ(value(trace.records.at(0), Counter::dram_bytes), 110);
}

TEST_F(KernelRanges, CopiesAndOtherDevicesAreNotCounted) {
  fake_set("devices", 2);
  const CounterTrace trace = count_ranges({}, [](LaunchMarker*) {
    launch(100, 0);
    launch(1, 0, 1);
    FakeLaunch copy{};
    copy.kind = FAKE_COPY;
    fake_launch(&copy);
  });
  EXPECT_EQ(trace.records.size(), 1U);
}

TEST_F(KernelRanges, OtherDevicesInUseAreNamed) {
  fake_set("devices", 2);
  const cuda::Driver driver = cuda::open_driver();
  const cuda::PrimaryContext current(driver, 1);
  const CounterTrace trace = count_ranges({}, [](LaunchMarker*) { launch(5, 0, 1); });
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_EQ(trace.notes[0].text, "the counters are of cuda:1 alone; this process uses cuda:0 too");
  EXPECT_EQ(trace.records.size(), 1U);
}

TEST_F(KernelRanges, TheDeviceThatIsAskedForIsCountedAndTheCurrentOneStays) {
  fake_set("devices", 2);
  launch(1, 0, 1);  // device 1 is in use; 0 is current
  const CounterTrace trace = count_ranges({.device = 1}, [](LaunchMarker*) {
    EXPECT_EQ(cuda::current_device(cuda::driver()), 0);
    launch(5, 0, 1);
    launch(6, 0, 0);
  });
  ASSERT_EQ(trace.records.size(), 1U);
  EXPECT_EQ(value(trace.records[0], Counter::dram_bytes), 5);
  EXPECT_EQ(cuda::current_device(cuda::driver()), 0);
}

TEST_F(KernelRanges, AThreadWithoutContextCountsOnTheDeviceInUse) {
  context_.reset();
  launch(1, 0);  // makes device 0's context active, though not on this thread
  const CounterTrace trace = count_ranges({}, [](LaunchMarker*) { launch(5, 0); });
  EXPECT_EQ(trace.records.size(), 1U);
  EXPECT_EQ(cuda::current_context(cuda::driver()), nullptr);
}

TEST_F(KernelRanges, CodeThatLaunchesNothingHasNoRanges) {
  const CounterTrace trace = count_ranges({.executed_flops = true}, [](LaunchMarker*) {});
  EXPECT_TRUE(trace.records.empty());
  EXPECT_EQ(trace.passes, 8);
  EXPECT_EQ(source(trace, Counter::fp32_flops).missing, "");
}

}  // namespace
}  // namespace roofprof::cupti
