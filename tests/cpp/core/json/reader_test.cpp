#include "core/json/reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/json/writer.h"
#include "core/utf8.h"

namespace roofprof {
namespace {

std::string message_of(const std::string& text, const auto& read) {
  JsonReader json(text);
  try {
    read(json);
    json.finish();
  } catch (const JsonError& error) {
    return error.what();
  }
  return "(it was read)";
}

std::string message_of_skipping(const std::string& text) {
  return message_of(text, [](JsonReader& json) { json.skip(); });
}

std::string text_of(const std::string& json) {
  JsonReader reader(json);
  std::string text = reader.text();
  reader.finish();
  return text;
}

TEST(JsonReader, ReadsValuesInTheirOrder) {
  JsonReader json(R"( {"\u006eame": "a", "list": [1, -2.5e3, true, null], "more": {"deep": [[]]}, "last": false} )");
  json.begin_object();
  EXPECT_EQ(json.next_key(), "name");
  EXPECT_EQ(json.text(), "a");
  EXPECT_EQ(json.next_key(), "list");
  json.begin_array();
  EXPECT_TRUE(json.next_item());
  EXPECT_TRUE(json.is_integer());
  EXPECT_EQ(json.integer<int>(), 1);
  EXPECT_TRUE(json.next_item());
  EXPECT_FALSE(json.is_integer());
  EXPECT_EQ(json.number(), -2500);
  EXPECT_EQ(json.path(), "list[1]");
  EXPECT_TRUE(json.next_item());
  EXPECT_FALSE(json.null());
  EXPECT_TRUE(json.boolean());
  EXPECT_TRUE(json.next_item());
  EXPECT_TRUE(json.null());
  EXPECT_FALSE(json.next_item());
  EXPECT_EQ(json.next_key(), "more");
  EXPECT_EQ(json.raw(), R"({"deep": [[]]})");
  EXPECT_EQ(json.next_key(), "last");
  EXPECT_FALSE(json.boolean());
  EXPECT_EQ(json.next_key(), std::nullopt);
  json.finish();
}

TEST(JsonReader, TextsAndNumbersComeBackAsTheyWereWritten) {
  std::string every;
  for (int c = 0; c < 128; ++c) every += static_cast<char>(c);
  for (const std::string& text : {std::string(), every, std::string("ünï→код 😀"), std::string("\\u0041\\\"")}) {
    EXPECT_EQ(text_of(json_quoted(text)), text);
  }
  EXPECT_EQ(text_of(R"("\u00e9\ud83d\ude00\/\b\f\u0000z")"), std::string("é😀/\b\f\0z", 11));
  using Limits = std::numeric_limits<std::int64_t>;
  for (const std::int64_t value : {Limits::min(), std::int64_t{-1}, std::int64_t{0}, Limits::max()}) {
    EXPECT_EQ(JsonReader(std::to_string(value)).integer<std::int64_t>(), value);
  }
  using Doubles = std::numeric_limits<double>;
  for (const double value : {Doubles::max(), Doubles::lowest(), Doubles::denorm_min(), 0.1, -1.0 / 3}) {
    EXPECT_EQ(JsonReader(json_number(value)).number(), value);
  }
}

TEST(JsonReader, TakesJsonAndNothingElse) {
  for (const char* text :
       {R"({"a": [1, -2.5e+3, null, true, "\u00ff"], "b": {}})", "0", "-0.5", "1E9", "[]", " [ 1 , 2 ] "}) {
    EXPECT_EQ(message_of_skipping(text), "(it was read)") << text;
  }
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"", "line 1, column 1: the text ends where a value is expected"},
      {"[1,\n 2", "line 2, column 3: the text ends where a comma or ] is expected"},
      {"[1,]", "line 1, column 4: a value is expected here"},
      {"[1 2]", "line 1, column 4: a comma or ] is expected here"},
      {"{\"a\" 1}", "line 1, column 6: a colon is expected here"},
      {"{a: 1}", "line 1, column 2: a quote is expected here"},
      {"nan", "line 1, column 1: a value is expected here"},
      {"[1] 2", "line 1, column 5: more text follows the outermost value"},
      {"1.", "line 1, column 3: the text ends where a digit is expected"},
      {"1e", "line 1, column 3: the text ends where a digit is expected"},
      {"\"a\\", "line 1, column 4: the text ends where a quote is expected"},
      {"\"a\nb\"", "line 1, column 3: a string contains a control character"},
      {"\"\xFF\"", "line 1, column 2: a string is not UTF-8"},
      {"\"\\x\"", "line 1, column 2: a backslash is followed by none of \" \\ / b f n r t u"},
      {"\"\\u12g4\"", "line 1, column 2: \\u is not followed by four hexadecimal digits"},
      {"\"\\ud800\"", "line 1, column 2: a surrogate is unpaired"},
      {"\"\\ud800\\u0041\"", "line 1, column 2: a surrogate is unpaired"},
      {std::string(100'000, '['), "line 1, column 101: it nests deeper than 100 levels"},
  };
  for (const auto& [text, problem] : broken) {
    EXPECT_EQ(message_of_skipping(text), "it is not JSON (" + problem + ")") << text.substr(0, 40);
  }
}

TEST(JsonReader, WhatIsNotExpectedIsNamedByItsPath) {
  const auto of_calls = [](const std::string& value, const auto& read) {
    return message_of(R"({"ops": [{}, {"calls": )" + value + "}]}", [&](JsonReader& json) {
      json.begin_object();
      json.next_key();
      json.begin_array();
      while (json.next_item()) {
        json.begin_object();
        while (json.next_key()) read(json);
      }
    });
  };
  const auto integer = [](JsonReader& json) { static_cast<void>(json.integer<std::int32_t>()); };
  EXPECT_EQ(of_calls("1.5", integer), "'ops[1].calls' has the wrong type: it should be an integer");
  EXPECT_EQ(of_calls("\"1\"", integer), "'ops[1].calls' has the wrong type: it should be a number");
  EXPECT_EQ(of_calls("3000000000", integer), "'ops[1].calls' is 3000000000, which is out of range");
  EXPECT_EQ(of_calls("1e999", [](JsonReader& json) { static_cast<void>(json.number()); }),
            "'ops[1].calls' is 1e999, which is out of range");
  EXPECT_EQ(of_calls("1", [](JsonReader& json) { static_cast<void>(json.text()); }),
            "'ops[1].calls' has the wrong type: it should be a text");
  EXPECT_EQ(of_calls("null", [](JsonReader& json) { static_cast<void>(json.boolean()); }),
            "'ops[1].calls' has the wrong type: it should be true or false");
  EXPECT_EQ(of_calls("[]", [](JsonReader& json) { json.begin_object(); }), "'ops[1].calls' is not an object");
  EXPECT_EQ(of_calls("{}", [](JsonReader& json) { json.begin_array(); }), "'ops[1].calls' is not a list");
  EXPECT_EQ(message_of("3", [](JsonReader& json) { json.begin_object(); }), "its outermost value is not an object");
  // What is no JSON is said to be none, whatever was expected.
  EXPECT_EQ(of_calls("nan", integer), "it is not JSON (line 1, column 24: a value is expected here)");
}

TEST(JsonReader, PathsAreFitForATerminal) {
  const std::string message = message_of("{\"a\u00e9\\n" + std::string(100, 'x') + "\": 1}", [](JsonReader& json) {
    json.begin_object();
    json.next_key();
    static_cast<void>(json.text());
  });
  EXPECT_LT(message.size(), 120U);
  EXPECT_EQ(message, printable(message));
  EXPECT_NE(message.find("\u00e9"), std::string::npos) << message;
}

}  // namespace
}  // namespace roofprof
