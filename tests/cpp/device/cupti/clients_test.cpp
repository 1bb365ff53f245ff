// Beside torch's profiler: before, after and while it is at work.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "device/cupti/traced.h"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace roofprof::cupti {
namespace {

std::uint64_t CUPTIAPI ticks() {
#ifdef __x86_64__
  return __rdtsc();
#else
  return 0;
#endif
}

// Takes records from whoever has them.
void take_records() {
  static std::array<std::uint8_t, 4096> memory;
  api().cuptiActivityRegisterCallbacks(
      [](std::uint8_t** buffer, std::size_t* size, std::size_t*) {
        *buffer = memory.data();
        *size = memory.size();
      },
      [](CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
        if (buffer != memory.data()) std::free(buffer);  // ours, for the leak sanitizer: the real one forgets it
      });
}

// What torch's profiler does with CUPTI, call by call. Each start puts the processor's counter in the place of CUPTI's
// clock, which cannot be undone, and its own callbacks for buffers in the place of others'; each stop switches the
// kinds of records off that others may have switched on. Up to torch 2.14 the first start subscribes besides, for good.
void use_torchs_profiler() {
  constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME};
  api().cuptiActivityRegisterTimestampCallback(&ticks);
  take_records();
  for (const auto kind : kKinds) api().cuptiActivityEnable(kind);
  kernel("of_torchs_trace");
  api().cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  for (const auto kind : kKinds) api().cuptiActivityDisable(kind);
}

class BesideTorch : public Traced {
 protected:
  void SetUp() override {
    Traced::SetUp();
#ifndef __x86_64__
    GTEST_SKIP() << "torch's profiler leaves CUPTI's clock alone on this processor";
#endif
  }
  // Kernels of 5,000 and 300 ns are found again, in their places and with these times. Returns the notes.
  static std::string expect_true_times(Tracer& traced) {
    std::int64_t begin = 0;
    const DeviceTrace found = trace(traced, [&](LaunchMarker* marker) {
      begin = fake_now();
      {
        const Under op(marker, 8);
        kernel("first", 5000);
      }
      kernel("second", 300);
    });
    EXPECT_EQ(places(found), (Places{{"first", 8}, {"second", 0}}));
    EXPECT_EQ(found.records.at(0).start_ns - begin, 1000);
    EXPECT_EQ(found.records.at(0).end_ns - begin, 6000);
    EXPECT_EQ(found.end_ns - found.start_ns, 6300);
    return all_notes(found);
  }
  static void expect_no_times(Tracer& traced) {
    EXPECT_SAYS("replaced CUPTI's clock", message_of<CollectorError>([&] { traced.start(); }));
    expect_nothing_left();
  }
};

TEST_F(BesideTorch, UntouchedTheClockIsLeftAlone) {
  Tracer traced = tracer();
  EXPECT_EQ(expect_true_times(traced), "");
  EXPECT_EQ(fake_calls("cuptiActivityRegisterTimestampCallback"), 0);
  const OtherSubscriber first_use;  // finds the subscription free
}

TEST_F(BesideTorch, AfterItsUseTimesAreTrue) {
  Tracer traced = tracer();
  for (const bool subscribes : {false, true}) {
    std::optional<OtherSubscriber> kept;
    if (subscribes) kept.emplace();
    use_torchs_profiler();
    EXPECT_EQ(clock_unit(api()), ClockUnit::cpu_ticks);
    const std::string notes = expect_true_times(traced);
    EXPECT_EQ(notes.substr(0, 12), subscribes ? "cupti-shared" : "");
    EXPECT_EQ(clock_unit(api()), ClockUnit::cpu_ticks) << "its clock is as it was: it converts ticks itself";
  }
}

TEST_F(BesideTorch, WithoutCapturesToWatchNoSubscriptionIsHeld) {
  fake_fail("cuptiEnableCallback", CUPTI_ERROR_NOT_INITIALIZED, 0);
  Tracer traced = tracer();
  trace(traced, [](LaunchMarker*) { EXPECT_EQ(fake_live("subscriber"), 0); });
}

TEST_F(BesideTorch, AClockThatCannotBeMendedGivesNoTimes) {
  Tracer traced = tracer();
  use_torchs_profiler();
  fake_fail("cuptiActivityRegisterTimestampCallback", CUPTI_ERROR_NOT_COMPATIBLE, 0);
  expect_no_times(traced);
  fake_reset();
  api().cuptiActivityRegisterTimestampCallback([]() -> std::uint64_t { return 1ULL << 62; });  // of nobody knows whom
  expect_no_times(traced);
  EXPECT_EQ(fake_calls("cuptiActivityRegisterTimestampCallback"), 1) << "an unknown clock is left alone";
}

// CUPTI converts times when it hands records over, by the clock that is there then.
TEST_F(BesideTorch, WhenItBeginsWithinATraceTheTimesAreNotUsed) {
  Tracer traced = tracer();
  traced.start();
  kernel("before");
  use_torchs_profiler();
  EXPECT_SAYS("began within this trace and replaced CUPTI's clock", message_of<CollectorError>([&] { traced.stop(); }));
  expect_nothing_left();
  expect_true_times(traced);
}

// As where the clock was set once and for all before. CUPTI has one pair of callbacks.
TEST_F(BesideTorch, RecordsThatItTakesWithinATraceAreMissed) {
  fake_set("activity_keeps", 1);
  Tracer traced = tracer();
  const DeviceTrace found = trace(traced, [](LaunchMarker*) {
    kernel("before");
    api().cuptiActivityFlushAll(0);
    take_records();
    kernel("taken");
  });
  EXPECT_EQ(places(found), (Places{{"before", 0}}));
  EXPECT_SAYS("other-profiler: another profiler (torch.profiler, for one) began within this trace and took its records",
              all_notes(found));
  EXPECT_EQ(trace(traced, [](LaunchMarker*) { kernel(); }).records.size(), 1U) << "the next trace has them again";
}

// Some records are by another clock, which runs 20 ms ahead.
TEST_F(BesideTorch, RecordsOutsideOfTheTraceAreLeftOutOrMakeItNone) {
  const auto launched = [](int true_ones) {
    return [true_ones](LaunchMarker*) {
      for (int i = 0; i < true_ones; ++i) kernel();
      api().cuptiActivityRegisterTimestampCallback(
          []() -> std::uint64_t { return std::uint64_t{20'000'000} + roofprof_simulated_time(); });
      kernel("outside");
      api().cuptiActivityRegisterTimestampCallback([]() -> std::uint64_t { return roofprof_simulated_time(); });
    };
  };
  Tracer traced = tracer();
  const DeviceTrace few = trace(traced, launched(3));
  EXPECT_EQ(few.records.size(), 3U);
  EXPECT_EQ(few.dropped, 1);
  EXPECT_SAYS("kernels-missing: of 4 kernels and copies 1 have times outside of the trace", all_notes(few));
  EXPECT_SAYS("1 have times outside of the trace", message_of<CollectorError>([&] { trace(traced, launched(1)); }));
}

}  // namespace
}  // namespace roofprof::cupti
