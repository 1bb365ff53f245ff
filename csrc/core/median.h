#pragma once

#include <cstdint>
#include <span>

namespace roofprof {

// Returns the median; the mean of the middle two for an even count; 0 for none.
double median(std::span<const std::int64_t> values);
double median(std::span<const double> values);

}  // namespace roofprof
