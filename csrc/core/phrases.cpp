#include "core/phrases.h"

#include <algorithm>

#include "core/utf8.h"

namespace roofprof {

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 40;  // code points
  const std::string whole = printable(text);
  std::size_t bytes = 0;
  for (std::size_t points = 0; points < kLongest && bytes < whole.size(); ++points) {
    bytes += utf8_sequence(std::string_view(whole).substr(bytes));
  }
  return bytes < whole.size() ? whole.substr(0, bytes) + "..." : whole;
}

std::string percent(double fraction) { return fixed_text(100 * fraction, fraction < 0.1 ? 1 : 0) + "%"; }

std::string display_path(const std::string& path) { return path.empty() ? "the model" : path; }

std::vector<std::string> topmost_of(const std::vector<std::string>& paths) {
  std::vector<std::string> topmost;
  for (const auto& path : paths) {
    const bool below = std::any_of(paths.begin(), paths.end(), [&](const std::string& other) {
      return other.size() < path.size() && (other.empty() || path.starts_with(other + "."));
    });
    if (!below) topmost.push_back(path);
  }
  return topmost;
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  std::string text = std::to_string(count) + " ";
  if (count == 1 || many.empty()) return text.append(one) + (count == 1 ? "" : "s");
  return text.append(many);
}

void add_item(std::string& list, std::string_view item) { list.append(list.empty() ? "" : ", ").append(item); }

}  // namespace roofprof
