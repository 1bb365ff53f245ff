#pragma once
// The time that an op's bytes take: from how far they come, and the roof there.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/profile_data.h"

namespace roofprof {

// The time that the bytes of one memory level take, and these bytes.
struct LevelShare {
  double seconds = 0;
  double bytes = 0;
  LevelShare& operator+=(const LevelShare& other) {
    seconds += other.seconds;
    bytes += other.bytes;
    return *this;
  }
};

// Bytes of a bucket that have the same distance, all calls together.
struct MemoryPart {
  MemoryTraffic traffic;
  std::int64_t working_set_bytes = 0;  // the distance of their last touch; where it is not known, one call's footprint
};
std::vector<MemoryPart> memory_parts(const OpBucket& bucket);
// Returns whether the reuse distance of the op's bytes, or of more than a negligible part of them, is unknown.
bool stands_at_footprint(const OpBucket& bucket);

struct MemoryTime {
  std::map<std::string, LevelShare> at_level;
  std::optional<double> spread;  // of the roofs, the largest
};
// Returns the time that the op's memory traffic takes. Copies between host and device count against the host link only.
// Empty where a part has no roof.
std::optional<MemoryTime> memory_time(const OpBucket& bucket, const Ceilings& ceilings);
// Returns the roof that all parts reach together, named after the level that takes most of the time.
std::optional<MemoryRoof> memory_roof(const OpBucket& bucket, const Ceilings& ceilings);

}  // namespace roofprof
