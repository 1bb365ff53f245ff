#pragma once
// Collectives with their figures.

#include <vector>

#include "roofprof/collectives.h"
#include "values/profile_data.h"

namespace roofprof {

// The longest first, then those with most bytes.
std::vector<Collective> collective_rows(const ProfileData& data);

// Of rows with these modules, and of all: how long their collectives took. A row whose time is mostly exposed
// communication is bound by the network.
void add_communication(const ProfileData& data, std::vector<RooflineRow>& rows, RooflineRow& total);

// The network's roof of a collective in a group of that backend and size; null where it was not measured.
const NetworkCeiling* network_roof(const Ceilings& ceilings, std::string_view collective, const ProcessGroup& group);

}  // namespace roofprof
