// Counters kernel by kernel, on the simulated device: what comes back is what each kernel was given. What real kernels
// count is in tests/python/collect/test_recorded_h100.py.
#include <tuple>
#include <vector>

#include "device/cupti/api.h"
#include "device/cupti/counted.h"

namespace roofprof::cupti {
namespace {

using KernelRanges = Counting;

TEST_F(KernelRanges, FlopsTakeFurtherPassesInWhichTheBodyRunsAgain) {
  fake_set("tensor_flops", 64);
  for (const bool flops : {false, true}) {
    int runs = 0;
    const CounterTrace trace = count_ranges({.executed_flops = flops}, [&](LaunchMarker* marker) {
      ++runs;
      EXPECT_EQ(marker, nullptr);
      launch(100, 10);
      launch(30);
    });
    // Of GH100: memory, SASS, and for each of six tensor types a run of its own, as no two fit one pass here.
    EXPECT_EQ(runs, flops ? 8 : 1);
    EXPECT_EQ(trace.passes, runs);
    EXPECT_EQ(trace.chip, "GH100");
    EXPECT_EQ(trace.ranges, CounterRanges::kernels);
    EXPECT_EQ(all_notes(trace), "");
    ASSERT_EQ(trace.records.size(), 2U);
    const std::vector<std::tuple<Counter, std::optional<double>, std::optional<double>>> expected = {
        {Counter::dram_read_bytes, 100, 30}, {Counter::dram_write_bytes, 10, 0}, {Counter::dram_bytes, 110, 30},
        {Counter::l2_bytes, 220, 60},        {Counter::l1_bytes, 330, 90},       {Counter::time_ns, 1000, 1000}};
    for (const auto& [counter, first, second] : expected) {
      EXPECT_EQ(value(trace.records[0], counter), first);
      EXPECT_EQ(value(trace.records[1], counter), second);
    }
    const auto known = [&](double number) { return flops ? std::optional(number) : std::nullopt; };
    EXPECT_EQ(value(trace.records[0], Counter::fp32_flops), known(100));
    EXPECT_EQ(value(trace.records[1], Counter::fp32_flops), known(30));
    EXPECT_EQ(value(trace.records[1], Counter::tensor_bf16_flops), known(64));
    EXPECT_EQ(value(trace.records[1], Counter::tensor_fp16_flops), known(0));
    EXPECT_EQ(missing(trace, Counter::tensor_fp4_flops),
              flops ? "this chip (GH100) has no tensor-core fp4 counter" : "(was not asked for)");
  }
}

TEST_F(KernelRanges, RunsThatLaunchDifferentlyAreNotJoined) {
  int runs = 0;
  const CounterTrace trace = count_ranges({.executed_flops = true}, [&](LaunchMarker*) {
    launch(100);
    if (++runs == 2) launch(1);  // the SASS pass
  });
  ASSERT_EQ(trace.records.size(), 1U);
  EXPECT_EQ(value(trace.records[0], Counter::fp32_flops), std::nullopt);
  EXPECT_EQ(value(trace.records[0], Counter::tensor_bf16_flops), 0);
  EXPECT_EQ(missing(trace, Counter::fp32_flops),
            "the code did not launch the same in each run: 1 ranges in the first one, 2 in that of this counter");
}

TEST_F(KernelRanges, RangesWithoutARoomAreReported) {
  const auto body = [](LaunchMarker*) {  // tells the marker of nothing
    for (int i = 0; i < 1300; ++i) launch(1);
  };
  EXPECT_EQ(count_ranges({}, body).records.size(), 1024U);
  EXPECT_EQ(count_ranges({}, body).dropped, 276);
  EXPECT_EQ(count_ranges({.expected_launches = 1150}, body).records.size(), 1300U) << "with a margin of an eighth";
}

// Ops of up to three kernels, the i-th of all with i bytes, in modules of ten ops: as an observer tells of them.
void ops_with_kernels(LaunchMarker* marker, int kernels) {
  int launched = 0;
  for (int op = 0; launched < kernels; ++op) {
    if (marker != nullptr && op % 10 == 0) marker->push(1000, LaunchLevel::module);
    if (marker != nullptr) marker->push(static_cast<LaunchId>(op), LaunchLevel::op);
    for (int i = 0; i < op % 4 && launched < kernels; ++i) launch(launched++);
    if (marker != nullptr) marker->pop(LaunchLevel::op);
    if (marker != nullptr && op % 10 == 9) marker->pop(LaunchLevel::module);
  }
}

TEST_F(KernelRanges, EachKernelIsCountedWhateverCuptiTakesAtATime) {
  for (const auto& of : {std::pair(700, 64), std::pair(700, 690), std::pair(1000, 250), {1000, 600}}) {
    const int kernels = of.first;
    const int most = of.second;
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
    EXPECT_SAYS("counters-in-rounds: CUPTI took ", all_notes(trace));
    if (most == 600) {
      EXPECT_SAYS("500 ranges at a time of 1141 that were asked for; a set", all_notes(trace));
    }
  }
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

// Some versions see no kernels without a pushed range; names are "0", "kernels/0" or nothing that can be read.
TEST_F(KernelRanges, AreFoundInAPushedRangeAndNumberedWhateverTheirNamesAre) {
  for (const bool needs_push : {false, true}) {
    for (const char* prefix : {"", "kernels/", "#"}) {
      fake_set("auto_range_needs_push", needs_push ? 1 : 0);
      fake_set_text("range_prefix", prefix);
      int runs = 0;
      const CounterTrace trace = count_ranges({.executed_flops = true, .expected_launches = 12}, [&](LaunchMarker*) {
        ++runs;
        for (int i = 0; i < 12; ++i) launch(i);
      });
      EXPECT_EQ(runs, needs_push ? 9 : 8) << "eight sets, and the first one twice";
      ASSERT_EQ(trace.records.size(), 12U);
      for (std::size_t i = 0; i < 12; ++i) {
        EXPECT_EQ(trace.records[i].range, i);
        EXPECT_EQ(value(trace.records[i], Counter::dram_bytes), i);
        EXPECT_EQ(value(trace.records[i], Counter::fp32_flops), i);
      }
    }
  }
}

TEST_F(KernelRanges, CopiesAndOtherDevicesAreNotCountedAndTheCurrentOneStays) {
  fake_set("devices", 2);
  const auto on_both = [](LaunchMarker*) {
    EXPECT_EQ(cuda::current_device(cuda::driver()), 0);
    launch(100);
    launch(1, 0, 1);
    fake_launch(FakeLaunch{.kind = FAKE_COPY});
  };
  for (const int device : {0, 1}) {
    const CounterTrace trace = count_ranges({.device = device}, on_both);
    EXPECT_EQ(bytes(trace), (Bytes{{0, device == 0 ? 100 : 1}}));
    EXPECT_EQ(cuda::current_device(cuda::driver()), 0);
    if (device == 1) {
      EXPECT_EQ(all_notes(trace),
                "counters-of-one-device: the counters are of cuda:1 alone; this process uses cuda:0 too\n");
    }
  }
}

TEST_F(KernelRanges, AThreadWithoutContextCountsOnTheDeviceInUse) {
  context_.reset();
  EXPECT_SAYS("no device is in use", (fake_reset(), count_message()));
  launch(1);  // makes device 0's context active, though not on this thread
  EXPECT_EQ(count_ranges({}, one_kernel).records.size(), 1U);
  EXPECT_EQ(cuda::current_context(cuda::driver()), nullptr);
}

TEST_F(KernelRanges, CodeThatLaunchesNothingHasNoRanges) {
  const CounterTrace trace = count_ranges({.executed_flops = true}, [](LaunchMarker*) {});
  EXPECT_TRUE(trace.records.empty());
  EXPECT_EQ(trace.passes, 8);
  EXPECT_EQ(missing(trace, Counter::fp32_flops), "");
}

// ---- what stands in the way: a sentence each, and nothing left behind

TEST_F(KernelRanges, EachErrorSaysWhatIsWrongAndLeavesNothing) {
  for (const auto& [function, code] :
       std::vector<std::pair<const char*, int>>{{"cuptiProfilerInitialize", CUPTI_ERROR_NOT_INITIALIZED},
                                                {"cuptiProfilerDeviceSupported", CUPTI_ERROR_NOT_SUPPORTED},
                                                {"cuptiDeviceGetChipName", CUPTI_ERROR_INVALID_DEVICE},
                                                {"cuptiProfilerHostInitialize", CUPTI_ERROR_INVALID_CHIP_NAME},
                                                {"cuptiProfilerHostGetBaseMetrics", CUPTI_ERROR_INVALID_PARAMETER},
                                                {"cuptiRangeProfilerEnable", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES},
                                                {"cuptiRangeProfilerGetCounterDataSize", CUPTI_ERROR_INVALID_PARAMETER},
                                                {"cuptiRangeProfilerCounterDataImageInitialize", CUPTI_ERROR_UNKNOWN},
                                                {"cuptiRangeProfilerSetConfig", CUPTI_ERROR_INVALID_PARAMETER},
                                                {"cuptiRangeProfilerStart", CUPTI_ERROR_HARDWARE_BUSY},
                                                {"cuptiRangeProfilerDecodeData", CUPTI_ERROR_UNKNOWN},
                                                {"cuptiRangeProfilerGetCounterDataInfo", CUPTI_ERROR_UNKNOWN},
                                                {"cuptiRangeProfilerCounterDataGetRangeInfo", CUPTI_ERROR_UNKNOWN},
                                                {"cuCtxSynchronize", 719}}) {
    fake_fail(function, code, 0);
    const std::string message = count_message();
    if (std::string(function) == "cuCtxSynchronize") {
      EXPECT_SAYS("waiting for cuda:0 (Simulated GPU) failed: the driver says error (719)", message);
    } else {  // loading_test.cpp has what each code means
      EXPECT_SAYS(CuptiError(function, code).what(), message);
    }
    expect_nothing_left();
    fake_fail(function, 0, 0);
    EXPECT_EQ(count_ranges({}, one_kernel).records.size(), 1U) << "and works again";
  }
}

TEST_F(KernelRanges, ADeviceThatIsNotSupportedSaysWhy) {
  for (const auto& [flag, words] :
       std::vector<std::pair<const char*, const char*>>{{"architecture", "compute capability 7.5"},
                                                        {"wsl", "the reason is Windows' Linux (WSL)"},
                                                        {"confidential_compute", "confidential computing"},
                                                        {"unnamed", "something that CUPTI does not name"}}) {
    fake_set_text("not_supported", flag);
    EXPECT_SAYS(words, count_message());
  }
}

TEST_F(KernelRanges, WhatCannotBeHadIsUnknownAndSaidToBe) {
  fake_fail("cuptiProfilerGetCounterAvailability", CUPTI_ERROR_UNKNOWN, 0);
  fake_fail("cuptiProfilerHostEvaluateToGpuValues", CUPTI_ERROR_INVALID_METRIC_NAME, 1);
  fake_set_text("refused_metric", "lts__");
  const CounterTrace trace = count_ranges({}, [](LaunchMarker*) {
    for (const int read : {5, 6, 7}) launch(read);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{0, 5}, {1, std::nullopt}, {2, std::nullopt}}));
  EXPECT_EQ(value(trace.records[0], Counter::l2_bytes), std::nullopt);
  EXPECT_SAYS("CUPTI_ERROR_INVALID_PARAMETER", missing(trace, Counter::l2_bytes));
  EXPECT_SAYS("which counters this system allows is not known: ", all_notes(trace));
  EXPECT_SAYS("CUPTI could not work out counters of 2 of 3 ranges (CUPTI_ERROR_INVALID_METRIC_NAME)", all_notes(trace));
}

TEST_F(KernelRanges, WhenALaterSetFailsTheFirstRemains) {
  fake_fail("cuptiRangeProfilerEnable", CUPTI_ERROR_UNKNOWN, 1);  // from the SASS pass on
  const CounterTrace trace = count_ranges({.executed_flops = true}, one_kernel);
  EXPECT_EQ(bytes(trace), (Bytes{{0, 5}}));
  EXPECT_EQ(value(trace.records[0], Counter::fp32_flops), std::nullopt);
  EXPECT_SAYS("cuptiRangeProfilerEnable", missing(trace, Counter::fp32_flops));
  EXPECT_NE(missing(trace, Counter::tensor_int8_ops), "");
  EXPECT_EQ(missing(trace, Counter::dram_bytes), "");
}

TEST_F(KernelRanges, AProfilerThatCannotStopIsSwitchedOffAllTheSame) {
  fake_fail("cuptiRangeProfilerStop", CUPTI_ERROR_UNKNOWN, 0);
  EXPECT_SAYS("cuptiRangeProfilerStop", count_message());
  disabled_while_counting_ = 1;  // there was no other way
}

TEST_F(KernelRanges, PassesWithoutEndAreEnded) {
  fake_set("endless_passes", 1);
  EXPECT_SAYS("CUPTI announced 1 passes and asks for more", count_message());
}

struct ModelsOwn {
  int value = 0;
};

TEST_F(KernelRanges, WhatTheBodyThrowsComesThroughAsItWas) {
  for (const CounterRanges ranges : {CounterRanges::kernels, CounterRanges::modules}) {
    for (const int failing_run : {1, 2, 5}) {
      int runs = 0;
      try {
        count_ranges({.executed_flops = true, .ranges = ranges}, [&](LaunchMarker* marker) {
          if (marker != nullptr) marker->push(3, LaunchLevel::module);
          launch(1);
          if (++runs == failing_run) throw ModelsOwn{42};
          if (marker != nullptr) marker->pop(LaunchLevel::module);
        });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const ModelsOwn& thrown) {
        EXPECT_EQ(thrown.value, 42);
      }
      EXPECT_EQ(runs, failing_run);
      expect_nothing_left();
    }
  }
}

}  // namespace
}  // namespace roofprof::cupti
