#include "core/idle.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/median.h"

namespace roofprof {

namespace {

// What torch.profiler with shapes, FLOPs and stacks added to each kernel of a ResNet-50 with one image on the slow host
// of tests/data/gpu/h100, where an op of eager mode takes 32 us: 1.01 times 4.43 ms for 239 kernels, by the median of
// rounds (docs/gpu.md). Without stacks it was half of that; usual hosts are faster.
constexpr std::int64_t kRecordedLaunchNs = 19'000;
// The calibration makes small launches. There, roofprof cost a kernel of that ResNet-50 2.7 times what it cost an
// addition (18.5 and 6.8 us): more ops are around it, and it takes more calls of the driver.
constexpr std::int64_t kDearerThanMeasured = 3;

class Scale {
 public:
  Scale(std::int64_t seen_ns, std::int64_t wanted_ns)
      : factor_(seen_ns > 0 ? static_cast<double>(wanted_ns) / static_cast<double>(seen_ns) : 0) {}

  // The parts add up to what is wanted: each is rounded with those before it.
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

std::int64_t idle_of(const ProfileData& data) {
  std::int64_t sum = saturating_add(data.idle_before_ns, data.idle_after_ns);
  for (const auto& time : data.device_times) sum = saturating_add(sum, time.idle_ns);
  return sum;
}

}  // namespace

std::int64_t devices_of(const ProfileData& data) {
  std::set<std::int64_t> devices;
  for (const auto& kernel : data.kernels) devices.insert(kernel.device);
  return std::ssize(devices);
}

std::int64_t idle_by_observing(const ProfileData& data, std::int64_t launches) {
  switch (data.idle_basis) {
    case IdleBasis::bare:
      return 0;
    case IdleBasis::observing:
      return saturating_multiply(launches, saturating_multiply(kDearerThanMeasured, data.observing_ns));
    case IdleBasis::seen:
    case IdleBasis::unsettled:
      break;
  }
  return saturating_multiply(launches, kRecordedLaunchNs);
}

ProfileData at_bare_speed(ProfileData data) {
  const auto wall_ns = std::llround(static_cast<double>(devices_of(data)) * median(data.runs.bare_ns));
  const auto wanted_ns = std::max<std::int64_t>(wall_ns - data.busy_ns, 0);
  const auto seen_ns = idle_of(data);
  data.idle_basis = IdleBasis::bare;
  data.observing_ns = 0;
  if (seen_ns == 0) {
    data.idle_before_ns = wanted_ns;
    return data;
  }
  Scale scale(seen_ns, wanted_ns);
  scale.apply(data.idle_before_ns);
  for (auto& time : data.device_times) scale.apply(time.idle_ns);
  scale.apply(data.idle_after_ns);
  return data;
}

ProfileData with_settled_idle(ProfileData data) {
  if (data.idle_basis != IdleBasis::unsettled || !data.device_timed || data.device_times.empty()) return data;
  const bool other_clock =
      find_note(data.notes, "simulated-device") != nullptr || find_note(data.notes, "replayed") != nullptr;
  const bool one_call = !data.runs.bare_ns.empty() && !data.imported && !data.part && data.merged() == nullptr;
  if (one_call && !other_clock) return at_bare_speed(std::move(data));
  data.idle_basis = IdleBasis::seen;
  return data;
}

}  // namespace roofprof
