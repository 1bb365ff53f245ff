#include "roofprof/ceilings.h"

#include <limits>

namespace roofprof {

namespace {

std::int64_t capacity_of(const MemoryCeiling& ceiling) {
  return ceiling.capacity_bytes > 0 ? ceiling.capacity_bytes : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

const ComputeCeiling* Ceilings::compute_for(DType dtype) const {
  for (const auto& ceiling : compute) {
    if (ceiling.dtype == dtype && ceiling.operations_per_second > 0) return &ceiling;
  }
  return nullptr;
}

// By capacity, not by position: a ceilings file edited by hand may list its levels in any order.
const MemoryCeiling* Ceilings::memory_for(std::int64_t footprint_bytes) const {
  const MemoryCeiling* smallest = nullptr;
  for (const auto& ceiling : memory) {
    if (ceiling.level == kHostLink || !(ceiling.bytes_per_second > 0)) continue;
    if (capacity_of(ceiling) < footprint_bytes) continue;
    if (smallest == nullptr || capacity_of(ceiling) < capacity_of(*smallest)) smallest = &ceiling;
  }
  return smallest;
}

const MemoryCeiling* Ceilings::memory_level(std::string_view level) const {
  for (const auto& ceiling : memory) {
    if (ceiling.level == level) return &ceiling;
  }
  return nullptr;
}

}  // namespace roofprof
