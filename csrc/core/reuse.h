#pragma once
// From how far the bytes of ops come: how much memory was touched since theirs was touched last.

#include <cstdint>
#include <vector>

namespace roofprof {

// What of an op's bytes comes from the same distance: so much memory, itself included, was touched since they were
// touched last. A memory that holds the distance still has them.
struct ReusedBytes {
  std::int64_t distance_bytes = 0;
  // As Work counts them.
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t updated_bytes = 0;

  bool operator==(const ReusedBytes&) const = default;
};

// By rising distance. Distances between two powers of two are one part, whose distance is the mean of its bytes':
// calls of an op are many, and their distances differ a little. Empty: nothing is known.
using Reuse = std::vector<ReusedBytes>;

void add_reuse(Reuse& sum, const ReusedBytes& part);
void add_reuse(Reuse& sum, const Reuse& more);

}  // namespace roofprof
