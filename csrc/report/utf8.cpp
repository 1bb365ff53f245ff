#include "report/utf8.h"

#include <algorithm>
#include <vector>

namespace roofprof {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "…";

unsigned char byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// Control characters, and those that turn the direction of what follows (Unicode's UAX #9), U+202A to U+202E and U+2066
// to U+2069: a name with one would turn its line around.
bool is_control(std::string_view point) {
  if (point.size() == 1) return byte_at(point, 0) < 0x20 || byte_at(point, 0) == 0x7F;
  if (point.size() == 2) return byte_at(point, 0) == 0xC2 && byte_at(point, 1) < 0xA0;
  if (point.size() != 3 || byte_at(point, 0) != 0xE2) return false;
  const auto second = byte_at(point, 1);
  const auto third = byte_at(point, 2);
  return (second == 0x80 && third >= 0xAA && third <= 0xAE) || (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    text.remove_prefix(std::max<std::size_t>(utf8_sequence(text), 1));
    ++width;
  }
  return width;
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

std::string truncate(std::string_view text, std::size_t width, Keep keep) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::vector<std::string_view> points;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_sequence(text), 1);
    points.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  const std::size_t kept = width - 1;
  const std::size_t front = keep == Keep::both_ends ? kept / 2 : 0;
  std::string result;
  for (std::size_t i = 0; i < front; ++i) result += points[i];
  result += kEllipsis;
  for (std::size_t i = points.size() - (kept - front); i < points.size(); ++i) result += points[i];
  return result;
}

}  // namespace roofprof
