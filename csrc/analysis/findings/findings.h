#pragma once
// Finds what wastes time, and what to do about it.

#include <vector>

#include "analysis/siblings/siblings.h"
#include "core/profile.h"

namespace roofprof {

// The most findings of a report.
inline constexpr std::size_t kMostFindings = 10;

// Returns one finding for each rule of analysis/findings/finding_rules.h that holds for at least a twentieth of the
// time, and those of analysis/findings/of_modules.h; what gains most stands first. Empty without times or roofs. Equal
// siblings count together. `ops` are those of the folded profile (ops_in_modules), `lines` its rows, and `rows` those
// of `data`.
std::vector<Finding> findings_on(const Profile& data, const Folding& folding, const std::vector<GroupRow>& ops,
                                 const std::vector<FoldedRow>& lines, const std::vector<RooflineRow>& rows,
                                 const RooflineRow& total);

}  // namespace roofprof
