#include "core/phrases.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace roofprof {
namespace {

TEST(Phrases, PercentHasOneDigitWhereItIsSmall) {
  EXPECT_EQ(percent(0.034), "3.4%");
  EXPECT_EQ(percent(0.34), "34%");
}

TEST(Phrases, CountedTakesTheRightForm) {
  EXPECT_EQ(counted(1, "copy", "copies"), "1 copy");
  EXPECT_EQ(counted(3, "copy", "copies"), "3 copies");
  EXPECT_EQ(counted(0, "call"), "0 calls");
  EXPECT_EQ(counted(1, "call"), "1 call");
}

TEST(Phrases, ListsSayHowManyTheyLeaveOut) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  EXPECT_EQ(listed(names), "a, b, c, d");
  EXPECT_EQ(listed(names, 4), "a, b, c, d");
  EXPECT_EQ(listed(names, 3), "a, b, c and 1 more");
  EXPECT_EQ(listed(std::set<std::string>{}), "");
}

}  // namespace
}  // namespace roofprof
