#pragma once
// Computes what calls of a language model did for each token, and how much of the peak a model's FLOPs are.

#include <optional>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Returns the phases in the order of their first calls.
std::vector<TokenPhase> token_phases(const Profile& data);

// Returns the MACs of each dtype against the peak of that dtype, over the wall time of the run (the total's time where
// that is not known). Empty without times or MACs, and where a dtype has no roof.
std::optional<FlopsUtilization> flops_utilization(const Profile& data, const RooflineRow& total);

}  // namespace roofprof
