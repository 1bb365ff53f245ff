#include "report/units.h"

#include <gtest/gtest.h>

namespace roofprof {
namespace {

TEST(Units, CountsHaveThreeDigitsAndAPrefix) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1'000), "1.00 k");
  EXPECT_EQ(human_count(4'089'284'608.0), "4.09 G");
  EXPECT_EQ(human_count(147.837e12), "148 T");
  EXPECT_EQ(human_count(9.2e18), "9.20 E");
  EXPECT_EQ(human_count(1.05e11, "FLOP/s"), "105 GFLOP/s");
}

TEST(Units, RoundingNeverShowsFourDigits) {
  EXPECT_EQ(human_count(9'996), "10.0 k");
  EXPECT_EQ(human_count(999'499), "999 k");
  EXPECT_EQ(human_count(999'500), "1.00 M");
  EXPECT_EQ(human_time(999'600), "1.00 ms");
}

TEST(Units, BytesAndTimes) {
  EXPECT_EQ(human_bytes(12), "12 B");
  EXPECT_EQ(human_bytes(34.1e9) + "/s", "34.1 GB/s");
  EXPECT_EQ(human_bytes(102'228'128, ""), "102MB");
  EXPECT_EQ(human_time(0), "0 ns");
  EXPECT_EQ(human_time(34'120), "34.1 µs");
  EXPECT_EQ(human_time(754e9), "754 s");
  EXPECT_EQ(human_time(-1'500, ""), "-1.50µs");
}

TEST(Units, RatiosAndPercents) {
  EXPECT_EQ(human_ratio(0), "0");
  EXPECT_EQ(human_ratio(0.5), "0.500");
  EXPECT_EQ(human_ratio(0.0123), "0.0123");
  EXPECT_EQ(human_ratio(179.74), "180");
  EXPECT_EQ(human_percent(0), "0%");
  EXPECT_EQ(human_percent(0.001), "<0.01%");
  EXPECT_EQ(human_percent(0.25), "0.25%");
  EXPECT_EQ(human_percent(45.23), "45.2%");
  EXPECT_EQ(human_percent(99.97), "100%");
}

}  // namespace
}  // namespace roofprof
