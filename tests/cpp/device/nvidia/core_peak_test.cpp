#include "device/nvidia/driver.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace roofprof::cuda {
namespace {

TEST(CudaCores, TheWorkedExampleOfAnRtx3060) {
  const auto peak = cuda_core_fp32_peak(28, 1'777'000'000, 8, 6);
  ASSERT_TRUE(peak);
  EXPECT_DOUBLE_EQ(*peak, 12'737.536e9);
  EXPECT_NEAR(*peak / 360e9, 35.38, 0.005);  // I_max
}

TEST(CudaCores, LanesByComputeCapability) {
  const std::map<std::pair<int, int>, int> lanes = {
      {{3, 5}, 192}, {{5, 0}, 128},  {{5, 2}, 128},  {{6, 0}, 64},   {{6, 1}, 128}, {{6, 2}, 128},
      {{7, 0}, 64},  {{7, 5}, 64},   {{8, 0}, 64},   {{8, 6}, 128},  {{8, 7}, 128}, {{8, 9}, 128},
      {{9, 0}, 128}, {{10, 0}, 128}, {{10, 3}, 128}, {{12, 0}, 128}, {{12, 1}, 128}};
  for (const auto& [capability, expected] : lanes) {
    EXPECT_EQ(fp32_lanes_per_sm(capability.first, capability.second), expected)
        << capability.first << "." << capability.second;
  }
}

TEST(CudaCores, WhatIsNotKnownHasNoPeak) {
  EXPECT_FALSE(fp32_lanes_per_sm(99, 0));
  EXPECT_FALSE(cuda_core_fp32_peak(132, 1'980'000'000, 99, 0));
  EXPECT_FALSE(cuda_core_fp32_peak(0, 1'980'000'000, 9, 0));
  EXPECT_FALSE(cuda_core_fp32_peak(132, 0, 9, 0));
}

}  // namespace
}  // namespace roofprof::cuda
