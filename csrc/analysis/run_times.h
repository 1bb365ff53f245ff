#pragma once
// The times behind a row's time: one for each timed run, so that the noise of two profiles can be compared.

#include <cstdint>
#include <vector>

#include "core/profile.h"

namespace roofprof {

struct RowRunTimes {
  // Nanoseconds of the subtree in each run, for each row (not by path: a region may have its module's name). Empty for
  // rows without a time (what ran inside a compiled region, a count). The figure of the run that the rows come from is
  // the row's time_ns.
  std::vector<std::vector<std::int64_t>> of_rows;
  std::vector<std::int64_t> total;  // of all rows; empty: not timed
};

RowRunTimes row_run_times(const Profile& data);

}  // namespace roofprof
