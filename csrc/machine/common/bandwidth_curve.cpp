#include "machine/common/bandwidth_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace roofprof {
namespace {

constexpr std::array kMixes = {&BandwidthPoint::read, &BandwidthPoint::triad, &BandwidthPoint::copy,
                               &BandwidthPoint::write, &BandwidthPoint::update};
struct Kernel {
  const char* name;
  double BandwidthPoint::* rate;
};
// STREAM's and a sum: those that machines are compared by.
constexpr std::array kKernels = {Kernel{"read", &BandwidthPoint::read}, Kernel{"triad", &BandwidthPoint::triad},
                                 Kernel{"copy", &BandwidthPoint::copy}};

// One figure for each point: the mean of the logarithms, in octaves.
std::vector<double> heights(const std::vector<BandwidthPoint>& curve) {
  std::vector<double> result;
  for (const auto& point : curve) {
    double sum = 0;
    for (const auto& kernel : kKernels) sum += std::log2(point.*kernel.rate);
    result.push_back(sum / static_cast<double>(kKernels.size()));
  }
  return result;
}

// The part of a curve from the last point of a plateau to the first of the next one.
struct Fall {
  std::size_t top = 0;
  std::size_t bottom = 0;
  double depth = 0;  // in octaves
};

// Steps that are steep, each for itself, and deep together. One flat step inside a fall is noise: a plateau is longer.
std::vector<Fall> falls(const std::vector<double>& height) {
  constexpr double kSteep = 0.15;  // 10% from one point to the next
  constexpr double kDeep = 0.32;   // 20% in all
  std::vector<Fall> found;
  for (std::size_t i = 0; i + 1 < height.size(); ++i) {
    if (height[i] - height[i + 1] < kSteep) continue;
    if (!found.empty() && i <= found.back().bottom + 1) {
      found.back().bottom = i + 1;
    } else {
      found.push_back({i, i + 1, 0});
    }
  }
  for (auto& fall : found) fall.depth = height[fall.top] - height[fall.bottom];
  std::erase_if(found, [](const Fall& fall) { return fall.depth < kDeep; });
  return found;
}

// No more falls than there are caches: the shallowest are slopes of one level.
void keep_deepest(std::vector<Fall>& found, std::size_t count) {
  while (found.size() > count) found.erase(std::ranges::min_element(found, {}, &Fall::depth));
}

Plateau plateau(const std::vector<BandwidthPoint>& curve, std::size_t first, std::size_t last) {
  Plateau result;
  result.from_bytes = curve[first].working_set_bytes;
  result.to_bytes = curve[last].working_set_bytes;
  const BandwidthPoint& middle = curve[(first + last) / 2];
  const auto& best = *std::ranges::max_element(kKernels, {}, [&](const Kernel& kernel) { return middle.*kernel.rate; });
  result.kernel = best.name;
  result.bytes_per_second = middle.*best.rate;
  for (std::size_t i = first; i <= last; ++i) result.spread = std::max(result.spread, curve[i].spread);
  return result;
}

// The way through a table of distances that keeps both orders and costs least.
std::vector<std::string> nearest_names(const std::vector<std::int64_t>& capacities,
                                       const std::vector<StatedCache>& stated) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const std::size_t caches = stated.size();
  // cost[j]: of naming the plateaus so far with caches before j, and the names taken.
  std::vector<double> cost(caches + 1, 0);
  std::vector<std::vector<std::string>> names(caches + 1);
  for (const std::int64_t capacity : capacities) {
    std::vector<double> next(caches + 1, kNever);
    std::vector<std::vector<std::string>> next_names(caches + 1);
    for (std::size_t j = 1; j <= caches; ++j) {
      const double distance = std::abs(std::log2(static_cast<double>(capacity)) -
                                       std::log2(static_cast<double>(stated[j - 1].capacity_bytes)));
      next[j] = next[j - 1];
      next_names[j] = next_names[j - 1];
      if (cost[j - 1] + distance < next[j]) {
        next[j] = cost[j - 1] + distance;
        next_names[j] = names[j - 1];
        next_names[j].push_back(stated[j - 1].level);
      }
    }
    cost = std::move(next);
    names = std::move(next_names);
  }
  return names.back();
}

}  // namespace

std::vector<BandwidthPoint> best_of(const std::vector<std::vector<BandwidthPoint>>& rounds) {
  if (rounds.empty()) return {};
  std::vector<BandwidthPoint> best = rounds.front();
  for (std::size_t i = 0; i < best.size(); ++i) {
    double spread = 0;
    for (const auto mix : kMixes) {
      const auto [least, most] =
          std::ranges::minmax(rounds, {}, [&](const std::vector<BandwidthPoint>& round) { return round[i].*mix; });
      best[i].*mix = most[i].*mix;
      spread = std::max(spread, (most[i].*mix - least[i].*mix) / (most[i].*mix));
    }
    best[i].spread = spread;
  }
  for (std::size_t i = best.size() - 1; i-- > 0;) {
    for (const auto mix : kMixes) best[i].*mix = std::max(best[i].*mix, best[i + 1].*mix);
  }
  return best;
}

std::vector<Plateau> plateaus(const std::vector<BandwidthPoint>& curve, const std::vector<StatedCache>& stated) {
  if (curve.empty()) return {};
  const std::vector<double> height = heights(curve);
  std::vector<Fall> found = falls(height);
  if (!stated.empty()) keep_deepest(found, stated.size());

  std::vector<Plateau> result;
  std::vector<std::int64_t> capacities;
  std::size_t first = 0;
  for (const Fall& fall : found) {
    Plateau level = plateau(curve, first, fall.top);
    const double half = (height[fall.top] + height[fall.bottom]) / 2;
    std::size_t last = fall.top;
    while (height[last + 1] >= half) ++last;
    level.capacity_bytes = curve[last].working_set_bytes;
    capacities.push_back(level.capacity_bytes);
    result.push_back(level);
    first = fall.bottom;
  }
  result.push_back(plateau(curve, first, curve.size() - 1));

  const auto names = nearest_names(capacities, stated);
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    result[i].level = stated.empty() ? "L" + std::to_string(i + 1) : names.at(i);
  }
  result.back().level = "DRAM";
  return result;
}

}  // namespace roofprof
