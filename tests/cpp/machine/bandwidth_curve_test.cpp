#include "machine/common/bandwidth_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "machine/cpu/bandwidth.h"

namespace roofprof {
namespace {

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kMiB = 1 << 20;

struct Level {
  std::int64_t capacity_bytes;  // what all caches up to this one hold together
  double bytes_per_second;
};

BandwidthPoint point(std::int64_t working_set, double rate) {
  return {.working_set_bytes = working_set,
          .read = 0.8 * rate,
          .triad = rate,
          .copy = 0.9 * rate,
          .write = 0.5 * rate,
          .update = 1.1 * rate};
}

// What a machine gives: a working set that a cache does not hold as a whole still has part of it there.
std::vector<BandwidthPoint> machine(const std::vector<Level>& caches, double dram, std::int64_t largest = 256 * kMiB) {
  std::vector<BandwidthPoint> points;
  for (const std::int64_t working_set : working_sets_up_to(largest)) {
    double rate = dram;
    for (const Level& cache : caches) {
      const double missed =
          static_cast<double>(working_set - cache.capacity_bytes) / static_cast<double>(cache.capacity_bytes);
      if (missed >= 0.5) continue;
      const double share = std::max(0.0, missed) / 0.5;
      const double next = &cache == &caches.back() ? dram : (&cache + 1)->bytes_per_second;
      rate = 1 / std::lerp(1 / cache.bytes_per_second, 1 / next, share);
      break;
    }
    points.push_back(point(working_set, rate));
  }
  return points;
}

const std::vector<StatedCache> kStated = {{"L1", 64 * kKiB}, {"L2", 2 * kMiB}, {"L3", 32 * kMiB}};

// The grid's step is the square root of two.
void expect_capacity(const Plateau& level, std::int64_t bytes) {
  EXPECT_LE(std::abs(std::log2(static_cast<double>(level.capacity_bytes) / static_cast<double>(bytes))), 0.51)
      << level.level << ": " << level.capacity_bytes;
}

void expect_levels(const std::vector<Plateau>& levels, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const auto& level : levels) found.push_back(level.level);
  EXPECT_EQ(found, names);
}

TEST(BandwidthCurve, InclusiveCachesHaveTheStatedCapacities) {
  const auto levels = plateaus(machine({{64 * kKiB, 800e9}, {2 * kMiB, 400e9}, {32 * kMiB, 150e9}}, 30e9), kStated);
  expect_levels(levels, {"L1", "L2", "L3", "DRAM"});
  for (std::size_t i = 0; i < 3; ++i) expect_capacity(levels[i], kStated[i].capacity_bytes);
  const double rates[] = {800e9, 400e9, 150e9, 30e9};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(levels[i].bytes_per_second, rates[i]);
  EXPECT_EQ(levels[0].kernel, "triad");
  EXPECT_EQ(levels[3].capacity_bytes, 0);
}

// The third cache holds what the second one does not: together they hold more than either states.
TEST(BandwidthCurve, ExclusiveCachesHoldMoreThanIsStated) {
  const auto levels = plateaus(machine({{64 * kKiB, 800e9}, {4 * kMiB, 400e9}, {20 * kMiB, 150e9}}, 30e9),
                               {{"L1", 64 * kKiB}, {"L2", 4 * kMiB}, {"L3", 16 * kMiB}});
  expect_levels(levels, {"L1", "L2", "L3", "DRAM"});
  expect_capacity(levels[2], 20 * kMiB);
}

// A virtual machine that states the host's cache, of which it has a tenth.
TEST(BandwidthCurve, AStatedCapacityIsOnlyAHint) {
  const auto levels = plateaus(machine({{64 * kKiB, 800e9}, {2 * kMiB, 400e9}, {48 * kMiB, 150e9}}, 31e9, 1024 * kMiB),
                               {{"L1", 64 * kKiB}, {"L2", 2 * kMiB}, {"L3", 480 * kMiB}});
  expect_levels(levels, {"L1", "L2", "L3", "DRAM"});
  expect_capacity(levels[2], 48 * kMiB);
  EXPECT_DOUBLE_EQ(levels[3].bytes_per_second, 31e9);
}

TEST(BandwidthCurve, ACacheWithoutAStepOfItsOwnIsNoLevel) {
  const auto levels = plateaus(machine({{64 * kKiB, 500e9}, {32 * kMiB, 200e9}}, 40e9), kStated);
  expect_levels(levels, {"L1", "L3", "DRAM"});
}

// Whatever disturbs a measurement makes it slower; five rounds leave the best of each.
TEST(BandwidthCurve, NoiseMovesNoLevel) {
  const auto quiet = machine({{64 * kKiB, 800e9}, {2 * kMiB, 400e9}, {32 * kMiB, 150e9}}, 30e9);
  std::mt19937 random(20240229);
  std::exponential_distribution<double> delay(10);  // 10% on average, at times 50%
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::vector<BandwidthPoint>> rounds(5, quiet);
    for (auto& round : rounds) {
      for (auto& point : round) {
        for (double* rate : {&point.read, &point.triad, &point.copy, &point.write, &point.update}) {
          *rate /= 1 + delay(random);
        }
      }
    }
    const auto levels = plateaus(best_of(rounds), kStated);
    expect_levels(levels, {"L1", "L2", "L3", "DRAM"});
    for (std::size_t i = 0; i < 3; ++i) expect_capacity(levels.at(i), kStated[i].capacity_bytes);
    for (std::size_t i = 0; i < 4; ++i) {
      const double rates[] = {800e9, 400e9, 150e9, 30e9};
      EXPECT_NEAR(levels.at(i).bytes_per_second / rates[i], 1, 0.1);
    }
  }
}

TEST(BandwidthCurve, IsTheBestOfTheRoundsAndNeverRises) {
  const auto best = best_of({{point(1, 100), point(2, 50), point(3, 60)}, {point(1, 80), point(2, 40), point(3, 30)}});
  ASSERT_EQ(best.size(), 3U);
  EXPECT_DOUBLE_EQ(best[0].triad, 100);
  EXPECT_DOUBLE_EQ(best[1].triad, 60);  // what three bytes reach, two can
  EXPECT_DOUBLE_EQ(best[2].update, 66);
  EXPECT_DOUBLE_EQ(best[0].spread, 0.2);
  EXPECT_DOUBLE_EQ(best[2].spread, 0.5);
  EXPECT_TRUE(best_of({}).empty());
}

}  // namespace
}  // namespace roofprof
