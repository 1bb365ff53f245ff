#include "analysis/gainable_idle.h"

#include <algorithm>

#include "core/idle.h"
#include "core/median.h"

namespace roofprof {

namespace {

// 0-1: a device that is busy for so much of its time has no gaps worth filling.
constexpr double kNearlyAlwaysBusy = 0.95;

// Returns the idle time that observing may have caused: a change of the program does not gain it.
std::int64_t observers_own_ns(const Profile& data) {
  std::int64_t launches = 0;
  for (const auto& kernel : data.device->kernels) launches = saturating_add(launches, kernel.instances);
  return idle_by_observing(data.device->timeline, launches);
}

// Returns the time in which devices ran nothing between two of their launches. Reports of an older roofprof have all
// idle time there.
std::int64_t idle_between_ns(const RooflineRow& total) {
  return total.idle_between_ns.value_or(total.idle_ns.value_or(0));
}

}  // namespace

std::int64_t idle_outside_ns(const RooflineRow& total) { return total.idle_ns.value_or(0) - idle_between_ns(total); }

std::int64_t device_span_ns(const RooflineRow& total) {
  return saturating_add(total.busy_ns.value_or(0), idle_between_ns(total));
}

std::int64_t gainable_idle_ns(const Profile& data, const RooflineRow& total) {
  const auto busy_ns = total.busy_ns.value_or(0);
  auto idle_ns = idle_between_ns(total);
  if (const auto& bare_ns = data.run.runs.bare_ns;
      data.device->timeline.idle_basis != IdleBasis::bare && !bare_ns.empty()) {
    idle_ns = std::min(idle_ns, static_cast<std::int64_t>(median(bare_ns)) - busy_ns);
  } else {
    idle_ns -= observers_own_ns(data);
  }
  const auto rest = (1 / kNearlyAlwaysBusy - 1) * static_cast<double>(busy_ns);
  return static_cast<double>(idle_ns) <= rest ? 0 : idle_ns;
}

std::int64_t bare_call_ns(const Profile& data, const RooflineRow& total) {
  if (!data.run.runs.bare_ns.empty()) return static_cast<std::int64_t>(median(data.run.runs.bare_ns));
  const auto time_ns = total.time_ns.value_or(0);
  if (data.device) return saturating_add(time_ns, gainable_idle_ns(data, total));
  return std::min(time_ns, total.wall_ns.value_or(time_ns));  // threads that work at once have more time
}

}  // namespace roofprof
