#include "core/reuse.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "roofprof/work.h"

namespace roofprof {
namespace {

int octave_of(std::int64_t distance_bytes) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(distance_bytes, 0))));
}

double moved(const ReusedBytes& part) {
  return static_cast<double>(part.read_bytes) + static_cast<double>(part.write_bytes);
}

}  // namespace

void add_reuse(Reuse& sum, const ReusedBytes& part) {
  if (moved(part) <= 0) return;
  const int octave = octave_of(part.distance_bytes);
  const auto same =
      std::ranges::lower_bound(sum, octave, {}, [](const auto& of) { return octave_of(of.distance_bytes); });
  if (same == sum.end() || octave_of(same->distance_bytes) != octave) {
    sum.insert(same, part);
    return;
  }
  if (same->distance_bytes != part.distance_bytes) {  // the mean of two stays between them
    const double share = moved(part) / (moved(*same) + moved(part));
    const auto apart = static_cast<double>(part.distance_bytes - same->distance_bytes);
    same->distance_bytes += std::llround(apart * share);
  }
  same->read_bytes = saturating_add(same->read_bytes, part.read_bytes);
  same->write_bytes = saturating_add(same->write_bytes, part.write_bytes);
  same->updated_bytes = saturating_add(same->updated_bytes, part.updated_bytes);
}

void add_reuse(Reuse& sum, const Reuse& more) {
  for (const auto& part : more) add_reuse(sum, part);
}

}  // namespace roofprof
