// What goes wrong, and what is left then.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "device/cupti/traced.h"

namespace roofprof::cupti {
namespace {

class Failing : public Traced {
 protected:
  static constexpr int kIllegalAddress = 700;  // CUDA_ERROR_ILLEGAL_ADDRESS

  // All is as before, and a trace can be made.
  static void expect_usable(Tracer& traced) {
    expect_nothing_left();
    traced.start();
    fake_kernel("afterwards", 0, 7, 10);
    EXPECT_EQ(places(traced.stop()), (std::map<std::string, LaunchId>{{"afterwards", 0}}));
  }
};

struct Step {
  const char* function;
  long long after;  // calls that work
};

class Starting : public Failing, public testing::WithParamInterface<Step> {};

TEST_P(Starting, AFailureLeavesNothingBehind) {
  Tracer traced = tracer();
  fake_fail(GetParam().function, CUPTI_ERROR_NOT_COMPATIBLE, GetParam().after);
  const std::string message = message_of<CuptiError>([&] { traced.start(); });
  EXPECT_NE(message.find(std::string(GetParam().function) + ": CUPTI_ERROR_NOT_COMPATIBLE"), std::string::npos)
      << message;
  EXPECT_EQ(traced.marker(), nullptr);
  fake_fail(GetParam().function, 0, 0);
  expect_usable(traced);
}

INSTANTIATE_TEST_SUITE_P(AnyFunction, Starting,
                         testing::Values(Step{"cuptiSubscribe", 0}, Step{"cuptiActivityRegisterCallbacks", 0},
                                         Step{"cuptiActivityEnable", 0}, Step{"cuptiActivityEnable", 1},
                                         Step{"cuptiActivityEnable", 4}, Step{"cuptiActivityEnable", 6},
                                         Step{"cuptiGetTimestamp", 0}));

TEST_F(Failing, ASecondClientIsToldApart) {
  std::optional<OtherSubscriber> other(api());
  setenv("NV_NSIGHT_INJECTION_PORT_BASE", "49152", 1);
  Tracer traced = tracer();
  const std::string message = message_of<CollectorError>([&] { traced.start(); });
  unsetenv("NV_NSIGHT_INJECTION_PORT_BASE");
  EXPECT_NE(message.find("another profiler is at work"), std::string::npos) << message;
  EXPECT_EQ(fake_live("subscriber"), 1) << "the other's session goes on";
  EXPECT_EQ(fake_live("activity_kind"), 0);
  EXPECT_EQ(fake_calls("cuptiActivityRegisterCallbacks"), 0) << "the other's callbacks stay";
  other.reset();
  expect_usable(traced);
}

TEST_F(Failing, ASecondTracerDoesNotDisturbTheFirst) {
  Tracer first = tracer();
  first.start();
  fake_kernel("of_the_first", 0, 7, 10);
  Tracer second = tracer();
  EXPECT_THROW(second.start(), CollectorError);
  fake_kernel("goes_on", 0, 7, 10);
  EXPECT_EQ(first.stop().records.size(), 2U);
  expect_usable(second);
}

TEST_F(Failing, OptionalFunctionsMayFail) {
  for (const char* function : {"cuptiEnableCallback", "cuptiGetCallbackName", "cuptiActivityEnableRuntimeApi",
                               "cuptiActivityEnableDriverApi", "cuptiActivityGetNumDroppedRecords"}) {
    fake_fail(function, CUPTI_ERROR_NOT_INITIALIZED, 0);
  }
  Tracer traced = tracer();
  expect_usable(traced);
}

TEST_F(Failing, ALibraryWithoutRecordsSaysSo) {
  use("ROOFPROF_CUPTI_LIB", fake_library("without_activity", "libcupti.so.13"));
  const Api lacking = open_api();
  Tracer traced(lacking, [] {});
  const std::string message = message_of<CollectorError>([&] { traced.start(); });
  EXPECT_NE(message.find("lacks what kernel times need: cuptiActivityRegisterCallbacks"), std::string::npos) << message;
}

TEST_F(Failing, ALostDeviceAtTheStartIsSaid) {
  fake_kernel("breaks_it", 0, 7, 10);
  fake_fail("cuCtxSynchronize", kIllegalAddress, 0);
  Tracer traced = tracer();
  EXPECT_THROW(traced.start(), CollectorError);
  EXPECT_EQ(fake_calls("cuptiSubscribe"), 0);
}

// After all was enabled, the tracer waits for the devices once more.
TEST_F(Failing, ADeviceLostWhileStartingLeavesNothingBehind) {
  fake_kernel("makes_a_context", 0, 7, 10);
  fake_fail("cuCtxSynchronize", kIllegalAddress, 1);
  Tracer traced = tracer();
  EXPECT_THROW(traced.start(), CollectorError);
  EXPECT_EQ(fake_calls("cuptiSubscribe"), 1);
  fake_fail("cuCtxSynchronize", 0, 0);
  expect_usable(traced);
}

TEST_F(Failing, ALostDeviceInTheMiddleLeavesWhatThereIs) {
  Tracer traced = tracer();
  traced.start();
  {
    const Under op(traced.marker(), 3);
    fake_kernel("before_the_loss", 0, 7, 10);
  }
  FakeLaunch lost{};
  lost.name = "lost";
  lost.incomplete = 1;
  fake_launch(&lost);
  fake_fail("cuCtxSynchronize", kIllegalAddress, 0);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(places(trace), (std::map<std::string, LaunchId>{{"before_the_loss", 3}}));
  EXPECT_EQ(trace.incomplete, 1);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_NE(trace.notes[0].text.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << trace.notes[0].text;
  EXPECT_NE(trace.notes[0].text.find("recorded until then"), std::string::npos) << trace.notes[0].text;
  fake_fail("cuCtxSynchronize", 0, 0);
  expect_usable(traced);
}

TEST_F(Failing, WhatFailsAtTheEndIsANote) {
  for (const auto& [function, words] : std::map<std::string, std::string>{
           {"cuptiActivityFlushAll", "hand over all of its records"},
           {"cuptiGetTimestamp", "tell when the trace ended"},
       }) {
    Tracer traced = tracer();
    traced.start();
    fake_kernel("k", 0, 7, 10);
    fake_fail(function.c_str(), CUPTI_ERROR_UNKNOWN, 0);
    const DeviceTrace trace = traced.stop();
    EXPECT_NE(all_notes(trace).find(words), std::string::npos) << all_notes(trace);
    fake_fail(function.c_str(), 0, 0);
    api().cuptiActivityFlushAll(1);
    expect_usable(traced);
  }
}

TEST_F(Failing, WhatCannotBeSwitchedOffIsSaidAndTheRestIs) {
  Tracer traced = tracer();
  traced.start();
  fake_fail("cuptiActivityDisable", CUPTI_ERROR_UNKNOWN, 0);
  EXPECT_NE(all_notes(traced.stop()).find("CUPTI could not end recording"), std::string::npos);
  EXPECT_EQ(fake_live("subscriber"), 0);
  fake_fail("cuptiActivityDisable", 0, 0);
  traced.start();
  traced.stop();
  expect_usable(traced);
}

TEST_F(Failing, RefusedIdsAreSaidAndTheirPopsLeftOut) {
  std::optional<OtherSubscriber> other(api());
  Tracer traced = tracer();
  traced.start();
  LaunchMarker* marker = traced.marker();
  const Under module(marker, 7, LaunchLevel::module);
  fake_fail("cuptiActivityPushExternalCorrelationId", CUPTI_ERROR_UNKNOWN, 0);
  marker->push(8, LaunchLevel::op);
  fake_fail("cuptiActivityPushExternalCorrelationId", 0, 0);
  marker->pop(LaunchLevel::op);
  fake_kernel("in_module", 0, 7, 10);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(only(trace).launch, 7U) << "the module's own id was not popped";
  EXPECT_NE(all_notes(trace).find("1 launch ids were refused"), std::string::npos) << all_notes(trace);
  other.reset();
}

TEST_F(Failing, ATracerThatGoesEndsItsTrace) {
  {
    Tracer traced = tracer();
    traced.start();
    fake_kernel("never_asked_for", 0, 7, 10);
  }
  Tracer next = tracer();
  expect_usable(next);
}

// CUPTI gives back what it holds when a process ends, be it in the middle of a trace.
TEST_F(Failing, AProcessMayEndInTheMiddle) {
  const auto end_in_the_middle = [] {
    {
      Tracer before = tracer();  // the library is loaded, and what it keeps goes after the handler below
      before.start();
      before.stop();
    }
    std::atexit([] { api().cuptiActivityFlushAll(1); });
    static auto* traced = new Tracer(tracer());
    traced->start();
    traced->marker()->push(3, LaunchLevel::op);
    fake_kernel("k", 0, 7, 10);
    std::exit(0);
  };
  EXPECT_EXIT(end_in_the_middle(), testing::ExitedWithCode(0), "");
}

TEST_F(Failing, OutOfTurnIsRefused) {
  Tracer traced = tracer();
  EXPECT_THROW(traced.stop(), CollectorError);
  traced.start();
  EXPECT_THROW(traced.start(), CollectorError);
  fake_kernel("goes_on", 0, 7, 10);
  EXPECT_EQ(traced.stop().records.size(), 1U);
  EXPECT_THROW(traced.stop(), CollectorError);
}

}  // namespace
}  // namespace roofprof::cupti
