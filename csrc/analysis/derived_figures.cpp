#include "analysis/derived_figures.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "analysis/closest.h"
#include "analysis/coverage.h"
#include "analysis/kernel_rows.h"
#include "analysis/region_rows.h"
#include "analysis/rows.h"

namespace roofprof {

namespace {

// The path of the region of that name; empty where there is none, or more than one.
std::optional<std::string_view> row_of_region(const ProfileData& data, std::string_view name) {
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
  figures.regions = region_rows(data);
  figures.coverage = make_coverage(data, figures.rows, figures.total);
  return figures;
}

const RooflineRow& row_named(std::string_view path, const std::vector<RooflineRow>& rows, const ProfileData& data) {
  auto found = std::ranges::find(rows, path, &RooflineRow::path);
  if (found == rows.end()) {
    if (const auto region = row_of_region(data, path)) found = std::ranges::find(rows, *region, &RooflineRow::path);
  }
  if (found != rows.end()) return *found;
  std::vector<std::string> paths;
  for (const auto& row : rows) paths.push_back(row.path);
  throw std::out_of_range("no row '" + std::string(path) + "'; the closest are " + closest(path, paths));
}

}  // namespace roofprof
