#pragma once
// Figures of a merged profile: times of rows over ranks, which rank is slow, and the line of one rank in the table of
// ranks.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Returns the ranks of a merged profile; none of another one.
const std::vector<Rank>& ranks_of(const Profile& data);

// `rows` are those of row_modules(data).
void add_times_over_ranks(const Profile& data, std::vector<RooflineRow>& rows, RooflineRow& total);

// Gives a line that stands for several equal modules the mean of their figures, and the slowest rank if it is the same
// for all.
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

// Returns the rank that waits least, where the others wait longer than it by more than half the spread of the steps.
std::optional<LateRank> late_rank(const Profile& data);

// Returns the slowest of the ranks whose time in computing ops exceeds the median rank's by more than half the spread
// of the steps; empty without steps, from which that spread is known. Waiting for others does not count as computing:
// in a step that ends with a collective all ranks take equally long.
std::optional<SlowRank> slow_rank(const Profile& data, const std::vector<RooflineRow>& rows);

// ---- What the table of ranks keeps of one rank's profile.

// `total` is the row of everything in `data`.
Rank rank_line(const Profile& data, const RooflineRow& total, std::int64_t rank);

// Returns "0, 3-5" for numbers in order.
std::string listed_ranks(const std::vector<std::int64_t>& ranks);
// Returns "rank 3", "ranks 0, 3-5".
std::string named_ranks(const std::vector<std::int64_t>& ranks);

// Returns the largest relative difference between two machines' roofs: 0.04 is 4%. Empty if the devices, dtypes or
// levels differ.
std::optional<double> distance_of_roofs(const Ceilings& first, const Ceilings& other);

}  // namespace roofprof
