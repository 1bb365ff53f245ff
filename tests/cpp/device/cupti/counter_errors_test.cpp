// What stands in the way of counters, one by one: a sentence each, and nothing left behind.
#include <array>

#include "device/cupti/api.h"
#include "device/cupti/counted.h"

namespace roofprof::cupti {
namespace {

using CounterErrors = Counting;

constexpr CounterRequest kEverything = {.executed_flops = true};

void one_kernel(LaunchMarker* /*marker*/) { launch(5, 0); }

std::string count_message(const CounterRequest& request = {}) {
  return message_of<CollectorError>([&] { count_ranges(request, one_kernel); });
}

struct Case {
  const char* function;
  CUptiResult code;
  const char* says;  // what a user can make something of
};

void PrintTo(const Case& given, std::ostream* out) { *out << given.function << ' ' << given.code; }

class EachError : public Counting, public testing::WithParamInterface<Case> {};

TEST_P(EachError, SaysWhatIsWrongAndLeavesNothing) {
  const auto [function, code, says] = GetParam();
  fake_fail(function, code, 0);
  const std::string message = count_message();
  EXPECT_NE(message.find(error_name(code)), std::string::npos) << message;
  EXPECT_NE(message.find(says), std::string::npos) << message;
  EXPECT_NE(message.find(function), std::string::npos) << message;
  expect_nothing_left();

  fake_fail(function, 0, 0);
  EXPECT_EQ(count_ranges({}, one_kernel).records.size(), 1U) << "and works again";
}

// errors_test.cpp has what each code means.
INSTANTIATE_TEST_SUITE_P(
    Counters, EachError,
    testing::Values(Case{"cuptiProfilerInitialize", CUPTI_ERROR_NOT_INITIALIZED, "libnvperf_host"},
                    Case{"cuptiProfilerInitialize", CUPTI_ERROR_UNKNOWN, "without saying why"},
                    Case{"cuptiProfilerDeviceSupported", CUPTI_ERROR_NOT_SUPPORTED, "does not support"},
                    Case{"cuptiDeviceGetChipName", CUPTI_ERROR_INVALID_DEVICE, "device"},
                    Case{"cuptiProfilerHostInitialize", CUPTI_ERROR_INVALID_CHIP_NAME, "this chip"},
                    Case{"cuptiProfilerHostGetBaseMetrics", CUPTI_ERROR_INVALID_PARAMETER, "refuses"},
                    Case{"cuptiRangeProfilerEnable", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
                         "NVreg_RestrictProfilingToAdminUsers"},
                    Case{"cuptiRangeProfilerEnable", CUPTI_ERROR_HARDWARE_BUSY, "dcgmi profiling --pause"},
                    Case{"cuptiRangeProfilerGetCounterDataSize", CUPTI_ERROR_INVALID_PARAMETER, "refuses"},
                    Case{"cuptiRangeProfilerCounterDataImageInitialize", CUPTI_ERROR_INVALID_PARAMETER, "refuses"},
                    Case{"cuptiRangeProfilerSetConfig", CUPTI_ERROR_INVALID_PARAMETER, "refuses"},
                    Case{"cuptiRangeProfilerStart", CUPTI_ERROR_HARDWARE_BUSY, "dcgmi"},
                    Case{"cuptiRangeProfilerDecodeData", CUPTI_ERROR_UNKNOWN, "without saying why"},
                    Case{"cuptiRangeProfilerGetCounterDataInfo", CUPTI_ERROR_INVALID_PARAMETER, "refuses"},
                    Case{"cuptiRangeProfilerCounterDataGetRangeInfo", CUPTI_ERROR_INVALID_PARAMETER, "refuses"}));

TEST_F(CounterErrors, ADeviceThatIsNotSupportedSaysWhy) {
  fake_set_text("not_supported", "wsl");
  EXPECT_NE(count_message().find("the reason is Windows' Linux (WSL)"), std::string::npos) << count_message();
  fake_set_text("not_supported", "confidential_compute");
  EXPECT_NE(count_message().find("confidential computing"), std::string::npos) << count_message();
}

TEST_F(CounterErrors, UnknownAvailabilityIsNotedOnly) {
  fake_fail("cuptiProfilerGetCounterAvailability", CUPTI_ERROR_UNKNOWN, 0);
  const CounterTrace trace = count_ranges({}, one_kernel);
  EXPECT_EQ(trace.records.size(), 1U);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_TRUE(trace.notes[0].text.starts_with("which counters this system allows is not known: "))
      << trace.notes[0].text;
}

TEST_F(CounterErrors, ValuesThatCannotBeWorkedOutAreUnknownAndSaidToBe) {
  fake_fail("cuptiProfilerHostEvaluateToGpuValues", CUPTI_ERROR_INVALID_METRIC_NAME, 1);
  const CounterTrace trace = count_ranges({}, [](LaunchMarker*) {
    launch(5, 0);
    launch(6, 0);
    launch(7, 0);
  });
  ASSERT_EQ(trace.records.size(), 3U);
  EXPECT_EQ(value(trace.records[0], Counter::dram_bytes), 5);
  EXPECT_EQ(value(trace.records[1], Counter::dram_bytes), std::nullopt);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_EQ(trace.notes[0].text,
            "CUPTI could not work out counters of 2 of 3 ranges (CUPTI_ERROR_INVALID_METRIC_NAME)");
}

TEST_F(CounterErrors, WhenALaterSetFailsTheFirstRemains) {
  fake_fail("cuptiRangeProfilerEnable", CUPTI_ERROR_UNKNOWN, 1);  // from the SASS pass on
  const CounterTrace trace = count_ranges(kEverything, one_kernel);
  ASSERT_EQ(trace.records.size(), 1U);
  EXPECT_EQ(value(trace.records[0], Counter::dram_bytes), 5);
  EXPECT_EQ(value(trace.records[0], Counter::fp32_flops), std::nullopt);
  EXPECT_NE(source(trace, Counter::fp32_flops).missing.find("cuptiRangeProfilerEnable"), std::string::npos);
  EXPECT_NE(source(trace, Counter::tensor_int8_ops).missing, "");
  EXPECT_EQ(source(trace, Counter::dram_bytes).missing, "");
}

TEST_F(CounterErrors, ADeviceLostInTheMiddleIsSaid) {
  fake_fail("cuCtxSynchronize", 719, 0);
  const std::string message = count_message();
  EXPECT_NE(message.find("cuda:0"), std::string::npos) << message;
  EXPECT_NE(message.find("719"), std::string::npos) << message;
  fake_fail("cuCtxSynchronize", 0, 0);
}

TEST_F(CounterErrors, AProfilerThatCannotStopIsSwitchedOffAllTheSame) {
  fake_fail("cuptiRangeProfilerStop", CUPTI_ERROR_UNKNOWN, 0);
  EXPECT_NE(count_message().find("cuptiRangeProfilerStop"), std::string::npos);
  disabled_while_counting_ = 1;  // there was no other way
}

TEST_F(CounterErrors, PassesWithoutEndAreEnded) {
  fake_set("endless_passes", 1);
  int runs = 0;
  EXPECT_THROW(count_ranges({}, [&](LaunchMarker*) { ++runs; }), CollectorError);
  EXPECT_EQ(runs, 2);
  EXPECT_NE(count_message().find("CUPTI announced 1 passes and asks for more"), std::string::npos) << count_message();
}

TEST_F(CounterErrors, WithoutADeviceInUseThereIsNothingToCount) {
  context_.reset();
  fake_reset();
  EXPECT_NE(count_message().find("no device is in use"), std::string::npos) << count_message();
}

struct ModelsOwn {
  int value = 0;
};

TEST_F(CounterErrors, WhatTheBodyThrowsComesThroughAsItWas) {
  for (const CounterRanges ranges : {CounterRanges::kernels, CounterRanges::modules}) {
    for (const int failing_run : {1, 2, 5}) {
      int runs = 0;
      try {
        count_ranges({.executed_flops = true, .ranges = ranges}, [&](LaunchMarker* marker) {
          if (marker != nullptr) marker->push(3, LaunchLevel::module);
          launch(1, 0);
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

TEST_F(CounterErrors, AThousandCyclesLeaveNothing) {
  for (int cycle = 0; cycle < 1000; ++cycle) {
    const bool throws = cycle % 3 == 1;
    const bool modules = cycle % 2 == 1;
    try {
      count_ranges({.ranges = modules ? CounterRanges::modules : CounterRanges::kernels}, [&](LaunchMarker* marker) {
        if (marker != nullptr) marker->push(3, LaunchLevel::module);
        launch(1, 0);
        if (throws) throw ModelsOwn{};
        if (marker != nullptr) marker->pop(LaunchLevel::module);
      });
    } catch (const ModelsOwn&) {
      EXPECT_TRUE(throws);
    }
  }
  EXPECT_EQ(fake_calls("cuptiRangeProfilerEnable"), 1000);
  EXPECT_EQ(fake_calls("cuptiRangeProfilerDisable"), 1000);
}

}  // namespace
}  // namespace roofprof::cupti
