#pragma once
// The times behind a row's time: one for each timed run, so that the noise of two profiles can be compared.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "values/profile_data.h"

namespace roofprof {

struct RowRunTimes {
  // Nanoseconds of the subtree in each run, by the row's path. Rows without a time (what ran inside a compiled region,
  // a count) are not in it. The figure of the run that the rows come from is the row's time_ns.
  std::map<std::string, std::vector<std::int64_t>> by_path;
  std::vector<std::int64_t> total;  // of all rows; empty: not timed
};

RowRunTimes row_run_times(const ProfileData& data);

}  // namespace roofprof
