#include "roofprof/ceilings.h"

#include <gtest/gtest.h>

#include "support/profile_builder.h"

namespace roofprof {
namespace {

TEST(Ceilings, APeakOfZeroIsNoRoof) {
  Ceilings ceilings = testing::round_ceilings();
  EXPECT_EQ(ceilings.compute_for(DType::fp32)->operations_per_second, testing::kFp32Peak);
  EXPECT_EQ(ceilings.compute_for(DType::fp64), nullptr);
  ceilings.compute[0].operations_per_second = 0;
  ceilings.memory[0].bytes_per_second = 0;
  EXPECT_EQ(ceilings.compute_for(DType::fp32), nullptr);
  EXPECT_EQ(ceilings.memory_for(1)->level, "DRAM");
}

TEST(Ceilings, TakesTheSmallestLevelThatHoldsTheFootprint) {
  Ceilings ceilings = testing::round_ceilings();
  std::swap(ceilings.memory[0], ceilings.memory[1]);
  EXPECT_EQ(ceilings.memory_for(1)->level, "L2");
  EXPECT_EQ(ceilings.memory_for(testing::kL2Capacity)->level, "L2");
  EXPECT_EQ(ceilings.memory_for(testing::kL2Capacity + 1)->level, "DRAM");
  ceilings.memory.erase(ceilings.memory.begin());
  EXPECT_EQ(ceilings.memory_for(testing::kL2Capacity + 1), nullptr);
}

TEST(Ceilings, TheHostLinkHoldsNoFootprint) {
  Ceilings ceilings;
  ceilings.memory = {{"host link", 1e9, 0, {}}};
  EXPECT_EQ(ceilings.memory_for(1), nullptr);
  EXPECT_NE(ceilings.memory_level("host link"), nullptr);
  EXPECT_EQ(ceilings.memory_level("L9"), nullptr);
}

// Bytes per second that are easy to divide by: 1,000 and 4,000 bytes are the working sets.
Ceilings with_curve() {
  Ceilings ceilings;
  ceilings.memory = {{"L1", 1, 2000, {}}, {"DRAM", 1, 0, {}}};
  ceilings.curve.points = {
      {.working_set_bytes = 1000, .read = 120, .triad = 100, .copy = 80, .write = 40, .update = 160, .spread = 0.1},
      {.working_set_bytes = 4000, .read = 30, .triad = 25, .copy = 20, .write = 10, .update = 40, .spread = 0.2}};
  ceilings.curve.provenance.spread = 0.2;
  return ceilings;
}

double rate(std::int64_t read, std::int64_t write, std::int64_t updated = 0) {
  return with_curve().memory_roof({read, write, updated})->bytes_per_second;
}

TEST(BandwidthCurve, EveryMixOfReadsAndWritesHasItsOwnRoof) {
  EXPECT_DOUBLE_EQ(rate(1000, 0), 120);
  EXPECT_DOUBLE_EQ(rate(666, 333), 100);
  EXPECT_DOUBLE_EQ(rate(500, 500), 80);
  EXPECT_DOUBLE_EQ(rate(0, 1000), 40);
  // Half-way between a copy and a fill: the time of a byte is the mean of theirs.
  EXPECT_NEAR(rate(250, 750), 1 / ((1 / 80.0 + 1 / 40.0) / 2), 1e-9);
}

TEST(BandwidthCurve, WhatIsUpdatedInPlaceIsInMemoryOnce) {
  EXPECT_EQ((MemoryTraffic{1000, 1000, 1000}.footprint_bytes()), 1000);
  EXPECT_DOUBLE_EQ(rate(1000, 1000, 1000), 160);
  // x += y: two thirds of the bytes at the rate of an update, the rest at that of reading; 1,000 bytes are held.
  EXPECT_NEAR(rate(1000, 500, 500), 1500 / (1000 / 160.0 + 500 / 120.0), 1e-9);
}

TEST(BandwidthCurve, IsInterpolatedByLogarithms) {
  EXPECT_NEAR(rate(2000, 0), 60, 1e-9);
  EXPECT_DOUBLE_EQ(rate(10, 0), 120);
  EXPECT_DOUBLE_EQ(rate(1 << 20, 0), 30);
  EXPECT_EQ(with_curve().memory_roof({2000, 0, 0})->level, "L1");
  EXPECT_EQ(with_curve().memory_roof({2001, 0, 0})->level, "DRAM");
  EXPECT_EQ(*with_curve().memory_roof({900, 0, 0})->spread, 0.1);
  EXPECT_EQ(*with_curve().memory_roof({9000, 0, 0})->spread, 0.2);
}

TEST(Ceilings, WithoutACurveTheLevelsCount) {
  const Ceilings ceilings = testing::round_ceilings();
  const auto roof = ceilings.memory_roof({testing::kL2Capacity, 0, 0});
  EXPECT_EQ(roof->level, "L2");
  EXPECT_EQ(roof->bytes_per_second, testing::kL2Bandwidth);
  EXPECT_FALSE(Ceilings().memory_roof({1, 1, 0}));
}

}  // namespace
}  // namespace roofprof
