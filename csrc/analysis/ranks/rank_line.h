#pragma once
// What the table of ranks keeps of one rank's profile.

#include <optional>
#include <string>
#include <string_view>

#include "core/profile_data.h"

namespace roofprof {

// The environment's whole number of that name, such as "rank"; empty where it has none.
std::optional<std::int64_t> number_in(const Environment& environment, std::string_view name);
std::string text_in(const Environment& environment, std::string_view name);

// `total` is the row of everything in `data`.
Rank rank_line(const ProfileData& data, const RooflineRow& total, std::int64_t rank);

// "0, 3-5": of numbers in order.
std::string listed_ranks(const std::vector<std::int64_t>& ranks);

// How far two machines' roofs are from each other, the largest of all: 0.04 is 4%. Empty where they are of other
// devices, or other dtypes or levels.
std::optional<double> distance_of_roofs(const Ceilings& first, const Ceilings& other);

}  // namespace roofprof
