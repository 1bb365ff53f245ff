#include "join/device_launches.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace roofprof {

namespace {

const LaunchOwner kNobody;  // outside of the model, by no op

}  // namespace

void check_owners(const std::vector<LaunchOwner>& owners, std::size_t modules, std::size_t ops) {
  for (const auto& owner : owners) {
    if (owner.owner.module < 0 || index_of(owner.owner.module) >= modules) {
      throw std::invalid_argument("a launch's place names module " + std::to_string(owner.owner.module) +
                                  ", which the profile has not");
    }
    if (std::cmp_greater_equal(owner.bucket, ops)) {
      throw std::invalid_argument("a launch's place names op " + std::to_string(owner.bucket) +
                                  ", which the profile has not");
    }
  }
}

Launches launches_of(const DeviceTrace& trace, const std::vector<LaunchOwner>& owners) {
  Launches launches;
  launches.trace = &trace;
  launches.in_order.reserve(trace.records.size());
  const LaunchOwner* const nobody = owners.empty() ? &kNobody : &owners.front();
  for (const auto& record : trace.records) {
    if (record.kind == KernelKind::kernel && record.name >= trace.names.size()) {
      throw std::invalid_argument("a kernel's record has name " + std::to_string(record.name) +
                                  ", which its trace has not");
    }
    if (record.end_ns < record.start_ns) {
      ++launches.backwards;
      continue;
    }
    const auto owner = owner_of_launch(record.launch);
    const bool known = owner != kNoLaunch && owner < owners.size();
    launches.in_order.push_back({&record, known ? &owners[owner] : nobody, known});
  }
  const auto order = [](const Launch& launch) {
    return std::tie(launch.record->correlation, launch.record->graph_node, launch.record->start_ns);
  };
  std::stable_sort(launches.in_order.begin(), launches.in_order.end(),
                   [&](const Launch& a, const Launch& b) { return order(a) < order(b); });
  return launches;
}

}  // namespace roofprof
