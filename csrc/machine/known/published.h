#pragma once
// Published roofs of GPUs: dense rates, shared caches and DRAM, from python/roofprof/data/published_peaks.json.

#include <optional>
#include <string_view>

#include "roofprof/ceilings.h"

namespace roofprof {

// The file, which the build puts into the library.
extern const std::string_view kPublishedPeaks;

// Returns the roofs of the card whose driver gives it exactly that name. A laptop's GPU, whose name begins with another
// card's, is a different card. Empty where the card is not known.
std::optional<Ceilings> published_for_driver_name(std::string_view driver_name);

}  // namespace roofprof
