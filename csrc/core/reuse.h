#pragma once
// Holds the reuse distances of the bytes of ops: how much memory was touched since their memory was touched last.

#include <cstdint>
#include <vector>

namespace roofprof {

// The part of an op's bytes at one distance: `distance_bytes` of memory, these bytes included, were touched since they
// were touched last. A memory that holds the distance still has them.
struct ReusedBytes {
  std::int64_t distance_bytes = 0;
  // Counted as Work counts them.
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t updated_bytes = 0;

  bool operator==(const ReusedBytes&) const = default;
};

// Sorted by rising distance. Distances between two powers of two make one part, whose distance is the mean of its
// bytes': calls of an op are many, and their distances differ a little. Empty: nothing is known.
using Reuse = std::vector<ReusedBytes>;

void add_reuse(Reuse& sum, const ReusedBytes& part);
void add_reuse(Reuse& sum, const Reuse& more);

}  // namespace roofprof
