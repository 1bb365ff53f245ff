#include "core/json/writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/utf8.h"

namespace roofprof {

namespace {

// Needs neither an escape nor a look at its sequence.
bool is_plain(char character) {
  const auto code = static_cast<unsigned char>(character);
  return code >= 0x20 && code < 0x7F && character != '"' && character != '\\';
}

void append_escaped(std::string& to, char character) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  switch (character) {
    case '"':
      to += "\\\"";
      return;
    case '\\':
      to += "\\\\";
      return;
    case '\n':
      to += "\\n";
      return;
    case '\r':
      to += "\\r";
      return;
    case '\t':
      to += "\\t";
      return;
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(character);
  to += "\\u00";
  to += kDigits[code >> 4U];
  to += kDigits[code & 0xFU];
}

void append_quoted(std::string& to, std::string_view text) {
  to += '"';
  while (!text.empty()) {
    auto length = static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    if (length == 0) {
      length = utf8_sequence(text);
      if (length == 0) to += "\\ufffd";
      if (length == 1) append_escaped(to, text.front());
      if (length > 1) to += text.substr(0, length);
    } else {
      to += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  to += '"';
}

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string result;
  append_quoted(result, text);
  return result;
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> digits{};
  std::string text(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  // Readers tell integers and floats apart by the text.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void JsonWriter::key(std::string_view name) {
  separate();
  append_quoted(text_, name);
  text_ += ": ";
  after_key_ = true;
}

void JsonWriter::write(std::string_view value) {
  separate();
  append_quoted(text_, value);
}

void JsonWriter::write(const std::vector<std::vector<std::int64_t>>& shapes) {
  separate();
  text_ += '[';
  for (const auto& shape : shapes) {
    if (text_.back() == ']') text_ += ',';
    text_ += '[';
    for (const auto size : shape) {
      if (text_.back() != '[') text_ += ',';
      text_ += std::to_string(size);
    }
    text_ += ']';
  }
  text_ += ']';
}

}  // namespace roofprof
