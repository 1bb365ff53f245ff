#pragma once
// The time of a collective between the devices of one machine: the formula of docs/prediction.md.

#include <cstdint>

#include "analysis/predict/parameters.h"
#include "core/collective_kinds.h"
#include "roofprof/ceilings.h"

namespace roofprof {

// Returns whether the devices of a machine reach each other through their host.
bool is_on_pcie(const CardFacts& facts);

// Returns the seconds of one call, from the last rank's call to its end. `bytes`: its size as nccl-tests defines it. By
// the network's roof where one was measured of that collective and number of ranks, else by the device's link. Throws
// std::invalid_argument where neither is known.
double collective_seconds(CollectiveKind kind, double bytes, std::int64_t ranks, const Ceilings& ceilings,
                          const PredictionParameters& parameters);

}  // namespace roofprof
