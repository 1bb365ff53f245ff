#include "analysis/closest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace roofprof {
namespace {

constexpr std::size_t kSuggestions = 3;

// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
    }
    std::swap(previous, current);
  }
  return previous.back();
}

}  // namespace

std::string closest(std::string_view wanted, const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const auto& name : names) {
    if (name.empty()) continue;  // the model's own path helps nobody
    // "conv1" in "layer1.0.conv1" is closer than any misspelling.
    const bool contains = !wanted.empty() && name.find(wanted) != std::string::npos;
    ranked.emplace_back(contains ? 0 : edit_distance(wanted, name), name);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string list;
  for (std::size_t i = 0; i < std::min(ranked.size(), kSuggestions); ++i) {
    list += (i > 0 ? ", '" : "'") + std::string(ranked[i].second) + "'";
  }
  return list;
}

}  // namespace roofprof
