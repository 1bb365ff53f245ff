// Which module and op waste most: the list below the tree and below the ops.

#include "analysis/hotspots.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "analysis/rows.h"
#include "analysis/siblings/siblings.h"

#include "report/header_and_footer.h"

namespace roofprof {

namespace {

constexpr std::size_t kMinModuleWidth = 27;
constexpr std::size_t kMinOpWidth = 18;

struct Hotspots {
  std::vector<GroupRow> groups;
  std::map<std::string, std::size_t> members;  // by path: how many equal modules these are the sum of
};

Hotspots find_wasters(const Report& report, bool expand) {
  Hotspots found;
  if (expand) {
    found.groups = top_wasters(report.data(), report.rows(), report.total(), kMostWasting);
    for (const auto& waster : found.groups) found.members[*waster.module] = 1;
    return found;
  }
  const Folding folding = fold_siblings(report.data());
  found.groups = top_wasters(folding.data, join_rows(folding.data), report.total(), kMostWasting);
  for (std::size_t id = 0; id < folding.modules.size(); ++id) {
    found.members.emplace(folding.data.modules[id].path, folding.modules[id].members.size());
  }
  return found;
}

}  // namespace

std::string waster_lines(const Report& report, const TableOptions& options, std::size_t width) {
  const Hotspots found = find_wasters(report, options.expand);
  const auto& hotspots = found.groups;
  if (hotspots.empty()) return "";
  const auto columns = columns_of<GroupRow>();
  const std::array shown = {&column_named(columns, "time"), &column_named(columns, "bound"),
                            &column_named(columns, "percent_of_roof"), &column_named(columns, "wasted_time")};

  TextTable table({{"most waste in", true, kMinModuleWidth, 0, Keep::end},
                   {"op", true, kMinOpWidth, 0},
                   {"time", false, 0, 4},
                   {"bound", true, 0, 1},
                   {"%roof", false, 0, 3},
                   {"wasted", false, 0, 0},
                   {"of total", false, 0, 2}});
  for (const auto& row : hotspots) {
    std::string name = row.module->empty() ? "(model)" : *row.module;
    if (const auto members = found.members.at(*row.module); members > 1) name += fmt::format(" x{}", members);
    std::vector<TextCell> cells = {name, *row.op};
    for (const auto* column : shown) cells.push_back(cell_of(*column, row));
    const auto all_ns = static_cast<double>(report.total().time_ns.value_or(0));
    cells.emplace_back(all_ns > 0 && row.wasted_time_ns
                           ? human_percent(100 * static_cast<double>(*row.wasted_time_ns) / all_ns)
                           : "n/a");
    table.add(std::move(cells));
  }
  return '\n' + table.render(width);
}

}  // namespace roofprof
