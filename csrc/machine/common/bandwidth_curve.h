#pragma once
// Finds the memory levels in a bandwidth curve: pure arithmetic on measured points; std only.

#include <cstdint>
#include <string>
#include <vector>

#include "roofprof/ceilings.h"

namespace roofprof {

// The best of each working set and mix over rounds of the same working sets, and how far the rounds lie apart. A
// larger working set never has more bandwidth than a smaller one: what it reached, the smaller one can reach.
std::vector<BandwidthPoint> best_of(const std::vector<std::vector<BandwidthPoint>>& rounds);

// A cache that the system states: a hint, as virtual machines state caches that their guests have no share of.
struct StatedCache {
  std::string level;  // "L2"
  std::int64_t capacity_bytes = 0;
};

// A flat part of a curve, between two falls.
struct Plateau {
  std::string level;            // "L1", "L2", "L3" or, for the last, "DRAM"
  std::int64_t from_bytes = 0;  // its first and its last working set
  std::int64_t to_bytes = 0;
  std::int64_t capacity_bytes = 0;  // half-way down the fall after it; 0: without bound, the last
  double bytes_per_second = 0;      // of the best of read, triad and copy in the middle of it
  std::string kernel;               // the one that it is
  double spread = 0;
};

// Returns the plateaus from the smallest to the largest; at least one where the curve has points. A plateau gets the
// name of the stated cache whose size is nearest to its capacity, in order; without stated caches the names count from
// L1.
std::vector<Plateau> plateaus(const std::vector<BandwidthPoint>& curve, const std::vector<StatedCache>& stated);

}  // namespace roofprof
