#pragma once
// Computes the least time of modules whose ops were all fused: what crosses their boundaries has to move, nothing else.

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/module_sums.h"
#include "core/profile_data.h"

namespace roofprof {

struct FusedBound {
  std::int64_t bytes = 0;
  std::optional<std::int64_t> time_ns;  // empty: a roof is missing
};

// Returns the bound of each module's subtree, by id; empty where it is not known what crosses the boundaries. The parts
// that a module does in the forward, in the backward and so on run at different times: their bounds add up.
// A bound is never more than the lower bound of the same ops, in `figures`.
std::vector<FusedBound> fused_bounds(const ProfileData& data, const std::vector<ModuleSums>& inclusive);

// Sets a row's fused figures. Call it when the row's other figures are known.
void add_fused_figures(const FusedBound& bound, RooflineRow& row);

}  // namespace roofprof
