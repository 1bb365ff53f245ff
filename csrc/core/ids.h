#pragma once
// Names the place where something ran: the phase, and the numbers of modules and regions.

#include <compare>
#include <cstddef>
#include <cstdint>

#include "roofprof/kinds.h"

namespace roofprof {

// Index into Tree::modules.
using ModuleId = std::int32_t;
inline constexpr ModuleId kModel = 0;      // path ""
inline constexpr ModuleId kOutside = 1;    // path "(outside)"
inline constexpr ModuleId kOptimizer = 2;  // path "(optimizer)"
constexpr std::size_t index_of(ModuleId id) { return static_cast<std::size_t>(id); }

// The region in which something ran: the innermost one that was open there. Tree::regions[id - 1] is its path.
using RegionId = std::int32_t;
inline constexpr RegionId kNoRegion = 0;

// The module, phase and region that something which ran belongs to.
struct Owner {
  ModuleId module = kModel;
  Phase phase = Phase::forward;
  RegionId region = kNoRegion;
  auto operator<=>(const Owner&) const = default;
};

}  // namespace roofprof
