#pragma once
// Finds where the most time is wasted.

#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Shown below tables.
inline constexpr std::size_t kMostWasting = 5;

// Names in place of an op's, for a module's time between its ops, and for its time while collectives were under way
// and no op computed.
inline constexpr std::string_view kOutsideOps = "(outside ops)";
inline constexpr std::string_view kExposedCommunication = "(exposed communication)";

// Returns the pairs of module and op, with the module's own time; empty where nothing has a roof. The module's time
// outside of its ops has a further row, and so has the communication that was exposed there or in ops of collectives.
std::vector<GroupRow> ops_in_modules(const Profile& data, const std::vector<RooflineRow>& rows, const Figures& total);

// Returns the `most` hotspots with the most wasted time, the largest first. Ops without a roof stand where wasting all
// of their time would put them. Rows that waste nothing are left out.
std::vector<GroupRow> most_wasting(std::vector<GroupRow> hotspots, std::size_t most);

// Returns a row under the op "(outside ops)" for the time that ran, or waited, outside of ops. `figures` are those of a
// module itself, or the total's. The time is 0 where ops have no times. `communication_ns`: time to add, because the
// ops that have it are shown as communication instead.
GroupRow outside_ops(const Figures& figures, bool on_device, std::int64_t communication_ns = 0);

// Returns the rows that waste more in their own ops than in the modules below them, if any of these ran. Waste counts
// if it is more than a hundredth of the total's time.
std::set<const RooflineRow*> wasting_themselves(const std::vector<RooflineRow>& rows, const Figures& total);

}  // namespace roofprof
