#pragma once
// Finds the module and op of a profile that a launch belongs to.

#include <cstdint>
#include <string>
#include <vector>

#include "core/profile_data.h"
#include "core/run_record.h"

namespace roofprof {

struct LaunchOwner {
  Owner owner = {kOutside};
  std::string op;            // empty: the module itself, no op was seen around the launch
  std::int64_t bucket = -1;  // index into ProfileData::ops; -1: none, or more than one
};

// Returns the owners by LaunchId. `inputs` are the keys of the first ops (HostProfile::inputs).
std::vector<LaunchOwner> launch_owners(const std::vector<LaunchKey>& launches, const std::vector<OpBucket>& ops,
                                       const std::vector<OpKey>& inputs);

}  // namespace roofprof
