// Published roofs, as a program of C++ asks for them. tests/python/roofs/test_published_peaks.py looks at every card.

#include "machine/known/published.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace roofprof {
namespace {

// Each level serves what it was seen to hold: of an H100's 50 MiB half, by the counters that were recorded on one
// (tests/python/collect/test_recorded_h100.py); where nothing was recorded, its nominal size.
TEST(PublishedRoofs, HoldSmallTrafficAgainstTheSharedCache) {
  const Ceilings h100 = Ceilings::published("H100 SXM");
  EXPECT_EQ(h100.memory_for(25 << 20)->level, "L2");
  EXPECT_EQ(h100.memory_for((25 << 20) + 1)->level, "DRAM");
  EXPECT_EQ(h100.facts.l2_bytes, 50 << 20);
  const std::string& method = h100.memory_level("L2")->provenance.method;
  EXPECT_NE(method.find("holds 25600 of its 51200 KiB, as counted on this card"), std::string::npos) << method;
  // In between the bandwidth falls to DRAM's, as a part of the cache still has what is read: half-way by the
  // logarithms, at 35.4 MiB, it is the geometric mean of both.
  const auto rate = [&](std::int64_t bytes) { return h100.memory_roof({bytes, 0, 0})->bytes_per_second; };
  EXPECT_DOUBLE_EQ(rate(25 << 20), 9.92e12);
  EXPECT_NEAR(rate(50 << 20), 3.35e12, 1e6);
  EXPECT_DOUBLE_EQ(rate(std::int64_t{1} << 40), 3.35e12);
  EXPECT_NEAR(rate(std::llround(25 * std::numbers::sqrt2 * (1 << 20))), std::sqrt(9.92e12 * 3.35e12), 1e6);
  EXPECT_EQ(Ceilings::published("H200").memory_level("L2")->capacity_bytes, 25 << 20);
  EXPECT_EQ(Ceilings::published("GH200").memory_level("L2")->capacity_bytes, 60 << 20);
  EXPECT_EQ(Ceilings::published("MI300X").memory_for(200'000'000)->level, "Infinity Cache");
  EXPECT_EQ(Ceilings::published("T4").memory_for(1)->level, "DRAM");  // no bandwidth of its L2 is known
}

TEST(PublishedRoofs, OfUnknownCardsAreRefusedWithThoseThatAreLikeIt) {
  try {
    Ceilings::published("H100 NVLX");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "no published peaks of 'H100 NVLX' are known; there are those of H100 SXM, H100 PCIe, H100 NVL");
  }
  EXPECT_THROW(Ceilings::published(""), std::invalid_argument);
}

}  // namespace
}  // namespace roofprof
