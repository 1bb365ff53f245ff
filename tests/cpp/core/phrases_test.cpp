// Numbers as text, as printf has them in the C locale, whatever the program's, and the words around them.

#include "core/phrases.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "commas.h"

namespace roofprof {
namespace {

std::string printed(const char* format, int digits, double value) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), format, digits, value);
  return text.data();
}

TEST(NumberText, IsThatOfPrintf) {
  for (const double value :
       {0.0, 1.0, 0.1, 2.0 / 3, -12.345, 99.95, 1e6, 1.5e-7, 123456789.0, 1e300, std::numeric_limits<double>::max()}) {
    for (const int digits : {1, 3, 6}) {
      EXPECT_EQ(fixed_text(value, digits), printed("%.*f", digits, value));
      EXPECT_EQ(short_text(value, digits), printed("%.*g", digits, value));
    }
    EXPECT_EQ(fixed_text(value, 0), printed("%.*f", 0, value));
  }
}

TEST(NumberText, FollowsNoLocale) {
  const testing::WithCommas locale;
  EXPECT_EQ(short_text(1234.5, 6), "1234.5");
  EXPECT_EQ(fixed_text(1234.56, 1), "1234.6");
}

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
