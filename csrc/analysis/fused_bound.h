#pragma once
// Computes the least time of modules whose ops were all fused: what crosses their boundaries has to move, nothing else.

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/module_sums.h"
#include "core/crossings.h"
#include "core/profile.h"

namespace roofprof {

struct FusedBound {
  std::int64_t bytes = 0;
  std::optional<std::int64_t> time_ns;  // empty: a roof is missing
};

// Calls visit(module, crossing) for the op's module and each module around it: what its calls moved across their
// boundaries.
template <class Visit>
void for_each_crossing(const OpBucket& bucket, const std::vector<Module>& modules, const Visit& visit) {
  std::size_t levels = 0;
  for (auto id = bucket.owner.module; id >= 0; id = modules[index_of(id)].parent) ++levels;
  auto id = bucket.owner.module;
  for (const auto& crossing : by_level(bucket.crossings, levels)) {
    visit(id, crossing);
    id = modules[index_of(id)].parent;
  }
}

// Returns the bound of each module's subtree, by id; empty where it is not known what crosses the boundaries. The parts
// that a module does in the forward, in the backward and so on run at different times: their bounds add up.
// A bound is never more than the lower bound of the same ops, in `figures`.
std::vector<FusedBound> fused_bounds(const Profile& data, const std::vector<ModuleSums>& inclusive);

// Sets a row's fused figures. Call it when the row's other figures are known.
void add_fused_figures(const FusedBound& bound, RooflineRow& row);

}  // namespace roofprof
