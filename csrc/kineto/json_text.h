#pragma once
// JSON as profilers write it: names may hold bytes that are no UTF-8, or control characters. The text is balanced.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace roofprof::kineto {

// The members of an object, one after the other, as they stand in its text.
class JsonMembers {
 public:
  explicit JsonMembers(std::string_view object);
  // False at the end, and where the text is no object any more.
  bool next();
  std::string_view key() const { return key_; }      // without quotes, escapes as they are
  std::string_view value() const { return value_; }  // with its quotes or brackets

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view key_;
  std::string_view value_;
};

// The items of an array.
class JsonItems {
 public:
  explicit JsonItems(std::string_view array);
  bool next();
  std::string_view value() const { return value_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view value_;
};

// What stands between the quotes; other values as they are.
std::string_view unquoted(std::string_view value);
// The same without escapes, in UTF-8.
std::string decoded(std::string_view value);
// Numbers, also those that stand in quotes.
std::optional<std::int64_t> integer(std::string_view value);
// From microseconds with a fraction to nanoseconds, exactly.
std::optional<std::int64_t> nanoseconds(std::string_view value);

}  // namespace roofprof::kineto
