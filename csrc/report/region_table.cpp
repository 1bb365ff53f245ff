// Regions: one line for each, with all that ran in it.

#include <fmt/format.h>

#include "core/profile_data.h"
#include "report/tables.h"
#include "report/utf8.h"

namespace roofprof {

const std::vector<DefaultColumn>& default_region_columns() {
  static const std::vector<DefaultColumn> kDefault = {
      {"calls", 3},
      {"wall", 1, facts::time},
      {"time", 0},
      {"macs", 12},
      {"flops", 5},
      {"int_ops", 6, facts::integers},
      {"bytes", 9},
      {"intensity", 11},
      {"achieved_flops", 15},
      {"achieved_bandwidth", 16},
      {"dram_bytes", 4},
      {"bound", 3},
      {"percent_of_roof", 7},
      {"wasted_time", 2},
  };
  return kDefault;
}

namespace {

constexpr std::size_t kMinRegionWidth = 20;

}  // namespace

std::string region_table(const Report& report, const TableOptions& options) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(options.width, 0));
  const auto columns = choose_columns<RooflineRow>(report, options, default_region_columns());
  if (report.regions().empty()) {
    return labelled_paragraph("", "no regions: none was opened (roofprof.scope, record_function, ROOFPROF_SCOPE)",
                              width);
  }
  const bool flat = !options.sort.empty();
  std::vector<const RooflineRow*> rows;
  for (const auto& row : report.regions()) {
    if (row.depth <= options.depth.value_or(row.depth)) rows.push_back(&row);
  }
  const std::size_t too_deep = report.regions().size() - rows.size();
  if (flat) sort_by(column_named(columns_of<RooflineRow>(), options.sort), rows);
  const std::size_t limit = options.limit > 0 ? static_cast<std::size_t>(options.limit) : kReadableRows;
  const std::size_t left_out = rows.size() - std::min(rows.size(), limit);
  rows.resize(rows.size() - left_out);

  std::vector<TableColumn> layout = {{"region", true, kMinRegionWidth, 0, Keep::end}};
  for (const auto& [column, text] : columns) layout.push_back(text);
  Table table{std::move(layout)};
  const auto add = [&](const RooflineRow& row, const std::string& name) {
    std::vector<Cell> cells = {{name, flat ? 0 : static_cast<std::size_t>(row.depth)}};
    for (const auto& [column, text] : columns) cells.push_back(cell_of(column, row));
    table.add(std::move(cells));
  };
  for (const auto* row : rows) add(*row, row->path);
  table.add_rule();
  add(report.total(), "total");

  std::vector<std::string> dropped;
  std::string text = render_rows(table, width, &dropped);
  text += left_out_line(too_deep, fmt::format("inside these: {} shows more", option_text(options, "depth")), width);
  text += left_out_line(left_out, fmt::format("after these: {} shows more", option_text(options, "limit")), width);
  return text + dropped_line(dropped, options);
}

}  // namespace roofprof
