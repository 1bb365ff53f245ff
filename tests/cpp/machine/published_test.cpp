// Published roofs, as a program of C++ asks for them. tests/python/roofs/test_published_peaks.py looks at every card.

#include "machine/known/published.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace roofprof {
namespace {

// NVIDIA's datasheet of the A100: 19.5 TFLOP/s of fp32 and 312 of bf16, dense; 2,039 GB/s. Its whitepaper: 40 MB of L2,
// which is read at 5,120 bytes a clock of 1,410 MHz.
TEST(PublishedRoofs, AreFoundByTheNamesThatPeopleWrite) {
  for (const auto* name : {"A100 SXM 80GB", "a100-sxm-80gb", "NVIDIA A100-SXM4-80GB"}) {
    const Ceilings roofs = Ceilings::published(name);
    EXPECT_EQ(roofs.compute_for(DType::fp32)->operations_per_second, 19.5e12) << name;
    EXPECT_EQ(roofs.compute_for(DType::bf16)->operations_per_second, 312e12) << name;
    ASSERT_EQ(roofs.memory.size(), 2U);
    EXPECT_NEAR(roofs.memory_level("L2")->bytes_per_second, 5120 * 1410e6, 1e9) << name;
    EXPECT_EQ(roofs.memory_level("L2")->capacity_bytes, 40 << 20) << name;
    EXPECT_EQ(roofs.memory_level("DRAM")->bytes_per_second, 2039e9) << name;
    EXPECT_EQ(roofs.compute_for(DType::fp32)->provenance.source, "published");
  }
}

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

TEST(PublishedRoofs, OfThisMachineGoByTheDriversNameAlone) {
  EXPECT_EQ(published_for_driver_name("NVIDIA GeForce RTX 4090")->device, "RTX 4090");
  EXPECT_FALSE(published_for_driver_name("NVIDIA GeForce RTX 4090 Laptop GPU"));
  EXPECT_FALSE(published_for_driver_name("RTX 4090"));
  EXPECT_FALSE(published_for_driver_name(""));
}

}  // namespace
}  // namespace roofprof
