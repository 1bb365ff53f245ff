#pragma once
// Tests which times of two reports differ by more than chance, by permutations of their runs.

#include <cstdint>
#include <vector>

namespace roofprof {

// A line for each row of the reports: nanoseconds of each of its runs. All lines of one report have as many runs.
using RunsOfRows = std::vector<std::vector<std::int64_t>>;

// Returns for each row the share of arrangements of all runs in two groups in which any row has as large a t as this
// one has in the observed arrangement: Welch's t of the logarithms of the times, and Westfall and Young's max-T, which
// corrects for the number of rows. Exact up to 1,000 arrangements, else over 999 at random and the observed one, the
// same each time. `step_ns` is the clock's. Throws std::invalid_argument where runs are missing: each group needs two.
std::vector<double> adjusted_p_values(const RunsOfRows& before, const RunsOfRows& after, std::int64_t step_ns);

}  // namespace roofprof
