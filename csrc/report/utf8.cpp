#include "report/utf8.h"

#include <algorithm>
#include <vector>

namespace roofprof {

namespace {

constexpr std::string_view kEllipsis = "…";

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    text.remove_prefix(std::max<std::size_t>(utf8_sequence(text), 1));
    ++width;
  }
  return width;
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
