#include "kineto/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/utf8.h"

namespace roofprof::kineto {
namespace {

bool is_blank(char character) {
  return character == ' ' || character == '\n' || character == '\t' || character == '\r' || character == ',' ||
         character == ':';
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// Returns the position after the string that begins at `at`; the text's length if the string does not end.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

std::size_t end_of_value(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  if (text[at] == '"') return end_of_string(text, at);
  if (text[at] != '{' && text[at] != '[') {
    while (at < text.size() && text[at] != ',' && text[at] != '}' && text[at] != ']' && !is_blank(text[at])) ++at;
    return at;
  }
  std::size_t depth = 0;
  while (at < text.size()) {
    const char character = text[at];
    if (character == '"') {
      at = end_of_string(text, at);
      continue;
    }
    ++at;
    if (character == '{' || character == '[') ++depth;
    if ((character == '}' || character == ']') && --depth == 0) return at;
  }
  return text.size();
}

// Returns the number of the four hexadecimal digits at `at`; empty if they are not digits.
std::optional<std::uint32_t> hex_digits(std::string_view text, std::size_t at) {
  constexpr std::size_t kDigits = 4;
  if (at + kDigits > text.size()) return std::nullopt;
  std::uint32_t value = 0;
  constexpr int kBase = 16;
  const auto digits = text.substr(at, kDigits);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, kBase);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

JsonMembers::JsonMembers(std::string_view object)
    : text_(object), at_(!object.empty() && object[0] == '{' ? 1 : object.size()) {}

bool JsonMembers::next() {
  at_ = skip_blanks(text_, at_);
  if (at_ >= text_.size() || text_[at_] != '"') return false;
  const auto end_of_key = end_of_string(text_, at_);
  key_ = unquoted(text_.substr(at_, end_of_key - at_));
  const auto begin = skip_blanks(text_, end_of_key);
  at_ = end_of_value(text_, begin);
  value_ = text_.substr(std::min(begin, text_.size()), at_ - std::min(begin, at_));
  return !value_.empty();
}

JsonItems::JsonItems(std::string_view array)
    : text_(array), at_(!array.empty() && array[0] == '[' ? 1 : array.size()) {}

bool JsonItems::next() {
  at_ = skip_blanks(text_, at_);
  if (at_ >= text_.size() || text_[at_] == ']') return false;
  const auto begin = at_;
  at_ = end_of_value(text_, begin);
  value_ = text_.substr(begin, at_ - begin);
  return !value_.empty();
}

std::string_view unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return value;
  return value.substr(1, value.size() - 2);
}

std::string decoded(std::string_view value) {
  const auto text = unquoted(value);
  if (text.find('\\') == std::string_view::npos) return printable(text);
  constexpr std::string_view kCodes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      result += text[at];
      continue;
    }
    ++at;
    if (const auto known = kCodes.find(text[at]); known != std::string_view::npos) {
      result += kMeanings[known];
      continue;
    }
    const auto point = text[at] == 'u' ? hex_digits(text, at + 1) : std::nullopt;
    if (!point) {  // a path of Windows in a profiler that forgot to escape it
      result += '\\';
      result += text[at];
      continue;
    }
    at += 4;
    const bool leads = *point >= 0xD800 && *point < 0xDC00 && text.substr(at + 1, 2) == "\\u";
    const auto low = leads ? hex_digits(text, at + 3) : std::nullopt;
    if (low && *low >= 0xDC00 && *low < 0xE000) {
      append_utf8(result, 0x10000 + ((*point - 0xD800) << 10U) + (*low - 0xDC00));
      at += 6;
    } else {
      constexpr std::uint32_t kReplacement = 0xFFFD;
      append_utf8(result, *point >= 0xD800 && *point < 0xE000 ? kReplacement : *point);
    }
  }
  return printable(result);
}

std::optional<std::int64_t> integer(std::string_view value) {
  const auto text = unquoted(value);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> nanoseconds(std::string_view value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4000;  // two of them can be added
  const auto text = unquoted(value);
  const auto point = text.find('.');
  const auto whole = integer(text.substr(0, point));
  if (text.find_first_of("eE") != std::string_view::npos || !whole) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    if (std::isnan(number) || std::abs(number) >= static_cast<double>(kMost)) return std::nullopt;
    return std::llround(number * 1000);
  }
  if (*whole > kMost || *whole < -kMost) return std::nullopt;
  std::int64_t fraction = 0;
  if (point != std::string_view::npos) {
    constexpr std::array<std::int64_t, 4> kScale = {100, 10, 1, 0};
    const auto digits = text.substr(point + 1);
    for (std::size_t i = 0; i < digits.size(); ++i) {
      if (digits[i] < '0' || digits[i] > '9') return std::nullopt;
      fraction += (digits[i] - '0') * kScale[std::min<std::size_t>(i, 3)];
    }
    if (digits.size() > 3 && digits[3] >= '5') ++fraction;
  }
  return *whole * 1000 + (text.front() == '-' ? -fraction : fraction);
}

std::string microseconds(std::int64_t ns) {
  constexpr std::int64_t kMicrosecond = 1000;
  auto fraction = std::to_string(kMicrosecond + ns % kMicrosecond).substr(1);
  while (fraction.size() > 1 && fraction.back() == '0') fraction.pop_back();
  return std::to_string(ns / kMicrosecond) + "." + fraction + " µs";
}

}  // namespace roofprof::kineto
