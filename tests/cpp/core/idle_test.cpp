// Idle time at bare speed: closed forms.

#include "core/idle.h"

#include <gtest/gtest.h>

#include <random>

namespace roofprof {
namespace {

KernelBucket kernel_on(std::int64_t device) {
  KernelBucket kernel;
  kernel.name = "k";
  kernel.device = device;
  return kernel;
}

// 600 ns before the first launch, 100 and 200 between launches, 100 after the last; 1,000 busy.
ProfileData seen() {
  ProfileData data;
  data.device_timed = true;
  data.kernels = {kernel_on(0)};
  data.device_times = {{.module = 0, .busy_ns = 1'000}, {.module = 3, .idle_ns = 100}, {.module = 4, .idle_ns = 200}};
  data.busy_ns = 1'000;
  data.idle_before_ns = 600;
  data.idle_after_ns = 100;
  data.idle_basis = IdleBasis::seen;
  return data;
}

TEST(BareIdle, AllGapsAreScaledByOneFactor) {
  auto data = seen();
  data.runs.bare_ns = {1'240, 1'250, 9'999};
  data = at_bare_speed(std::move(data));  // 250 of 1,000
  EXPECT_EQ(data.idle_basis, IdleBasis::bare);
  EXPECT_EQ(data.idle_before_ns, 150);
  EXPECT_EQ(data.device_times[1].idle_ns, 25);
  EXPECT_EQ(data.device_times[2].idle_ns, 50);
  EXPECT_EQ(data.idle_after_ns, 25);
  EXPECT_EQ(data.device_times[0].busy_ns, 1'000);
}

TEST(BareIdle, EachDeviceHasTheWholeCall) {
  auto data = seen();
  data.kernels.push_back(kernel_on(1));
  data.kernels.push_back(kernel_on(1));
  data.runs.bare_ns = {1'000};
  data = at_bare_speed(std::move(data));  // 2 x 1,000 - 1,000: as seen
  EXPECT_EQ(data.idle_before_ns, 600);
  EXPECT_EQ(data.device_times[2].idle_ns, 200);
}

TEST(BareIdle, ACallThatIsBusyForLongerHasNone) {
  auto data = seen();
  data.runs.bare_ns = {900};
  data = at_bare_speed(std::move(data));
  EXPECT_EQ(data.idle_before_ns + data.idle_after_ns + data.device_times[1].idle_ns + data.device_times[2].idle_ns, 0);
}

TEST(BareIdle, WithoutAGapItIsBeforeTheFirstLaunch) {
  auto data = seen();
  data.idle_before_ns = data.idle_after_ns = data.device_times[1].idle_ns = data.device_times[2].idle_ns = 0;
  data.runs.bare_ns = {1'300};
  EXPECT_EQ(at_bare_speed(data).idle_before_ns, 300);
}

TEST(BareIdle, BusyAndIdleAreTheBareCallToTheNanosecond) {
  std::mt19937 random(44);
  for (int i = 0; i < 200; ++i) {
    auto data = seen();
    data.device_times.resize(100);
    for (auto& time : data.device_times) time.idle_ns = static_cast<std::int64_t>(random() % 10'000);
    data.idle_before_ns = static_cast<std::int64_t>(random() % 10'000);
    data.runs.bare_ns = {1'000 + static_cast<std::int64_t>(random() % 1'000'000)};
    data = at_bare_speed(std::move(data));
    std::int64_t sum = data.busy_ns + data.idle_before_ns + data.idle_after_ns;
    for (const auto& time : data.device_times) {
      EXPECT_GE(time.idle_ns, 0);
      sum += time.idle_ns;
    }
    EXPECT_EQ(sum, data.runs.bare_ns.front());
  }
}

// An older report: all gaps are in the modules' times.
ProfileData older() {
  auto data = seen();
  data.device_times[1].idle_ns += std::exchange(data.idle_before_ns, 0);
  data.device_times[0].idle_ns += std::exchange(data.idle_after_ns, 0);
  data.idle_basis = IdleBasis::unsettled;
  return data;
}

TEST(SettledIdle, OfAnOlderReportWithBareCallsIsAtBareSpeed) {
  auto data = older();
  data.runs.bare_ns = {1'250};
  data = with_settled_idle(std::move(data));
  EXPECT_EQ(data.idle_basis, IdleBasis::bare);
  EXPECT_EQ(data.device_times[0].idle_ns, 25);
  EXPECT_EQ(data.device_times[1].idle_ns, 175);
  EXPECT_EQ(data.device_times[2].idle_ns, 50);
}

TEST(SettledIdle, ElseItIsAsSeen) {
  const auto settled = [](auto change) {
    auto data = older();
    data.runs.bare_ns = {1'250};
    change(data);
    auto after = with_settled_idle(data);
    EXPECT_EQ(after.device_times, data.device_times);
    return after.idle_basis;
  };
  EXPECT_EQ(settled([](ProfileData& data) { data.runs.bare_ns.clear(); }), IdleBasis::seen);
  EXPECT_EQ(settled([](ProfileData& data) { data.imported.emplace(); }), IdleBasis::seen);
  EXPECT_EQ(settled([](ProfileData& data) { add_note(data.notes, "replayed", "of a file"); }), IdleBasis::seen);
  EXPECT_EQ(settled([](ProfileData& data) { add_note(data.notes, "simulated-device", "no GPU"); }), IdleBasis::seen);
  EXPECT_EQ(settled([](ProfileData& data) { data.idle_basis = IdleBasis::bare; }), IdleBasis::bare);
  EXPECT_EQ(settled([](ProfileData& data) { data.device_timed = false; }), IdleBasis::unsettled);
}

TEST(IdleByObserving, IsNothingAtBareSpeed) {
  auto data = seen();
  EXPECT_EQ(idle_by_observing(data, 10), 190'000);
  data.idle_basis = IdleBasis::observing;
  data.observing_ns = 2'000;
  EXPECT_EQ(idle_by_observing(data, 10), 60'000);
  data.idle_basis = IdleBasis::bare;
  EXPECT_EQ(idle_by_observing(data, 10), 0);
}

}  // namespace
}  // namespace roofprof
