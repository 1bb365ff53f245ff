#include "core/device/device_launches.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <tuple>

namespace roofprof {

namespace {

const LaunchPlace kNowhere;  // outside of the model, by no op

}  // namespace

void check_places(const std::vector<LaunchPlace>& places, const ProfileData& data) {
  for (const auto& place : places) {
    if (place.module < 0 || place.module >= std::ssize(data.modules)) {
      throw std::invalid_argument("a launch's place names module " + std::to_string(place.module) +
                                  ", which the profile has not");
    }
    if (place.bucket >= std::ssize(data.ops)) {
      throw std::invalid_argument("a launch's place names op " + std::to_string(place.bucket) +
                                  ", which the profile has not");
    }
  }
}

Launches launches_of(const DeviceRun& run, const ProfileData& data) {
  check_places(run.places, data);
  Launches launches;
  launches.in_order.reserve(run.trace.records.size());
  const LaunchPlace* const nowhere = run.places.empty() ? &kNowhere : &run.places.front();
  for (const auto& record : run.trace.records) {
    if (record.kind == KernelKind::kernel && record.name >= run.trace.names.size()) {
      throw std::invalid_argument("a kernel's record has name " + std::to_string(record.name) +
                                  ", which its trace has not");
    }
    if (record.end_ns < record.start_ns) {
      ++launches.backwards;
      continue;
    }
    const bool known = record.launch != kNoLaunch && record.launch < run.places.size();
    launches.in_order.push_back({&record, known ? &run.places[record.launch] : nowhere, known});
  }
  const auto order = [](const Launch& launch) {
    return std::tie(launch.record->correlation, launch.record->graph_node, launch.record->start_ns);
  };
  std::stable_sort(launches.in_order.begin(), launches.in_order.end(),
                   [&](const Launch& a, const Launch& b) { return order(a) < order(b); });
  return launches;
}

}  // namespace roofprof
