// Kernels, copies and memsets: one line for each in each module and phase, with the columns of nsys.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/tables.h"

namespace roofprof {

namespace {

constexpr std::size_t kMinKernelWidth = 63;

// What adds up over all kernels; nothing for the rest.
std::string total_text(const Report& report, const Column<KernelRow>& column) {
  KernelRow sum;
  for (const auto& row : report.kernels()) {
    sum.total_ns = saturating_add(sum.total_ns, row.total_ns);
    sum.instances = saturating_add(sum.instances, row.instances);
  }
  sum.percent_of_time = 100;
  const bool adds_up = column.name == "percent_of_time" || column.name == "total" || column.name == "instances";
  return adds_up ? cell_of(column, sum).text : "";
}

// The model is "" in data; what no op launched has none.
Cell cell(const Column<KernelRow>& column, const KernelRow& row) {
  if (column.name == "module" && row.module.empty()) return {"(model)"};
  return cell_of(column, row);
}

}  // namespace

const std::vector<DefaultColumn>& default_kernel_columns() {
  static const std::vector<DefaultColumn> kDefault = {
      {"percent_of_time", 0},
      {"total", 0},
      {"instances", 0},
      {"average", 0},
      {"median", 1},
      {"min", 3},
      {"max", 2},
      {"stddev", 4},
      {"dram_bytes", 6},
      {"dram_bandwidth", 8},
      {"module", 5},
      {"scope", 5},
      {"op", 7},
      {"built_for", 9},
      {"grid", 10},
      {"block", 11},
  };
  return kDefault;
}

std::string kernel_table(const Report& report, const TableOptions& options) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(options.width, 0));
  const auto columns = choose_columns<KernelRow>(report, options, default_kernel_columns());
  if (report.kernels().empty()) return labelled_paragraph("", "no kernels: nothing was traced on a device", width);

  std::vector<const KernelRow*> rows;
  rows.reserve(report.kernels().size());
  for (const auto& row : report.kernels()) rows.push_back(&row);
  if (!options.sort.empty()) sort_by(column_named(columns_of<KernelRow>(), options.sort), rows);
  const std::size_t limit = options.limit > 0 ? static_cast<std::size_t>(options.limit) : kReadableRows;
  const std::size_t left_out = rows.size() - std::min(rows.size(), limit);
  rows.resize(rows.size() - left_out);

  std::vector<TableColumn> layout;
  layout.reserve(columns.size() + 1);
  for (const auto& [column, text] : columns) layout.push_back(text);
  layout.push_back({"name", true, kMinKernelWidth, 0});
  Table table{std::move(layout)};
  for (const auto* row : rows) {
    std::vector<Cell> cells;
    cells.reserve(columns.size() + 1);
    for (const auto& [column, text] : columns) cells.push_back(cell(column, *row));
    cells.emplace_back(row->name);
    table.add(std::move(cells));
  }
  table.add_rule();
  std::vector<Cell> total;
  total.reserve(columns.size() + 1);
  for (const auto& [column, text] : columns) total.emplace_back(total_text(report, column));
  total.emplace_back("total");
  table.add(std::move(total));

  std::vector<std::string> dropped;
  std::string text = render_rows(table, width, &dropped);
  text += left_out_line(left_out, fmt::format("after these: {} shows more", option_text(options, "limit")), width);
  return text + dropped_line(dropped, options);
}

}  // namespace roofprof
