// What goes wrong with a trace, and what is left then; and collectors, of which one at a time has the device.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "device/cupti/traced.h"
#include "device/interface/collector.h"
#include "device/replay/replay.h"

namespace roofprof::cupti {
namespace {

constexpr int kIllegalAddress = 700;  // CUDA_ERROR_ILLEGAL_ADDRESS

using Failing = Traced;

TEST_F(Failing, AStartThatFailsLeavesNothingBehind) {
  for (const auto& [function, calls_that_work] :
       std::vector<std::pair<const char*, int>>{{"cuptiSubscribe", 0},
                                                {"cuptiActivityRegisterCallbacks", 0},
                                                {"cuptiActivityEnable", 0},
                                                {"cuptiActivityEnable", 4},
                                                {"cuptiActivityEnable", 6},
                                                {"cuptiGetTimestamp", 0}}) {
    Tracer traced = tracer();
    fake_fail(function, CUPTI_ERROR_NOT_COMPATIBLE, calls_that_work);
    EXPECT_SAYS(std::string(function) + ": CUPTI_ERROR_NOT_COMPATIBLE",
                message_of<CuptiError>([&] { traced.start(); }));
    EXPECT_EQ(traced.marker(), nullptr);
    expect_nothing_left();
    fake_fail(function, 0, 0);
    expect_usable(traced);
  }
}

TEST_F(Failing, WhatFailsLaterIsANote) {
  for (const auto& [function, code, words] : std::vector<std::tuple<const char*, int, const char*>>{
           {"cuptiActivityFlushAll", CUPTI_ERROR_UNKNOWN,
            "kernels-missing: CUPTI could not hand over all of its records"},
           {"cuptiGetTimestamp", CUPTI_ERROR_UNKNOWN, "cupti-failed: CUPTI could not tell when the trace ended"},
           {"cuptiActivityDisable", CUPTI_ERROR_UNKNOWN, "cupti-failed: CUPTI could not end recording"},
           {"cuptiUnsubscribe", CUPTI_ERROR_UNKNOWN, "cupti-failed: CUPTI could not end our session"},
           {"cuCtxSynchronize", kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
           // These are not needed.
           {"cuptiEnableCallback", CUPTI_ERROR_UNKNOWN, ""},
           {"cuptiGetCallbackName", CUPTI_ERROR_UNKNOWN, ""},
           {"cuptiActivityEnableRuntimeApi", CUPTI_ERROR_UNKNOWN, ""},
           {"cuptiActivityGetNumDroppedRecords", CUPTI_ERROR_UNKNOWN, ""}}) {
    Tracer traced = tracer();
    const auto fail = [name = function, with = code] { fake_fail(name, with, 0); };
    const DeviceTrace found = trace(traced, [&](LaunchMarker* marker) {
      const Under op(marker, 3);
      kernel();
      fake_launch(FakeLaunch{.name = "lost", .incomplete = 1});
      fail();
    });
    EXPECT_SAYS(words, all_notes(found));
    EXPECT_EQ(found.incomplete, std::string(function) == "cuptiActivityFlushAll" ? 0 : 1);
    fake_reset();
    trace(traced, [](LaunchMarker*) {});  // what was left is taken away
    expect_usable(traced);
  }
}

TEST_F(Failing, ASecondClientIsToldApart) {
  Tracer traced = tracer();
  {
    const OtherSubscriber other;
    setenv("NV_NSIGHT_INJECTION_PORT_BASE", "49152", 1);
    EXPECT_SAYS("another profiler is at work", message_of<CollectorError>([&] { traced.start(); }));
    unsetenv("NV_NSIGHT_INJECTION_PORT_BASE");
    EXPECT_EQ(fake_live("subscriber"), 1) << "the other's session goes on";
    EXPECT_EQ(fake_live("activity_kind"), 0);
    EXPECT_EQ(fake_calls("cuptiActivityRegisterCallbacks"), 0) << "the other's callbacks stay";
  }
  expect_usable(traced);
}

TEST_F(Failing, ALibraryWithoutRecordsSaysSo) {
  use("ROOFPROF_CUPTI_LIB", fake_library("without_activity", "libcupti.so.13"));
  const Api lacking = open_api();
  Tracer traced = tracer({}, lacking);
  EXPECT_SAYS("lacks what kernel times need: cuptiActivityRegisterCallbacks, cuptiActivityEnable, ",
              message_of<CollectorError>([&] { traced.start(); }));
}

// Before all was enabled, and after.
TEST_F(Failing, ADeviceLostAtTheStartLeavesNothingBehind) {
  kernel("makes_a_context");
  for (const int waits_that_work : {0, 1}) {
    fake_fail("cuCtxSynchronize", kIllegalAddress, waits_that_work);
    Tracer traced = tracer();
    EXPECT_THROW(traced.start(), CollectorError);
    EXPECT_EQ(fake_calls("cuptiSubscribe"), waits_that_work);
    fake_fail("cuCtxSynchronize", 0, 0);
  }
  Tracer traced = tracer();
  expect_usable(traced);
}

TEST_F(Failing, RefusedIdsAreSaidAndTheirPopsLeftOut) {
  const auto other = std::make_unique<OtherSubscriber>();
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [](LaunchMarker* marker) {
    const Under module(marker, 7, LaunchLevel::module);
    fake_fail("cuptiActivityPushExternalCorrelationId", CUPTI_ERROR_UNKNOWN, 0);
    marker->push(8, LaunchLevel::op);
    fake_fail("cuptiActivityPushExternalCorrelationId", 0, 0);
    marker->pop(LaunchLevel::op);
    kernel();
  });
  EXPECT_EQ(places(found), (Places{{"k", 7}})) << "the module's own id was not popped";
  EXPECT_SAYS("1 launch ids were refused", all_notes(found));
}

// CUPTI gives back what it holds when a process ends, be it in the middle of a trace.
TEST_F(Failing, AProcessMayEndInTheMiddle) {
  const auto end_in_the_middle = [] {
    Tracer before = tracer();  // the library is loaded, and what it keeps goes after the handler below
    trace(before, [](LaunchMarker*) {});
    std::atexit([] { api().cuptiActivityFlushAll(1); });
    static auto* traced = new Tracer(tracer());
    traced->start();
    traced->marker()->push(3, LaunchLevel::op);
    kernel();
    std::exit(0);
  };
  EXPECT_EXIT(end_in_the_middle(), testing::ExitedWithCode(0), "");
}

TEST_F(Failing, OutOfTurnIsRefused) {
  Tracer traced = tracer();
  EXPECT_THROW(traced.stop(), CollectorError);
  traced.start();
  kernel("one");
  EXPECT_THROW(traced.start(), CollectorError);
  EXPECT_THROW(tracer().start(), CollectorError);  // another tracer
  kernel("two");
  EXPECT_EQ(traced.stop().records.size(), 2U);
  EXPECT_THROW(traced.stop(), CollectorError);
  {
    tracer().start();
  }  // one that goes ends its trace
  expect_usable(traced);
}

// ---- as the profiler uses it

using Collecting = Traced;

void axpy(LaunchMarker* marker) {
  const FakeLaunch launch{.name = "_Z4axpyPf", .duration_ns = 700, .dram_read_bytes = 4096, .dram_write_bytes = 1024};
  if (marker != nullptr) marker->push(3, LaunchLevel::op);
  fake_launch(launch);
  if (marker != nullptr) marker->pop(LaunchLevel::op);
}

TEST_F(Collecting, TimesAndCountersOfOneDeviceAreRecordedOnRequest) {
  EXPECT_EQ(make_collector("cpu"), nullptr);
  EXPECT_EQ(fake_calls("cupti*"), 0);
  const std::string path = testing::TempDir() + "/roofprof_collector_" + std::to_string(getpid()) + ".json";
  setenv("ROOFPROF_RECORD_DEVICE", path.c_str(), 1);
  const auto collector = make_collector("cuda:0");
  unsetenv("ROOFPROF_RECORD_DEVICE");
  EXPECT_TRUE(collector->simulated());
  EXPECT_FALSE(collector->by_host_clock() || collector->can_forget());
  axpy(nullptr);
  EXPECT_EQ(collector->marker(), nullptr);
  collector->start_tracing();
  axpy(collector->marker());
  RecordedData expected;
  expected.traces.push_back(collector->stop_tracing());
  EXPECT_EQ(places(expected.traces[0]), (Places{{"axpy(float*)", 3}}));
  EXPECT_EQ(expected.traces[0].records[0].end_ns - expected.traces[0].records[0].start_ns, 700);
  expected.counters.push_back(collector->count({.expected_launches = 1}, axpy));
  ASSERT_EQ(expected.counters[0].records.size(), 1U);
  EXPECT_EQ(expected.counters[0].records[0].values[static_cast<std::size_t>(Counter::dram_bytes)], 5120.0);
  EXPECT_EQ(read_recorded_file(path), expected);
  std::filesystem::remove(path);
}

TEST_F(Collecting, OneAtATimeAndUsableAfterAFailure) {
  const auto first = make_collector("cuda:0");
  const auto second = make_collector("cuda:0");
  axpy(nullptr);
  const auto refused = [](auto&& call) {
    EXPECT_SAYS("another measurement of roofprof's is under way", message_of<CollectorError>(call));
  };
  first->start_tracing();
  refused([&] { second->start_tracing(); });
  refused([&] { first->count({}, axpy); });
  axpy(nullptr);
  EXPECT_EQ(first->stop_tracing().records.size(), 1U);
  first->count({}, [&](LaunchMarker* marker) {
    axpy(marker);
    refused([&] { second->start_tracing(); });
    refused([&] { first->count({}, axpy); });
  });

  fake_fail("cuptiActivityEnable", CUPTI_ERROR_NOT_COMPATIBLE, 2);
  EXPECT_THROW(first->start_tracing(), CollectorError);
  fake_fail("cuptiActivityEnable", 0, 0);
  EXPECT_THROW(first->count({}, [](LaunchMarker*) { throw std::domain_error("the user's"); }), std::domain_error);
  EXPECT_THROW(first->stop_tracing(), CollectorError);
  make_collector("cuda:0")->start_tracing();  // one that goes gives the device back
  second->start_tracing();
  axpy(nullptr);
  EXPECT_EQ(second->stop_tracing().records.size(), 1U);
}

}  // namespace
}  // namespace roofprof::cupti
