#pragma once
// Advice on modules whose ops would move far fewer bytes if they were fused.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/siblings/siblings.h"
#include "core/profile_data.h"

namespace roofprof {

// Returns the advice and the time at stake; empty where fusing saves less than a twentieth of the time, where code was
// compiled, and in predicted reports. It names the modules that gain by fusing their own ops with those of the modules
// below them, none of them inside another one. `lines` have equal siblings as one, `rows` are those of `data`.
std::optional<std::pair<std::int64_t, Advice>> advice_on_fusion(const ProfileData& data,
                                                                const std::vector<FoldedRow>& lines,
                                                                const std::vector<RooflineRow>& rows,
                                                                const Figures& total);

}  // namespace roofprof
