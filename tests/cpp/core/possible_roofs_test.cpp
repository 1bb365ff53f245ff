#include "core/roofs.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "roofprof/version.h"

namespace roofprof {
namespace {

const Provenance kGiven{"given", "test", "", {}};

Ceilings some() {
  Ceilings roofs;
  roofs.compute = {{DType::fp32, 2e11, kGiven}};
  roofs.memory = {{"L2", 5e10, 1 << 20, kGiven}, {"DRAM", 3e10, 0, kGiven}};
  roofs.curve.points = {{.working_set_bytes = 16384, .read = 1, .triad = 1, .copy = 1, .write = 1, .update = 1}};
  return roofs;
}

TEST(PossibleRoofs, WhatIsNoRateIsNamed) {
  EXPECT_EQ(impossible_roof({}), "");
  EXPECT_EQ(impossible_roof(some()), "");
  for (const auto& [rate, text] :
       {std::pair(-1.0, "-1"), std::pair(0.0, "0"), std::pair(std::numeric_limits<double>::infinity(), "inf"),
        std::pair(std::numeric_limits<double>::quiet_NaN(), "nan")}) {
    auto roofs = some();
    roofs.memory[1].bytes_per_second = rate;
    EXPECT_EQ(impossible_roof(roofs), "bytes_per_second of DRAM is " + std::string(text) + ", not a positive number");
    roofs.compute[0].operations_per_second = rate;
    EXPECT_EQ(impossible_roof(roofs),
              "operations_per_second of fp32 is " + std::string(text) + ", not a positive number");
  }
  auto roofs = some();
  roofs.memory[0].capacity_bytes = -5;
  EXPECT_EQ(impossible_roof(roofs), "capacity_bytes of L2 is -5, not 0 or more");
  roofs = some();
  roofs.curve.points[0].copy = -2;
  EXPECT_EQ(impossible_roof(roofs), "copy of the curve's working set of 16384 bytes is -2, not a positive number");
  roofs = some();
  roofs.curve.points.push_back(roofs.curve.points[0]);
  EXPECT_EQ(impossible_roof(roofs), "the working sets of the curve do not rise");
}

TEST(Version, IsTextAndNumbers) {
  EXPECT_EQ(ROOFPROF_VERSION, std::to_string(ROOFPROF_VERSION_MAJOR) + "." + std::to_string(ROOFPROF_VERSION_MINOR) +
                                  "." + std::to_string(ROOFPROF_VERSION_PATCH));
}

}  // namespace
}  // namespace roofprof
