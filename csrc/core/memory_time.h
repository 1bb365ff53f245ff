#pragma once
// The time that an op's bytes take: from how far they come, and the roof there.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/profile_data.h"

namespace roofprof {

// Of one memory level: the time that its bytes take, and these bytes.
struct LevelShare {
  double seconds = 0;
  double bytes = 0;
  LevelShare& operator+=(const LevelShare& other) {
    seconds += other.seconds;
    bytes += other.bytes;
    return *this;
  }
};

// Bytes of a bucket that come from equally far, all calls together.
struct MemoryPart {
  MemoryTraffic traffic;
  std::int64_t working_set_bytes = 0;  // the distance of their last touch; where it is not known, one call's footprint
};
std::vector<MemoryPart> memory_parts(const OpBucket& bucket);
// Whether the distance of its bytes, or of some of them, is not known.
bool stands_at_footprint(const OpBucket& bucket);

struct MemoryTime {
  std::map<std::string, LevelShare> at_level;
  std::optional<double> spread;  // of the roofs, the largest
};
// What copies between host and device is held against the host link and what it copies instead. Empty where a part has
// no roof.
std::optional<MemoryTime> memory_time(const OpBucket& bucket, const Ceilings& ceilings);
// What all parts reach together, named after the level that takes most of the time.
std::optional<MemoryRoof> memory_roof(const OpBucket& bucket, const Ceilings& ceilings);

}  // namespace roofprof
