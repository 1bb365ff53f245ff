// Beside torch's profiler, before, after and while it is at work.
#include <gtest/gtest.h>

#include <cstdlib>

#include "device/cupti/torchs_profiler.h"
#include "device/cupti/traced.h"
#include "device/cupti/tracer.h"

namespace roofprof::cupti {
namespace {

class BesideTorch : public Traced {
 protected:
  void SetUp() override {
    Traced::SetUp();
#ifndef __x86_64__
    GTEST_SKIP() << "torch's profiler leaves CUPTI's clock alone on this processor";
#endif
  }
  // Kernels of 5,000 and 300 ns are found again, in their places and with these times.
  static DeviceTrace expect_true_times(Tracer& traced) {
    traced.start();
    const std::int64_t begin = fake_now();
    {
      const Under op(traced.marker(), 8);
      fake_kernel("first", 0, 7, 5000);
    }
    fake_kernel("second", 0, 7, 300);
    DeviceTrace trace = traced.stop();
    EXPECT_EQ(places(trace), (std::map<std::string, LaunchId>{{"first", 8}, {"second", 0}}));
    EXPECT_EQ(trace.records.at(0).start_ns - begin, 1000);
    EXPECT_EQ(trace.records.at(0).end_ns - begin, 6000);
    EXPECT_EQ(trace.records.at(1).end_ns - trace.records.at(1).start_ns, 300);
    EXPECT_EQ(trace.end_ns - trace.start_ns, 6300);
    EXPECT_EQ(trace.dropped + trace.incomplete + trace.foreign, 0);
    return trace;
  }
  static void used_before(TorchsProfiler& torchs) {
    torchs.start();
    fake_kernel("of_torchs_trace", 0, 7, 10);
    torchs.stop();
  }
};

TEST_F(BesideTorch, UntouchedTheClockIsLeftAlone) {
  Tracer traced = tracer();
  EXPECT_TRUE(expect_true_times(traced).notes.empty());
  EXPECT_EQ(fake_calls("cuptiActivityRegisterTimestampCallback"), 0);
}

TEST_F(BesideTorch, AfterItsUseTimesAreTrueWithoutASubscription) {
  TorchsProfiler torchs(api());
  used_before(torchs);
  EXPECT_EQ(clock_unit(api()), ClockUnit::cpu_ticks);
  EXPECT_EQ(fake_live("subscriber"), 1) << "it keeps its subscription";
  Tracer traced = tracer();
  traced.start();
  traced.stop();
  fake_advance(100);
  {
    const DeviceTrace trace = expect_true_times(traced);
    ASSERT_EQ(trace.notes.size(), 1U) << all_notes(trace);
    EXPECT_EQ(trace.notes[0].code, "cupti-shared");
  }
  EXPECT_EQ(clock_unit(api()), ClockUnit::cpu_ticks) << "its clock is as it was: it converts ticks itself";
  used_before(torchs);
  expect_true_times(traced);
}

TEST_F(BesideTorch, AfterAVersionThatDoesNotSubscribe) {
  TorchsProfiler torchs(api(), false);
  used_before(torchs);
  Tracer traced = tracer();
  EXPECT_TRUE(expect_true_times(traced).notes.empty());
  EXPECT_EQ(clock_unit(api()), ClockUnit::cpu_ticks);
}

TEST_F(BesideTorch, NothingIsHeldBetweenTraces) {
  Tracer traced = tracer();
  expect_true_times(traced);
  TorchsProfiler torchs(api());
  torchs.start();
  EXPECT_EQ(fake_live("subscriber"), 1) << "its first start finds the subscription free";
  torchs.stop();
}

TEST_F(BesideTorch, WithoutCapturesToWatchNoneIsHeld) {
  fake_fail("cuptiEnableCallback", CUPTI_ERROR_NOT_INITIALIZED, 0);
  Tracer traced = tracer();
  traced.start();
  EXPECT_EQ(fake_live("subscriber"), 0);
  traced.stop();
}

TEST_F(BesideTorch, AClockThatCannotBeMendedGivesNoTimes) {
  TorchsProfiler torchs(api(), false);
  used_before(torchs);
  fake_fail("cuptiActivityRegisterTimestampCallback", CUPTI_ERROR_NOT_COMPATIBLE, 0);
  Tracer traced = tracer();
  EXPECT_SAYS("replaced CUPTI's clock", message_of<CollectorError>([&] { traced.start(); }));
  expect_nothing_left();
}

TEST_F(BesideTorch, AnUnknownClockIsLeftAloneAndGivesNoTimes) {
  api().cuptiActivityRegisterTimestampCallback([]() -> std::uint64_t { return 1ULL << 62; });
  Tracer traced = tracer();
  EXPECT_SAYS("replaced CUPTI's clock", message_of<CollectorError>([&] { traced.start(); }));
  EXPECT_EQ(fake_calls("cuptiActivityRegisterTimestampCallback"), 1);
  expect_nothing_left();
}

// CUPTI converts times when it hands records over, by the clock that is there then.
TEST_F(BesideTorch, WhenItBeginsWithinATraceTheTimesAreNotUsed) {
  TorchsProfiler torchs(api());
  Tracer traced = tracer();
  traced.start();
  fake_kernel("before", 0, 7, 10);
  used_before(torchs);
  fake_kernel("after", 0, 7, 10);
  EXPECT_SAYS("began within this trace and replaced CUPTI's clock", message_of<CollectorError>([&] { traced.stop(); }));
  expect_nothing_left();
  expect_true_times(traced);
}

// As where the clock was set once and for all before.
TEST_F(BesideTorch, RecordsThatItTakesWithinATraceAreMissed) {
  fake_set("activity_keeps", 1);
  Tracer traced = tracer();
  traced.start();
  fake_kernel("before", 0, 7, 10);
  api().cuptiActivityFlushAll(0);
  const auto request = [](std::uint8_t** buffer, std::size_t* size, std::size_t*) {
    static std::array<std::uint8_t, 4096> memory;
    *buffer = memory.data();
    *size = memory.size();
  };
  const auto complete = [](CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size, std::size_t) {
    if (size != 4096) std::free(buffer);  // ours, for the leak sanitizer: the real one forgets it
  };
  api().cuptiActivityRegisterCallbacks(request, complete);
  fake_kernel("taken", 0, 7, 10);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(places(trace), (std::map<std::string, LaunchId>{{"before", 0}}));
  ASSERT_EQ(trace.notes.size(), 1U) << all_notes(trace);
  EXPECT_EQ(trace.notes[0].code, "other-profiler");
  EXPECT_SAYS("took its records", trace.notes[0].text);
}

// Some records are by another clock, which runs 20 ms ahead.
class AheadInBetween : public BesideTorch {
 protected:
  static void launch(int true_ones, int wrong_ones) {
    for (int i = 0; i < true_ones; ++i) fake_kernel("in_the_trace", 0, 7, 10);
    api().cuptiActivityRegisterTimestampCallback(
        []() -> std::uint64_t { return std::uint64_t{20'000'000} + roofprof_simulated_time(); });
    for (int i = 0; i < wrong_ones; ++i) fake_kernel("outside", 0, 7, 10);
    api().cuptiActivityRegisterTimestampCallback([]() -> std::uint64_t { return roofprof_simulated_time(); });
  }
};

TEST_F(AheadInBetween, AFewRecordsOutsideOfTheTraceAreLeftOut) {
  Tracer traced = tracer();
  traced.start();
  launch(3, 1);
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(trace.records.size(), 3U);
  EXPECT_EQ(trace.dropped, 1);
  ASSERT_EQ(trace.notes.size(), 1U) << all_notes(trace);
  EXPECT_EQ(trace.notes[0].code, "kernels-missing");
  EXPECT_SAYS("of 4 kernels and copies 1 have times outside of the trace", trace.notes[0].text);
}

TEST_F(AheadInBetween, WhereMostAreThereAreNoTimes) {
  Tracer traced = tracer();
  traced.start();
  launch(1, 1);
  EXPECT_SAYS("1 have times outside of the trace", message_of<CollectorError>([&] { traced.stop(); }));
  expect_nothing_left();
}

}  // namespace
}  // namespace roofprof::cupti
