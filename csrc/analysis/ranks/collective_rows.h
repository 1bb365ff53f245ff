#pragma once
// Collectives with their figures.

#include <vector>

#include "core/profile_data.h"
#include "roofprof/collectives.h"

namespace roofprof {

// The longest first, then those with most bytes.
std::vector<Collective> collective_rows(const ProfileData& data);

// Of rows with these modules, and of all: how long the collectives that they caused took, and how much of the rows' own
// time passed with communication exposed.
void add_communication(const ProfileData& data, std::vector<RooflineRow>& rows, RooflineRow& total);

}  // namespace roofprof
