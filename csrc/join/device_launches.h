#pragma once
// A trace's records in launch order, each with what it belongs to.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device_data.h"
#include "join/launch_owners.h"

namespace roofprof {

struct Launch {
  const KernelRecord* record;
  const LaunchOwner* owner;
  bool attributed;  // false: launched outside of every scope, or in one that the run does not know

  std::int64_t duration_ns() const { return record->end_ns - record->start_ns; }
};

struct Launches {
  const DeviceTrace* trace = nullptr;
  std::vector<Launch> in_order;  // by correlation; nodes of one graph by node, then by start
  std::int64_t backwards = 0;    // records that end before they start: left out

  // Records that are not in here because their start or end is not known.
  std::int64_t incomplete() const { return trace->incomplete + backwards; }
};

// Throws std::invalid_argument where an owner names a module or op that the profile has not.
void check_owners(const std::vector<LaunchOwner>& owners, std::size_t modules, std::size_t ops);

// Refers to both. Throws std::invalid_argument where a kernel's record has a name that the trace has not.
Launches launches_of(const DeviceTrace& trace, const std::vector<LaunchOwner>& owners);

}  // namespace roofprof
