#pragma once
// A run's records in launch order, each with the place that it was launched from.

#include <cstdint>
#include <vector>

#include "core/device/device_join.h"

namespace roofprof {

struct Launch {
  const KernelRecord* record;
  const LaunchPlace* place;
  bool attributed;  // false: launched outside of every scope, or in one that the run does not know

  std::int64_t duration_ns() const { return record->end_ns - record->start_ns; }
};

struct Launches {
  std::vector<Launch> in_order;  // by correlation; nodes of one graph by node, then by start
  std::int64_t backwards = 0;    // records that end before they start: left out
};

// Throws std::invalid_argument where a place names a module or op that the profile has not.
void check_places(const std::vector<LaunchPlace>& places, const ProfileData& data);

// Refers to the run. Throws std::invalid_argument as check_places does, and where a kernel's record has a name that the
// trace has not.
Launches launches_of(const DeviceRun& run, const ProfileData& data);

}  // namespace roofprof
