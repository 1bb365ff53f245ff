#include "core/crossings.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "roofprof/work.h"

namespace roofprof {
namespace {

// No tree of modules is deeper (analysis/rows.cpp); a file may say anything.
constexpr std::int64_t kMostLevels = 20'000;

std::int64_t levels_of(const Crossings& crossings) {
  std::int64_t levels = 0;
  for (const auto& part : crossings) levels = std::clamp<std::int64_t>(levels + part.levels, levels, kMostLevels);
  return levels;
}

}  // namespace

Crossings crossing_whole(std::int64_t read_bytes, std::int64_t write_bytes) { return {{0, read_bytes, write_bytes}}; }

Crossings scaled(Crossings crossings, double reads, double writes) {
  const auto scale = [](std::int64_t& bytes, double factor) {
    if (factor != 1) bytes = std::llround(static_cast<double>(bytes) * factor);
  };
  for (auto& part : crossings) {
    scale(part.read_bytes, reads);
    scale(part.write_bytes, writes);
    scale(part.unread_bytes, writes);
  }
  return crossings;
}

Crossings by_level(const Crossings& crossings, std::size_t levels) {
  Crossings result;
  result.reserve(levels);
  for (const auto& part : crossings) {
    const auto rest = levels - result.size();
    const auto more =
        part.levels == 0 ? rest : std::min(rest, static_cast<std::size_t>(std::max<std::int64_t>(part.levels, 0)));
    result.insert(result.end(), more,
                  {1, std::max<std::int64_t>(part.read_bytes, 0), std::max<std::int64_t>(part.write_bytes, 0),
                   std::max<std::int64_t>(part.unread_bytes, 0)});
  }
  result.resize(levels, {1, 0, 0, 0});
  return result;
}

void add_crossings(Crossings& sum, const Crossings& more) {
  const auto levels = static_cast<std::size_t>(std::max(levels_of(sum), levels_of(more)));
  auto all = by_level(sum, levels + 1);
  const auto others = by_level(more, levels + 1);
  sum.clear();
  for (std::size_t level = 0; level <= levels; ++level) {
    all[level].read_bytes = saturating_add(all[level].read_bytes, others[level].read_bytes);
    all[level].write_bytes = saturating_add(all[level].write_bytes, others[level].write_bytes);
    all[level].unread_bytes = saturating_add(all[level].unread_bytes, others[level].unread_bytes);
    auto* last = sum.empty() ? nullptr : &sum.back();
    const auto bytes_of = [](const Crossing& part) {
      return std::array{part.read_bytes, part.write_bytes, part.unread_bytes};
    };
    if (last != nullptr && bytes_of(*last) == bytes_of(all[level])) {
      ++last->levels;
    } else {
      sum.push_back(all[level]);
    }
  }
  if (sum.back().read_bytes == 0 && sum.back().write_bytes == 0) {
    sum.pop_back();
  } else {
    sum.back().levels = 0;
  }
}

}  // namespace roofprof
