// Numbers and names of traces, against what they say.

#include "kineto/json_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace roofprof::kineto {
namespace {

TEST(JsonText, MicrosecondsBecomeNanosecondsExactly) {
  EXPECT_EQ(nanoseconds("1"), 1'000);
  EXPECT_EQ(nanoseconds("123.4567"), 123'457);
  EXPECT_EQ(nanoseconds("1.0005"), 1'001);
  EXPECT_EQ(nanoseconds("1.00049999"), 1'000);
  EXPECT_EQ(nanoseconds("1.9999"), 2'000);
  EXPECT_EQ(nanoseconds("-0.5"), -500);
  EXPECT_EQ(nanoseconds("-12.25"), -12'250);
  EXPECT_EQ(nanoseconds("1e3"), 1'000'000);
  EXPECT_EQ(nanoseconds("1.25E-1"), 125);
  EXPECT_EQ(nanoseconds("\"2.5\""), 2'500);
  // Microseconds since 1970, which no double has to the nanosecond.
  EXPECT_EQ(nanoseconds("1763980000123456.789"), 1'763'980'000'123'456'789);
}

TEST(JsonText, WhatIsNoNumberIsNone) {
  for (const auto* text :
       {"", "\"\"", "1,5", "1.5x", "NaN", "-inf", "null", "--1", "1e30", "9223372036854775807", "[1]", "0x10", "."}) {
    EXPECT_EQ(nanoseconds(text), std::nullopt) << text;
  }
  EXPECT_EQ(integer("\"-17\""), -17);
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  for (const auto* text : {"", "1.5", "1e3", "9223372036854775808", " 1", "null", "\"x\"", "\""}) {
    EXPECT_EQ(integer(text), std::nullopt) << text;
  }
}

TEST(JsonText, DecodesEscapes) {
  EXPECT_EQ(decoded(R"("plain")"), "plain");
  EXPECT_EQ(decoded(R"("\u0041\u00df\u6f22\ud83d\ude00")"), "A\u00df\u6f22\U0001F600");
  EXPECT_EQ(decoded(R"("\ude00\ud83d\u0041")"), "\uFFFD\uFFFDA");
  EXPECT_EQ(decoded(R"("\ud83d\ud83d\ude00")"), "\uFFFD\U0001F600");
  EXPECT_EQ(decoded(R"("\u12")"), "\\u12");
  EXPECT_EQ(decoded(R"("\u-123")"), "\\u-123");
  EXPECT_EQ(decoded("\"a\\"), "\"a\\");
}

std::vector<std::string> members_of(std::string_view text) {
  std::vector<std::string> result;
  JsonMembers members(text);
  while (members.next()) result.push_back(std::string(members.key()) + "=" + std::string(members.value()));
  return result;
}
std::vector<std::string> items_of_list(std::string_view text) {
  std::vector<std::string> result;
  JsonItems items(text);
  while (items.next()) result.emplace_back(items.value());
  return result;
}
using Texts = std::vector<std::string>;

TEST(JsonText, MembersAndItemsAsTheyStand) {
  EXPECT_EQ(members_of(R"({"a": 1,"b" :"x,}\"", "c":{"d":[1,2]} , "e":[]})"),
            (Texts{"a=1", "b=\"x,}\\\"\"", R"(c={"d":[1,2]})", "e=[]"}));
  EXPECT_EQ(items_of_list(R"([1, "a]", [2, [3]], {"b": "]"} ])"), (Texts{"1", "\"a]\"", "[2, [3]]", R"({"b": "]"})"}));
  for (const auto* text : {"", "{}", "[]", "5", "\"x\"", "{", "[", "null"}) {
    EXPECT_EQ(members_of(text), Texts{}) << text;
    EXPECT_EQ(items_of_list(text), Texts{}) << text;
  }
}

// Whatever the text, they come to an end, and give no more than is there.
TEST(JsonText, DamagedTextEnds) {
  const std::string text = R"({"a": [1, {"b": "c\"d"}, null], "e": "\u0041", "f": {}})";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const auto cut = text.substr(0, length);
    EXPECT_LE(members_of(cut).size(), 3);
    EXPECT_LE(items_of_list("[" + cut).size(), 1);
    for (const char other : {'"', '{', ']', '\\', ',', ':'}) {
      auto damaged = text;
      if (length < text.size()) damaged[length] = other;
      EXPECT_LE(members_of(damaged).size(), damaged.size());
    }
  }
}

}  // namespace
}  // namespace roofprof::kineto
