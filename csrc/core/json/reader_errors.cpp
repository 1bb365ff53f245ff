#include "core/json/reader.h"

#include <algorithm>

// Writes the reader's errors about a text that it refuses, and finds their place in the text.
namespace roofprof {

JsonSyntaxError::JsonSyntaxError(const std::string& problem, std::size_t line, std::size_t column)
    : JsonError("it is not JSON (line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + problem +
                ")"),
      line_(line),
      column_(column) {}

void JsonReader::fail(const std::string& problem) const {
  const std::string_view before = text_.substr(0, at_);
  const auto line = static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  throw JsonSyntaxError(problem, line, before.size() - line_start + 1);
}

void JsonReader::fail_here(const std::string& expected) const {
  if (at_ >= text_.size()) fail("the text ends where " + expected + " is expected");
  fail(expected + " is expected here");
}

std::string JsonReader::path() const {
  std::string path;
  for (const Level& level : levels_) {
    if (level.is_object) {
      if (level.key.data() == nullptr) continue;
      if (!path.empty()) path += '.';
      path += shown(level.key);
    } else if (!level.is_first) {
      path += '[' + std::to_string(level.index) + ']';
    }
  }
  return path;
}

void JsonReader::refuse(const std::string& problem) const {
  const std::string where = path();
  throw JsonError((where.empty() ? "its outermost value" : "'" + where + "'") + ' ' + problem);
}

void JsonReader::refuse_type(const std::string& expected) const {
  refuse("has the wrong type: it should be " + expected);
}

void JsonReader::refuse_range(std::string_view digits) const {
  refuse("is " + shown(digits) + ", which is out of range");
}

void JsonReader::lacks_key(std::string_view key) const {
  const std::string where = path();
  throw JsonError("it lacks the key '" + (where.empty() ? "" : where + '.') + std::string(key) + "'");
}

}  // namespace roofprof
