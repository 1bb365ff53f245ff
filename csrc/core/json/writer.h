#pragma once
// JSON text, built value by value. Strings come out as valid UTF-8, doubles with the fewest digits that read back
// equal; what JSON cannot say (NaN, infinity) and what is missing is null.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace roofprof {

// Returns the text in quotes, escaped; bytes that are not valid UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

// Returns the fewest digits that read back as the same double, always recognisable as one ("1.0"); "null" where not
// finite.
std::string json_number(double value);

class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }

  // Puts the next value on a new line.
  void break_line() { line_break_ = true; }

  void key(std::string_view name);

  template <class Value>
  void member(std::string_view name, const Value& value) {
    key(name);
    write(value);
  }

  void write(std::string_view value);
  void write(const char* value) { write(std::string_view(value)); }
  void write(const std::string& value) { write(std::string_view(value)); }
  void write(double value) { raw(json_number(value)); }
  template <class Integer>
    requires std::is_integral_v<Integer>
  void write(Integer value) {
    if constexpr (std::is_same_v<Integer, bool>) {
      raw(value ? "true" : "false");
    } else {
      raw(std::to_string(value));
    }
  }
  template <class Value>
  void write(const std::optional<Value>& value) {
    value ? write(*value) : write_null();
  }
  void write_null() { raw("null"); }
  // Sizes of tensors, of which a report has many: without blanks.
  void write(const std::vector<std::vector<std::int64_t>>& shapes);
  template <class Value>
  void write(const std::vector<Value>& values) {
    begin_array();
    for (const auto& value : values) write(value);
    end_array();
  }
  template <class Value>
  void write(const std::map<std::string, Value>& values) {
    begin_object();
    for (const auto& [name, value] : values) member(name, value);
    end_object();
  }

  std::string take() { return std::move(text_) + "\n"; }

 private:
  void raw(std::string_view value) {
    separate();
    text_ += value;
  }
  void open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    if (std::exchange(line_break_, false)) text_ += '\n';
    text_ += bracket;
    first_ = false;
  }
  void separate() {
    if (std::exchange(after_key_, false)) return;
    if (!std::exchange(first_, false)) text_ += line_break_ ? "," : ", ";
    if (std::exchange(line_break_, false)) text_ += '\n';
  }

  std::string text_;
  bool first_ = true;  // the next value is the first of its object or array
  bool after_key_ = false;
  bool line_break_ = false;
};

}  // namespace roofprof
