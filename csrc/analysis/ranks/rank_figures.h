#pragma once
// Of a merged profile: the times of rows over ranks, and which rank is slow.

#include <optional>
#include <string>
#include <vector>

#include "core/profile_data.h"

namespace roofprof {

// Returns the ranks of a merged profile; none of another one.
const std::vector<Rank>& ranks_of(const ProfileData& data);

// `rows` are those of row_modules(data).
void add_times_over_ranks(const ProfileData& data, std::vector<RooflineRow>& rows, RooflineRow& total);

// Of a line that stands for several equal modules, the mean of what each has; the slowest rank where it is the same for
// all.
void add_mean_over_ranks(const std::vector<const RooflineRow*>& modules, RooflineRow& mean);

// A rank that computes longer than the median one.
struct SlowRank {
  std::int64_t rank = 0;
  double ratio = 1;                  // its time in computing ops / that of the median rank
  std::vector<std::string> modules;  // paths, the largest difference to the median rank first
};

// A rank that the others wait for.
struct LateRank {
  std::int64_t rank = 0;
  std::int64_t waiting_ns = 0;  // in collectives
  std::int64_t others_ns = 0;   // that the others wait, the median
};

// The one that waits least, where the others wait longer than it by more than half the spread of the steps.
std::optional<LateRank> late_rank(const ProfileData& data);

// Of those whose time in computing ops exceeds the median rank's by more than half the spread of the steps; without
// steps to tell that spread by there is none. Waiting for others is no computing: in a step that ends with a collective
// all ranks take equally long.
std::optional<SlowRank> slow_rank(const ProfileData& data, const std::vector<RooflineRow>& rows);

}  // namespace roofprof
