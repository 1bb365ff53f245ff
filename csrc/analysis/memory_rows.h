#pragma once
// The memory that was alive when most was.

#include <string>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Returns the rows in the data's order, the largest first.
std::vector<MemoryRow> memory_rows(const Profile& data);
std::vector<MemoryMoment> memory_moments(const Profile& data);

// Returns the sums of rows by category, in the order of MemoryCategory.
std::vector<MemoryRow> memory_by_category(const std::vector<MemoryRow>& rows);

// Returns why rows are missing, a clause such as "the report is of several ranks"; empty where there are some.
std::string why_no_memory(const Profile& data);

}  // namespace roofprof
