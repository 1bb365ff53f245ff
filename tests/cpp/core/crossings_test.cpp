#include "core/crossings.h"

#include <gtest/gtest.h>

namespace roofprof {
namespace {

TEST(Crossings, HoldForLevelsAndTheLastForAllFurtherOnes) {
  EXPECT_EQ(by_level({{2, 10, 5}, {0, 4, 0}}, 4), (Crossings{{1, 10, 5}, {1, 10, 5}, {1, 4, 0}, {1, 4, 0}}));
  EXPECT_EQ(by_level({{2, 10, 5}}, 3), (Crossings{{1, 10, 5}, {1, 10, 5}, {1, 0, 0}}));
  EXPECT_EQ(by_level({}, 1), (Crossings{{1, 0, 0}}));
  EXPECT_EQ(by_level({{1, 10, 5}, {0, 4, 0}}, 1), (Crossings{{1, 10, 5}}));
}

TEST(Crossings, OfAFileAreNeverNegativeNorMoreThanTheLevels) {
  EXPECT_EQ(by_level({{-3, 1, 1}, {1, -10, 5}}, 2), (Crossings{{1, 0, 5}, {1, 0, 0}}));
  EXPECT_EQ(by_level({{std::int64_t{1} << 60, 1, 1}}, 2), (Crossings{{1, 1, 1}, {1, 1, 1}}));
}

TEST(Crossings, AddLevelByLevel) {
  Crossings sum;
  add_crossings(sum, {{1, 10, 5}, {1, 10, 5}, {1, 0, 0}});
  EXPECT_EQ(sum, (Crossings{{2, 10, 5}}));
  add_crossings(sum, {{0, 1, 1}});
  EXPECT_EQ(sum, (Crossings{{2, 11, 6}, {0, 1, 1}}));
  add_crossings(sum, {{3, 1, 0}, {1, 0, 1}});
  EXPECT_EQ(sum, (Crossings{{2, 12, 6}, {1, 2, 1}, {1, 1, 2}, {0, 1, 1}}));
  add_crossings(sum, {});
  EXPECT_EQ(sum.size(), 4);
}

}  // namespace
}  // namespace roofprof
