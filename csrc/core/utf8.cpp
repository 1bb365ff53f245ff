#include "core/utf8.h"

#include <algorithm>

namespace roofprof {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Control characters, separators of lines and paragraphs (U+2028, U+2029), and those that turn the direction of what
// follows (Unicode's UAX #9), U+202A to U+202E and U+2066 to U+2069: a name with one would turn its line around.
bool is_control(std::string_view point) {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(point[i]); };
  if (point.size() == 1) return byte_at(0) < 0x20 || byte_at(0) == 0x7F;
  if (point.size() == 2) return byte_at(0) == 0xC2 && byte_at(1) < 0xA0;
  if (point.size() != 3 || byte_at(0) != 0xE2) return false;
  const auto second = byte_at(1);
  const auto third = byte_at(2);
  return (second == 0x80 && third >= 0xA8 && third <= 0xAE) || (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

}  // namespace

std::size_t utf8_sequence(std::string_view text) {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  const unsigned char lead = byte_at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (byte_at(i) < 0x80 || byte_at(i) > 0xBF) return 0;
  }
  const unsigned char second = byte_at(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool too_large = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

void append_utf8(std::string& to, std::uint32_t code) {
  const auto add = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
  const auto add_rest = [&](std::uint32_t shift) { add(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0U | (code >> 6U));
  } else {
    if (code < 0x10000) {
      add(0xE0U | (code >> 12U));
    } else {
      add(0xF0U | (code >> 18U));
      add_rest(12);
    }
    add_rest(6);
  }
  add_rest(0);
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) {
      result += kReplacement;
    } else if (is_control(text.substr(0, length))) {
      result += ' ';
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

}  // namespace roofprof
