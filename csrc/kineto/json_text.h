#pragma once
// Reads JSON as profilers write it: names may hold control characters and bytes that are not UTF-8. Brackets must
// match.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace roofprof::kineto {

// Goes through the members of an object, one after the other, as its text has them.
class JsonMembers {
 public:
  explicit JsonMembers(std::string_view object);
  // Goes to the next member. Returns false at the end, and where the text stops being an object.
  bool next();
  std::string_view key() const { return key_; }      // without quotes, escapes as they are
  std::string_view value() const { return value_; }  // with its quotes or brackets

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view key_;
  std::string_view value_;
};

// Goes through the items of an array.
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

// Returns the text between the quotes; any other value unchanged.
std::string_view unquoted(std::string_view value);
// Returns the same without escapes, in UTF-8.
std::string decoded(std::string_view value);
// Return a number, also one in quotes.
std::optional<std::int64_t> integer(std::string_view value);
// Returns exact nanoseconds for microseconds with a fraction.
std::optional<std::int64_t> nanoseconds(std::string_view value);
// Returns "1234.567 us", exact to the nanosecond.
std::string microseconds(std::int64_t ns);

}  // namespace roofprof::kineto
