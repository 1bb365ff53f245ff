#include "roofprof/ceilings.h"

#include <gtest/gtest.h>

#include "support/profile_builder.h"

namespace roofprof {
namespace {

TEST(Ceilings, FindsThePeakOfADtype) {
  const Ceilings ceilings = testing::round_ceilings();
  ASSERT_NE(ceilings.compute_for(DType::fp32), nullptr);
  EXPECT_EQ(ceilings.compute_for(DType::fp32)->operations_per_second, testing::kFp32Peak);
  EXPECT_EQ(ceilings.compute_for(DType::fp64), nullptr);
}

TEST(Ceilings, APeakOfZeroIsNoRoof) {
  Ceilings ceilings = testing::round_ceilings();
  ceilings.compute[0].operations_per_second = 0;
  ceilings.memory[0].bytes_per_second = 0;
  EXPECT_EQ(ceilings.compute_for(DType::fp32), nullptr);
  EXPECT_EQ(ceilings.memory_for(1)->level, "DRAM");
}

TEST(Ceilings, TakesTheSmallestLevelThatHoldsTheFootprint) {
  const Ceilings ceilings = testing::round_ceilings();
  EXPECT_EQ(ceilings.memory_for(1)->level, "L2");
  EXPECT_EQ(ceilings.memory_for(testing::kL2Capacity)->level, "L2");
  EXPECT_EQ(ceilings.memory_for(testing::kL2Capacity + 1)->level, "DRAM");
}

TEST(Ceilings, TheOrderOfLevelsDoesNotMatter) {
  Ceilings ceilings = testing::round_ceilings();
  std::swap(ceilings.memory[0], ceilings.memory[1]);
  EXPECT_EQ(ceilings.memory_for(1)->level, "L2");
}

TEST(Ceilings, WithoutALevelLargeEnoughThereIsNoRoof) {
  Ceilings ceilings = testing::round_ceilings();
  ceilings.memory.pop_back();
  EXPECT_EQ(ceilings.memory_for(testing::kL2Capacity + 1), nullptr);
}

TEST(Ceilings, TheHostLinkHoldsNoFootprint) {
  Ceilings ceilings;
  ceilings.memory = {{"host link", 1e9, 0, {}}};
  EXPECT_EQ(ceilings.memory_for(1), nullptr);
  EXPECT_NE(ceilings.memory_level("host link"), nullptr);
  EXPECT_EQ(ceilings.memory_level("L9"), nullptr);
}

}  // namespace
}  // namespace roofprof
