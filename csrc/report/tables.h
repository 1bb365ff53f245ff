#pragma once
// The kinds of table; Report::table picks one.

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "report/columns.h"
#include "report/document.h"
#include "roofprof/report.h"

namespace roofprof {

// Rows shown where nothing else was asked for.
inline constexpr std::size_t kReadableRows = 60;
// Wider than any text.
inline constexpr std::int64_t kAnyWidth = std::numeric_limits<std::int32_t>::max();

enum class TableKind : std::uint8_t { modules, regions, groups, kernels, ranks, collectives };

inline TableKind kind_of(std::string_view by) {
  if (by == "module") return TableKind::modules;
  if (by == "scope") return TableKind::regions;
  if (by == "rank") return TableKind::ranks;
  if (by == "collective") return TableKind::collectives;
  return by == "kernel" ? TableKind::kernels : TableKind::groups;
}

// Whether equal siblings are one line. In a flat list each stands at its own place.
inline bool folds_siblings(const TableOptions& options) {
  return !options.expand && options.sort.empty() && options.by == "module";
}

// The tree of modules, or a flat list where options.sort names a column.
std::string module_table(const Report& report, const TableOptions& options);
// One line for each region, those inside below it, and one for what ran in none.
std::string region_table(const Report& report, const TableOptions& options);
// One line for each rank of a merged report.
std::string rank_table(const Report& report, const TableOptions& options);
// One line for each collective of a module, phase and group.
std::string collective_table(const Report& report, const TableOptions& options);
// One line for each group of ops; options.by holds keys of Report::group, separated by commas.
std::string group_table(const Report& report, const TableOptions& options);
// One line for each kernel in each module and phase, with the columns of nsys.
std::string kernel_table(const Report& report, const TableOptions& options);

// What holds for the report, as far as that kind of table shows it: a group's ops have no intervals and no regions, and
// counters of whole modules tell nothing of ops.
Facts facts_of(const Report& report, TableKind kind);

struct DefaultColumn {
  std::string_view name;
  int drop_rank;   // see TableColumn
  Facts when = 0;  // beside what its figure needs
};

// In the order that tables show them.
const std::vector<DefaultColumn>& default_module_columns();
const std::vector<DefaultColumn>& default_region_columns();
const std::vector<DefaultColumn>& default_op_columns();
const std::vector<DefaultColumn>& default_kernel_columns();

// The column that every table has and that is not chosen.
template <class Row>
constexpr std::string_view naming_column() {
  return std::is_same_v<Row, KernelRow> ? "name" : "path";
}

// The columns to show: those asked for (none of which is ever dropped), or the usual ones; the one sorted by is always
// among them. Throws std::invalid_argument for unknown names.
template <class Row>
std::vector<std::pair<Column<Row>, TableColumn>> choose_columns(const Report& report, const TableOptions& options,
                                                                const std::vector<DefaultColumn>& usual) {
  const auto all = columns_of<Row>();
  std::vector<std::pair<Column<Row>, TableColumn>> chosen;
  const auto add = [&](const Column<Row>& column, int drop_rank) {
    const bool textual = is_textual(column.info->unit);
    const std::size_t min_width = textual && column.info->unit != Unit::bound ? 12 : 0;
    chosen.push_back({column, TableColumn{column.heading, textual, min_width, drop_rank}});
  };
  const auto has = [&](const std::string& name) {
    return std::any_of(chosen.begin(), chosen.end(), [&](const auto& c) { return c.first.name == name; });
  };
  for (const auto& name : options.columns) {
    const auto& column = column_named(all, name);
    if (column.name != naming_column<Row>() && !has(column.name)) add(column, 0);
  }
  if (options.columns.empty()) {
    const Facts known = facts_of(report, kind_of(options.by));
    for (const auto& [name, rank, when] : usual) {
      const auto& column = column_named(all, name);
      bool filled = false;
      if constexpr (std::is_same_v<Row, KernelRow>) {
        filled = std::any_of(report.kernels().begin(), report.kernels().end(), [&](const KernelRow& row) {
          const Value value = column.value(row);
          return value.number || !value.text.empty();
        });
      } else {
        filled = ((column.info->needs | when) & ~known) == 0;
      }
      if (filled) add(column, rank);
    }
  }
  if (!options.sort.empty()) {
    const auto& column = column_named(all, options.sort);
    if (column.name != naming_column<Row>() && !has(column.name)) add(column, 0);
  }
  return chosen;
}

// An option as the reader would write it: limit=... or --limit ...
std::string option_text(const TableOptions& options, std::string_view name, std::string_view value = "...");
// One that is switched on: expand=True, --expand or .expand = true.
std::string switch_text(const TableOptions& options, std::string_view name);
// "12 more rows ...": what a table left out, as one line.
std::string left_out_line(std::size_t count, std::string_view what, std::size_t width);
// Which columns found no room; empty where all did.
std::string dropped_line(const std::vector<std::string>& dropped, const TableOptions& options);

}  // namespace roofprof
