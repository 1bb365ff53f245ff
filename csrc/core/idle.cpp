#include "core/idle.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/median.h"

namespace roofprof {

namespace {

// The time that torch.profiler with shapes, FLOPs and stacks added to each kernel of a ResNet-50 with one image on the
// slow host of tests/data/gpu/h100, where an op of eager mode takes 32 us: 1.01 times 4.43 ms for 239 kernels, by the
// median of rounds (docs/gpu.md). Without stacks it was half of that; usual hosts are faster.
constexpr std::int64_t kRecordedLaunchNs = 19'000;
// The calibration makes small launches. There, roofprof cost a kernel of that ResNet-50 2.7 times what it cost an
// addition (18.5 and 6.8 us): more ops are around it, and it takes more calls of the driver.
constexpr std::int64_t kDearerThanMeasured = 3;

class Scale {
 public:
  Scale(std::int64_t seen_ns, std::int64_t wanted_ns)
      : factor_(seen_ns > 0 ? static_cast<double>(wanted_ns) / static_cast<double>(seen_ns) : 0) {}

  // Scales one part. The parts add up to the wanted sum: each is rounded with those before it.
  void apply(std::int64_t& part) {
    const auto before = scaled(seen_);
    seen_ = saturating_add(seen_, part);
    part = scaled(seen_) - before;
  }

 private:
  std::int64_t scaled(std::int64_t ns) const { return std::llround(factor_ * static_cast<double>(ns)); }

  double factor_;
  std::int64_t seen_ = 0;
};

std::int64_t idle_of(const DeviceTimeline& timeline) {
  std::int64_t sum = saturating_add(timeline.idle_before_ns, timeline.idle_after_ns);
  for (const auto& time : timeline.modules) sum = saturating_add(sum, time.idle_ns);
  return sum;
}

}  // namespace

std::int64_t devices_of(const DeviceWork& work) {
  std::set<std::int64_t> devices;
  for (const auto& kernel : work.kernels) devices.insert(kernel.device);
  return std::ssize(devices);
}

std::int64_t idle_by_observing(const DeviceTimeline& timeline, std::int64_t launches) {
  switch (timeline.idle_basis) {
    case IdleBasis::bare:
      return 0;
    case IdleBasis::observing:
      return saturating_multiply(launches, saturating_multiply(kDearerThanMeasured, timeline.observing_ns));
    case IdleBasis::seen:
    case IdleBasis::unsettled:
      break;
  }
  return saturating_multiply(launches, kRecordedLaunchNs);
}

DeviceTimeline at_bare_speed(const DeviceWork& work, const std::vector<std::int64_t>& bare_ns) {
  auto timeline = work.timeline;
  const auto wall_ns = std::llround(static_cast<double>(devices_of(work)) * median(bare_ns));
  const auto wanted_ns = std::max<std::int64_t>(wall_ns - timeline.busy_ns, 0);
  const auto seen_ns = idle_of(timeline);
  timeline.idle_basis = IdleBasis::bare;
  timeline.observing_ns = 0;
  if (seen_ns == 0) {
    timeline.idle_before_ns = wanted_ns;
    return timeline;
  }
  Scale scale(seen_ns, wanted_ns);
  scale.apply(timeline.idle_before_ns);
  for (auto& time : timeline.modules) scale.apply(time.idle_ns);
  scale.apply(timeline.idle_after_ns);
  return timeline;
}

void settle_idle(Profile& profile) {
  const auto& runs = profile.run.runs;
  const auto& origin = profile.origin;
  if (!profile.device || profile.device->timeline.modules.empty()) return;
  auto& timeline = profile.device.make().timeline;
  if (timeline.idle_basis != IdleBasis::unsettled) return;
  const bool other_clock =
      find_note(profile.notes, "simulated-device") != nullptr || find_note(profile.notes, "replayed") != nullptr;
  const bool one_call = !runs.bare_ns.empty() && !origin.imported && !origin.part && origin.merged() == nullptr;
  if (one_call && !other_clock) {
    timeline = at_bare_speed(*profile.device, runs.bare_ns);
  } else {
    timeline.idle_basis = IdleBasis::seen;
  }
}

}  // namespace roofprof
