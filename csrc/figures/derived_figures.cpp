#include "figures/derived_figures.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "figures/coverage.h"
#include "figures/kernel_rows.h"
#include "figures/rows.h"

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

std::string closest_paths(const std::vector<RooflineRow>& rows, std::string_view path) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const auto& row : rows) {
    // A path that holds the wanted name whole ("conv1" in "layer1.0.conv1") is closer than any misspelling.
    const bool contains = !path.empty() && row.path.find(path) != std::string::npos;
    ranked.emplace_back(contains ? 0 : edit_distance(path, row.path), row.path);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string list;
  for (std::size_t i = 0; i < std::min(ranked.size(), kSuggestions); ++i) {
    list += (i > 0 ? ", '" : "'") + std::string(ranked[i].second) + "'";
  }
  return list;
}

// The path of the region of that name; empty where there is none, or more than one.
std::optional<std::string_view> path_of_region(const ProfileData& data, std::string_view name) {
  std::optional<std::string_view> path;
  for (const auto& module : data.modules) {
    if (module.type != kRegionType || module.parent < 0) continue;
    const auto& parent = data.modules[static_cast<std::size_t>(module.parent)].path;
    if (std::string_view(module.path).substr(parent.empty() ? 0 : parent.size() + 1) != name) continue;
    if (path) return std::nullopt;
    path = module.path;
  }
  return path;
}

}  // namespace

DerivedFigures derive_figures(const ProfileData& data) {
  check_consistent(data);
  DerivedFigures figures;
  figures.rows = join_rows(data);
  figures.total = join_total(data, figures.rows);
  figures.kernels = kernel_rows(data);
  figures.coverage = make_coverage(data, figures.rows, figures.total);
  return figures;
}

const RooflineRow& row_named(std::string_view path, const std::vector<RooflineRow>& rows, const ProfileData& data) {
  auto found = std::ranges::find(rows, path, &RooflineRow::path);
  if (found == rows.end()) {
    if (const auto region = path_of_region(data, path)) found = std::ranges::find(rows, *region, &RooflineRow::path);
  }
  if (found != rows.end()) return *found;
  throw std::out_of_range("no row '" + std::string(path) + "'; the closest are " + closest_paths(rows, path));
}

}  // namespace roofprof
