// Which module and op waste most: the list below the tree and below the ops.

#include "figures/wasters.h"

#include <array>

#include "report/header_and_footer.h"

namespace roofprof {

namespace {

constexpr std::size_t kMost = 5;
constexpr std::size_t kMinModuleWidth = 27;
constexpr std::size_t kMinOpWidth = 18;

}  // namespace

std::string waster_lines(const Report& report, std::size_t width) {
  const auto wasters = top_wasters(report.data(), report.rows(), report.total(), kMost);
  if (wasters.empty()) return "";
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
  for (const auto& row : wasters) {
    std::vector<TextCell> cells = {row.module->empty() ? "(model)" : printable(*row.module), printable(*row.op)};
    for (const auto* column : shown) cells.push_back(cell_of(*column, row));
    const auto all_ns = static_cast<double>(report.total().time_ns.value_or(0));
    cells.emplace_back(all_ns > 0 && row.wasted_ns ? human_percent(100 * static_cast<double>(*row.wasted_ns) / all_ns)
                                                   : "n/a");
    table.add(std::move(cells));
  }
  return '\n' + table.render(width);
}

}  // namespace roofprof
