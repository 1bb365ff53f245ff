#pragma once
// Finds the module and op of a profile that a launch belongs to.

#include <cstdint>
#include <string>
#include <vector>

#include "core/pass.h"
#include "core/profile_data.h"
#include "core/run_record.h"

namespace roofprof {

struct LaunchOwner {
  Owner owner = {kOutside};
  std::string op;            // empty: the module itself, no op was seen around the launch
  std::int64_t bucket = -1;  // index into ProfileData::ops; -1: none, or more than one
};

// Returns the owners by LaunchId.
std::vector<LaunchOwner> launch_owners(const std::vector<LaunchKey>& launches, const std::vector<Pass::Op>& ops);

}  // namespace roofprof
