#pragma once
// Where the most time is wasted.

#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Shown below tables.
inline constexpr std::size_t kMostWasting = 5;

// In place of an op: what a module spent between its ops, and of it while collectives were under way and no op
// computed.
inline constexpr std::string_view kOutsideOps = "(outside ops)";
inline constexpr std::string_view kExposedCommunication = "(exposed communication)";

// The pairs of module and op; their time is the module's own. Empty where nothing has a roof. What a module spends
// outside of its ops stands beside them, and apart from it what of that, or in ops of collectives, was exposed
// communication.
std::vector<GroupRow> ops_in_modules(const Profile& data, const std::vector<RooflineRow>& rows, const Figures& total);

// The `most` of them with the most wasted time, the largest first. Ops without a roof stand where all of their time
// would be wasted. What wastes nothing is left out.
std::vector<GroupRow> most_wasting(std::vector<GroupRow> hotspots, std::size_t most);

// What ran, or waited, outside of ops: a row under the op "(outside ops)". `figures` are those of a module itself, or
// the total's. Nothing is known of it where ops have no times: its time is 0 there. `communication_ns`: what of the
// ops' time is counted as communication elsewhere, and so stands outside of them, too.
GroupRow outside_ops(const Figures& figures, bool on_device, std::int64_t communication_ns = 0);

// The rows that waste more in ops of their own than the modules below them, which ran, do. Less than a hundredth of the
// total's time is none.
std::set<const RooflineRow*> wasting_themselves(const std::vector<RooflineRow>& rows, const Figures& total);

}  // namespace roofprof
