#pragma once
// The time that an op's bytes take: from how far they come, and the roof there.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/profile.h"

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

// Traffic of all calls together, and the roof that holds it.
struct HeldTraffic {
  MemoryTraffic traffic;
  MemoryRoof roof;
};
// Returns the parts of the op's bytes by the roof that holds each. Where its kernels were counted, the part that DRAM
// was seen to move is held against DRAM and the rest against the last cache, reads and writes each for themselves if
// they were counted apart; else what memory_parts() says. Empty where a part has no roof. Not for copies between host
// and device.
std::optional<std::vector<HeldTraffic>> held_traffic(const OpBucket& bucket, const Ceilings& ceilings);

struct MemoryTime {
  std::map<std::string, LevelShare> at_level;
  std::optional<double> spread;  // of the roofs, the largest
};
// Returns the time that the op's memory traffic takes. Copies between host and device count against the host link only.
// Empty where a part has no roof.
std::optional<MemoryTime> memory_time(const OpBucket& bucket, const Ceilings& ceilings);
// Returns the seconds that the bytes that were counted take at DRAM's bandwidth; of copies and fills, which have no
// counters, those of memory_time(). Empty where the op's kernels were not counted, or a roof is missing.
std::optional<double> counted_seconds(const OpBucket& bucket, const Ceilings& ceilings);
// Returns the roof that all parts reach together, named after the level that takes most of the time.
std::optional<MemoryRoof> memory_roof(const OpBucket& bucket, const Ceilings& ceilings);

}  // namespace roofprof
