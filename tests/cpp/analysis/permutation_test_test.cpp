#include "analysis/permutation_test.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace roofprof {
namespace {

// Of n runs against m that all take longer, chance arranges them as far apart in 1 of (n + m over n) cases, and in the
// mirrored one too where n is m.
TEST(PermutationTest, OfRunsThatLieApart) {
  const RunsOfRows three = {{100, 101, 102}}, other_three = {{200, 202, 204}};
  EXPECT_EQ(adjusted_p_values(three, other_three, 1), std::vector({2.0 / 20}));
  EXPECT_EQ(adjusted_p_values({{100, 101, 103, 104}}, {{200, 203, 204, 206}}, 1), std::vector({2.0 / 70}));
  EXPECT_EQ(adjusted_p_values({{100, 101}}, {{200, 203, 204, 205, 210}}, 1).front(), 1.0 / 21);
  EXPECT_EQ(adjusted_p_values({{0, 0, 0}}, {{0, 0, 0}}, 1), std::vector({1.0}));
}

TEST(PermutationTest, OfManyRunsIsOverAThousandArrangements) {
  RunsOfRows before = {{}}, after = {{}};
  for (int run = 0; run < 30; ++run) {
    before.front().push_back(1000 + run);
    after.front().push_back(2000 + run);
  }
  EXPECT_EQ(adjusted_p_values(before, after, 1), std::vector({1.0 / 1000}));
}

// The largest t of all rows is what each is held against: the same row twice changes nothing, others only add.
TEST(PermutationTest, CorrectsForTheNumberOfRows) {
  const std::vector<std::int64_t> before = {100, 104, 102, 110}, after = {103, 107, 112, 114};
  const double alone = adjusted_p_values({before}, {after}, 1).front();
  EXPECT_EQ(adjusted_p_values({before, before}, {after, after}, 1), std::vector({alone, alone}));
  // Enough rows for several blocks of them; those of equal times have no t.
  RunsOfRows many_before(600, {100, 100, 100, 100}), many_after = many_before;
  many_before[500] = before;
  many_after[500] = after;
  const auto of_many = adjusted_p_values(many_before, many_after, 1);
  EXPECT_EQ(of_many[500], alone);
  EXPECT_EQ(of_many[0], 1.0);
  many_before[3] = {100, 106, 101, 109};
  many_after[3] = {104, 103, 117, 105};
  EXPECT_GT(adjusted_p_values(many_before, many_after, 1)[500], alone);
}

TEST(PermutationTest, RefusesWhatHasNotTheSameRuns) {
  EXPECT_TRUE(adjusted_p_values({}, {}, 1).empty());
  EXPECT_THROW(adjusted_p_values({{1, 2}}, {}, 1), std::invalid_argument);
  EXPECT_THROW(adjusted_p_values({{1, 2}, {1, 2, 3}}, {{1, 2}, {1, 2}}, 1), std::invalid_argument);
  EXPECT_THROW(adjusted_p_values({{1}}, {{1, 2}}, 1), std::invalid_argument);
}

}  // namespace
}  // namespace roofprof
