// Which module and op waste most: the list below the tree and below the ops.

#include <fmt/format.h>

#include <array>

#include "analysis/whole/analysis.h"
#include "report/header_and_footer.h"

namespace roofprof {

namespace {

constexpr std::size_t kMinModuleWidth = 27;
constexpr std::size_t kMinOpWidth = 18;

}  // namespace

std::string hotspot_lines(const Report& report, const TableOptions& options, std::size_t width) {
  const Analysis& analysis = report.analysis();
  const auto& hotspots = options.expand ? analysis.hotspots() : analysis.folded_hotspots();
  if (hotspots.empty()) return "";
  const auto columns = columns_of<GroupRow>();
  const std::array shown = {&column_named(columns, "time"), &column_named(columns, "bound"),
                            &column_named(columns, "percent_of_roof"), &column_named(columns, "wasted_time")};

  Table table{{{"most waste in", true, kMinModuleWidth, 0, Keep::end},
               {"op", true, kMinOpWidth, 0},
               {"time", false, 0, 4},
               {"bound", true, 0, 1},
               {"%roof", false, 0, 3},
               {"wasted", false, 0, 0},
               {"of total", false, 0, 2}}};
  for (const auto& [row, members] : hotspots) {
    std::string name = row.module->empty() ? "(model)" : *row.module;
    if (members > 1) name += fmt::format(" x{}", members);
    std::vector<Cell> cells = {name, *row.op};
    for (const auto* column : shown) cells.push_back(cell_of(*column, row));
    const auto all_ns = static_cast<double>(report.total().time_ns.value_or(0));
    cells.emplace_back(all_ns > 0 && row.wasted_time_ns
                           ? human_percent(100 * static_cast<double>(*row.wasted_time_ns) / all_ns)
                           : "n/a");
    table.add(std::move(cells));
  }
  return '\n' + render_rows(table, width);
}

}  // namespace roofprof
