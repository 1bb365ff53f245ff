#pragma once
// What no processor passes: a figure above it was not measured. However slow a machine is, something is.

#include <gtest/gtest.h>

#include <thread>

namespace roofprof::testing {

inline constexpr double kHighestClock = 7e9;  // Hz

// Two loads and a store of 64 bytes in a clock, on every core.
inline void expect_possible_bandwidth(double bytes_per_second) {
  EXPECT_GT(bytes_per_second, 0);
  EXPECT_LT(bytes_per_second, 3 * 64 * kHighestClock * std::thread::hardware_concurrency());
}

// Two fused multiply-adds of 16 fp32 numbers in a clock, on every core.
inline void expect_possible_fp32_rate(double flops_per_second) {
  EXPECT_GT(flops_per_second, 0);
  EXPECT_LT(flops_per_second, 2 * 16 * 2 * kHighestClock * std::thread::hardware_concurrency());
}

}  // namespace roofprof::testing
