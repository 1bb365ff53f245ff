#pragma once
// Reads JSON text (RFC 8259) value by value, and refuses everything that is not JSON.
//
//   JsonReader reader(text);
//   reader.begin_object();
//   while (const auto key = reader.next_key()) {
//     if (*key == "calls") calls = reader.integer<std::int64_t>();
//     else reader.skip();
//   }
//   reader.finish();

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/phrases.h"
#include "roofprof/error.h"

namespace roofprof {

// One sentence: what is wrong, with the path of the value, "'ops[3].calls' has the wrong type: ...".
class JsonError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// Raised where the text is not JSON: "it is not JSON (line 3, column 7: ...)".
class JsonSyntaxError final : public JsonError {
 public:
  JsonSyntaxError(const std::string& problem, std::size_t line, std::size_t column);
  std::size_t line() const { return line_; }
  std::size_t column() const { return column_; }  // in bytes, from 1

 private:
  std::size_t line_;
  std::size_t column_;
};

class JsonReader {
 public:
  // The text outlives the reader.
  explicit JsonReader(std::string_view text) : text_(text) {}

  // Each key's value is read or skipped before the next key is asked for. A key is valid until then.
  void begin_object();
  std::optional<std::string_view> next_key();
  // Each item is read or skipped before the next one is asked for.
  void begin_array();
  bool next_item();

  // Reads the value where it is null.
  bool null();
  bool boolean();
  double number();
  std::string text();
  template <class Integer>
  Integer integer() {
    const std::string_view digits = number_text();
    Integer value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) refuse_range(digits);
    if (error != std::errc{} || end != digits.data() + digits.size()) refuse_type("an integer");
    return value;
  }
  // These return whether the next value is a text, or a number that is written as an integer.
  bool is_text();
  bool is_integer();

  void skip();
  // Skips the next value and returns its text.
  std::string_view raw();
  // Throws if anything but blanks follows.
  void finish();

  // Returns the path of the value that is being read: "ops[3].calls"; empty for the outermost one.
  std::string path() const;
  // Throw JsonError of the value that is being read.
  [[noreturn]] void refuse(const std::string& problem) const;  // "'ops[3].calls' <problem>"
  [[noreturn]] void refuse_type(const std::string& expected) const;
  [[noreturn]] void lacks_key(std::string_view key) const;

 private:
  struct Level {
    bool is_object = false;
    bool is_first = true;
    std::string_view key = {};  // in the text's spelling
    std::size_t index = 0;
  };

  [[noreturn]] void fail(const std::string& problem) const;
  [[noreturn]] void fail_here(const std::string& expected) const;
  [[noreturn]] void refuse_range(std::string_view digits) const;
  void blanks();
  char peek();
  bool take(char character);
  bool take_word(std::string_view word);
  void open(char bracket, const char* kind);
  bool next(char closing);
  void digits();
  // Returns the token of a number.
  std::string_view number_text();
  // quoted() returns the text between quotes with its escapes; decoded() replaces the escapes.
  std::string_view quoted();
  std::string_view decoded(std::string_view quoted_text);
  std::uint32_t hex_digits(std::size_t at) const;

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Level> levels_;
  bool has_escapes_ = false;  // of what quoted() read last
  std::string decoded_;
};

}  // namespace roofprof
