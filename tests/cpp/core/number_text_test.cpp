// Numbers as text: as printf has them in the C locale, whatever the program's.

#include "core/phrases.h"

#include <gtest/gtest.h>

#include <array>
#include <clocale>
#include <cstdio>
#include <limits>
#include <string>

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
  {
    const testing::WithCommas locale;
    EXPECT_EQ(short_text(1234.5, 6), "1234.5");
    EXPECT_EQ(fixed_text(1234.56, 1), "1234.6");
  }
  const std::string c_before = std::setlocale(LC_ALL, nullptr);
  for (const auto* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {  // where the machine has one
    if (std::setlocale(LC_ALL, name) == nullptr) continue;
    EXPECT_EQ(percent(0.034), "3.4%") << name;
    EXPECT_EQ(short_text(0.5, 3), "0.5") << name;
  }
  std::setlocale(LC_ALL, c_before.c_str());
}

TEST(NumberText, LowerCaseIsThatOfAscii) {
  for (int code = 0; code < 128; ++code) {
    const auto letter = static_cast<char>(code);
    EXPECT_EQ(lower(letter), letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
  }
}

}  // namespace
}  // namespace roofprof
