#include "core/json/writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/utf8.h"

namespace roofprof {
namespace {

TEST(Utf8, TellsValidFromInvalid) {
  EXPECT_EQ(utf8_sequence("a"), 1U);
  EXPECT_EQ(utf8_sequence("µ"), 2U);
  EXPECT_EQ(utf8_sequence("…"), 3U);
  EXPECT_EQ(utf8_sequence("😀"), 4U);
  for (const char* invalid : {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"}) {
    EXPECT_EQ(utf8_sequence(invalid), 0U) << invalid;
  }
}

TEST(JsonText, EscapesWhatMustBe) {
  EXPECT_EQ(json_quoted("plain µ"), "\"plain µ\"");
  EXPECT_EQ(json_quoted("a\"b\\c\n\r\t\x01\x7F"), R"("a\"b\\c\n\r\t\u0001\u007f")");
  EXPECT_EQ(json_quoted(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(json_quoted("a\xFFz\xC3"), R"("a\ufffdz\ufffd")");
}

TEST(JsonText, DoublesHaveAPoint) {
  EXPECT_EQ(json_number(1), "1.0");
  EXPECT_EQ(json_number(1e30), "1e+30");
  EXPECT_EQ(json_number(std::nan("")), "null");
  EXPECT_EQ(json_number(-std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonText, NestsObjectsAndArrays) {
  JsonWriter json;
  json.begin_object();
  json.member("none", std::optional<std::int64_t>());
  json.key("list");
  json.begin_array();
  json.break_line();
  json.write(true);
  json.break_line();
  json.write(std::vector<std::int64_t>{1, 2});
  json.end_array();
  json.member("empty", std::map<std::string, std::int64_t>{});
  json.end_object();
  EXPECT_EQ(json.take(), "{\"none\": null, \"list\": [\ntrue,\n[1, 2]], \"empty\": {}}\n");
}

}  // namespace
}  // namespace roofprof
