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
DeviceWork seen() {
  DeviceWork work;
  work.kernels = {kernel_on(0)};
  work.timeline = {
      .modules = {{.module = 0, .busy_ns = 1'000}, {.module = 3, .idle_ns = 100}, {.module = 4, .idle_ns = 200}},
      .busy_ns = 1'000,
      .idle_before_ns = 600,
      .idle_after_ns = 100,
      .idle_basis = IdleBasis::seen};
  return work;
}

TEST(BareIdle, AllGapsAreScaledByOneFactor) {
  const auto bare = at_bare_speed(seen(), {1'240, 1'250, 9'999});  // 250 of 1,000
  EXPECT_EQ(bare.idle_basis, IdleBasis::bare);
  EXPECT_EQ(bare.idle_before_ns, 150);
  EXPECT_EQ(bare.modules[1].idle_ns, 25);
  EXPECT_EQ(bare.modules[2].idle_ns, 50);
  EXPECT_EQ(bare.idle_after_ns, 25);
  EXPECT_EQ(bare.modules[0].busy_ns, 1'000);
}

TEST(BareIdle, OfSeveralDevicesOfALongerCallAndWithoutGaps) {
  auto work = seen();
  const auto none = at_bare_speed(work, {900});
  EXPECT_EQ(none.idle_before_ns + none.idle_after_ns + none.modules[1].idle_ns + none.modules[2].idle_ns, 0);
  work.kernels.push_back(kernel_on(1));
  work.kernels.push_back(kernel_on(1));
  const auto of_two = at_bare_speed(work, {1'000});  // 2 x 1,000 - 1,000: as seen
  EXPECT_EQ(of_two.idle_before_ns, 600);
  EXPECT_EQ(of_two.modules[2].idle_ns, 200);
  work = seen();
  auto& timeline = work.timeline;
  timeline.idle_before_ns = timeline.idle_after_ns = timeline.modules[1].idle_ns = timeline.modules[2].idle_ns = 0;
  EXPECT_EQ(at_bare_speed(work, {1'300}).idle_before_ns, 300);
}

TEST(BareIdle, BusyAndIdleAreTheBareCallToTheNanosecond) {
  std::mt19937 random(44);
  for (int i = 0; i < 200; ++i) {
    auto work = seen();
    work.timeline.modules.resize(100);
    for (auto& time : work.timeline.modules) time.idle_ns = static_cast<std::int64_t>(random() % 10'000);
    work.timeline.idle_before_ns = static_cast<std::int64_t>(random() % 10'000);
    const std::int64_t bare_ns = 1'000 + static_cast<std::int64_t>(random() % 1'000'000);
    const auto bare = at_bare_speed(work, {bare_ns});
    std::int64_t sum = bare.busy_ns + bare.idle_before_ns + bare.idle_after_ns;
    for (const auto& time : bare.modules) {
      EXPECT_GE(time.idle_ns, 0);
      sum += time.idle_ns;
    }
    EXPECT_EQ(sum, bare_ns);
  }
}

// An older report, which had bare calls: all gaps are in the modules' times.
Profile older() {
  Profile profile;
  auto work = seen();
  work.timeline.modules[1].idle_ns += std::exchange(work.timeline.idle_before_ns, 0);
  work.timeline.modules[0].idle_ns += std::exchange(work.timeline.idle_after_ns, 0);
  work.timeline.idle_basis = IdleBasis::unsettled;
  profile.device = std::move(work);
  profile.run.runs.bare_ns = {1'250};
  return profile;
}

TEST(SettledIdle, OfAnOlderReportWithBareCallsIsAtBareSpeed) {
  auto profile = older();
  settle_idle(profile);
  const auto& timeline = profile.device->timeline;
  EXPECT_EQ(timeline.idle_basis, IdleBasis::bare);
  EXPECT_EQ(timeline.modules[0].idle_ns, 25);
  EXPECT_EQ(timeline.modules[1].idle_ns, 175);
  EXPECT_EQ(timeline.modules[2].idle_ns, 50);
}

TEST(SettledIdle, ElseItIsAsSeen) {
  const auto settled = [](auto change) {
    auto profile = older();
    change(profile);
    const auto before = profile.device->timeline.modules;
    settle_idle(profile);
    EXPECT_EQ(profile.device->timeline.modules, before);
    return profile.device->timeline.idle_basis;
  };
  EXPECT_EQ(settled([](Profile& data) { data.run.runs.bare_ns.clear(); }), IdleBasis::seen);
  EXPECT_EQ(settled([](Profile& data) { data.origin.imported.emplace(); }), IdleBasis::seen);
  EXPECT_EQ(settled([](Profile& data) { add_note(data.notes, "replayed", "of a file"); }), IdleBasis::seen);
  EXPECT_EQ(settled([](Profile& data) { add_note(data.notes, "simulated-device", "no GPU"); }), IdleBasis::seen);
  EXPECT_EQ(settled([](Profile& data) { data.device.make().timeline.idle_basis = IdleBasis::bare; }), IdleBasis::bare);
  EXPECT_EQ(settled([](Profile& data) { data.device.reset(); }), IdleBasis::unsettled);
}

TEST(IdleByObserving, IsNothingAtBareSpeed) {
  auto timeline = seen().timeline;
  EXPECT_EQ(idle_by_observing(timeline, 10), 190'000);
  timeline.idle_basis = IdleBasis::observing;
  timeline.observing_ns = 2'000;
  EXPECT_EQ(idle_by_observing(timeline, 10), 60'000);
  timeline.idle_basis = IdleBasis::bare;
  EXPECT_EQ(idle_by_observing(timeline, 10), 0);
}

}  // namespace
}  // namespace roofprof
