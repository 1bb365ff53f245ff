#pragma once
// The columns that tables can show: every figure of core/fields.h, by its name, as text and as something to sort by.

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "analysis/closest.h"
#include "analysis/whole/analysis.h"
#include "core/fields.h"
#include "core/shapes.h"
#include "report/document.h"
#include "report/tables.h"
#include "report/units.h"

namespace roofprof {

struct Value {
  std::optional<double> number;  // what numeric columns show and sort by; empty: unknown
  std::string text;              // what textual columns show and sort by
};

template <class Row>
struct Column {
  std::string name;  // as in Python: "time", "self_flops"
  std::string heading;
  const FigureInfo* info = nullptr;
  bool of_self = false;
  std::function<Value(const Row&)> value;
};

std::string lower_case(std::string_view text);

// The value as a cell of that unit: "4.09G", "n/a".
std::string cell_text(const Value& value, Unit unit);

namespace detail {

template <class Field>
Value value_of(const Field& field) {
  if constexpr (std::is_same_v<Field, Bound>) {
    return {std::nullopt, to_string(field)};
  } else if constexpr (std::is_same_v<Field, std::string>) {
    return {std::nullopt, field};
  } else if constexpr (std::is_same_v<Field, std::optional<std::string>>) {
    return {std::nullopt, field.value_or("n/a")};
  } else if constexpr (std::is_same_v<Field, bool>) {
    return {std::nullopt, field ? "yes" : "no"};
  } else if constexpr (std::is_same_v<Field, std::array<std::int64_t, kDTypeCount>>) {
    return {std::nullopt, by_dtype_text(field)};
  } else if constexpr (std::is_same_v<Field, std::vector<Shape>>) {
    return {std::nullopt, shapes_text(field)};
  } else if constexpr (std::is_same_v<Field, std::array<std::int32_t, 3>>) {
    return {std::nullopt, blocks_text(field)};
  } else if constexpr (std::is_arithmetic_v<Field>) {
    return {static_cast<double>(field), ""};
  } else {
    return field ? Value{static_cast<double>(*field), ""} : Value{};
  }
}

}  // namespace detail

template <class Row>
std::vector<Column<Row>> columns_of() {
  std::vector<Column<Row>> columns;
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto value_of) {
    columns.push_back({info.name_in(of_self), info.heading_in(of_self), &info, of_self,
                       [value_of](const Row& row) { return detail::value_of(value_of(row)); }});
  });
  return columns;
}

// The column of that name, heading or alias, whose case does not matter. Throws std::invalid_argument naming the known
// ones.
template <class Row>
const Column<Row>& column_named(const std::vector<Column<Row>>& columns, std::string_view name) {
  const std::string wanted = lower_case(name);
  const auto is_called = [&](const Column<Row>& column) {
    const FigureInfo& info = *column.info;
    const std::string_view prefix = column.of_self ? kSelf : "";
    return info.is_called(wanted, column.of_self) || wanted == lower_case(column.heading) ||
           wanted == lower_case(std::string(prefix).append(info.heading)) ||
           std::ranges::any_of(info.aliases, [&](std::string_view alias) {
             return !alias.empty() && wanted == std::string(prefix).append(alias);
           });
  };
  const auto found = std::ranges::find_if(columns, is_called);
  if (found != columns.end()) return *found;
  std::string known;
  std::vector<std::string> names;
  for (const auto& column : columns) {
    names.push_back(column.name);
    if (!column.of_self) known += (known.empty() ? "" : ", ") + column.name;
  }
  if constexpr (std::is_same_v<Row, RooflineRow>) known += "; each figure also as self_<name>";
  throw InvalidArgument("no column '" + std::string(name) + "': the closest are " + closest(wanted, names) +
                        "; the columns are " + known);
}

namespace detail {

// The figures that a column may be one of; null where such rows have none.
template <class Row>
const Figures* figures_in(const Row& row, bool of_self) {
  if constexpr (std::is_same_v<Row, RooflineRow>) {
    return of_self ? &row.self : &row;
  } else if constexpr (std::is_base_of_v<Figures, Row>) {
    return &row;
  } else {
    return nullptr;
  }
}

}  // namespace detail

// The cell of a row: its value, ">=", "<=" or "?" before what an uncosted op left incomplete, "op/s" behind rates of
// integers.
template <class Row>
Cell cell_of(const Column<Row>& column, const Row& row) {
  const bool is_elsewhere = [&] {
    if constexpr (std::is_same_v<Row, GroupRow>) {
      const auto unit = column.info->unit;
      const bool of_work = unit == Unit::macs || unit == Unit::operations || unit == Unit::bytes;
      return row.work_elsewhere && of_work && column.info->needs == 0;
    } else {
      return false;
    }
  }();
  const Value value = is_elsewhere ? Value{} : column.value(row);
  const Figures* figures = detail::figures_in(row, column.of_self);
  const bool incomplete = [&] {
    if constexpr (std::is_same_v<Row, Rank> || std::is_same_v<Row, KernelRow>) {
      return row.incomplete;
    } else {
      return figures != nullptr && figures->incomplete;
    }
  }();
  // A bound has no number. That the time is outside of ops does not depend on their work.
  const bool is_roof = column.info->unit == Unit::bound && value.text != to_string(Bound{}) &&
                       value.text != to_string(Bound{BoundKind::overhead, ""});
  const std::string_view limit = incomplete && (value.number || is_roof) ? to_string(column.info->limit) : "";
  const bool of_integers =
      figures != nullptr && value.number && column.info->unit == Unit::flops_per_second && figures->counts_integers();
  const std::string text = cell_text(value, column.info->unit) + (of_integers ? "op/s" : "");
  return {limit.empty() ? text : std::string(limit) + text, value.number, limit};
}

// Largest first, unknown last; text in alphabetical order. Equal rows keep their order. `row_of`: the row of an item.
template <class Row, class Item, class RowOf = std::identity>
void sort_by(const Column<Row>& column, std::vector<const Item*>& items, RowOf row_of = {}) {
  std::stable_sort(items.begin(), items.end(), [&](const Item* a, const Item* b) {
    const Value left = column.value(std::invoke(row_of, *a));
    const Value right = column.value(std::invoke(row_of, *b));
    if (is_textual(column.info->unit)) return left.text < right.text;
    if (!left.number || !right.number) return left.number.has_value() && !right.number.has_value();
    return *left.number > *right.number;
  });
}

// ---- the columns of a table

struct DefaultColumn {
  std::string_view name;
  int drop_rank;   // see TableColumn
  Facts when = 0;  // in addition to what its figure needs
};

// Returns them in the order in which tables show them.
const std::vector<DefaultColumn>& default_columns(TableKind kind);

// The column that every table has and that is not chosen; a group has its keys.
template <class Row>
constexpr std::string_view naming_column() {
  if constexpr (std::is_same_v<Row, KernelRow> || std::is_same_v<Row, Collective>) return "name";
  if constexpr (std::is_same_v<Row, MemoryRow>) return "category";
  return std::is_same_v<Row, Rank> ? "rank" : "path";
}

template <class Row>
const std::vector<Row>& rows_of(const Report& report) {
  if constexpr (std::is_same_v<Row, KernelRow>) {
    return report.kernels();
  } else if constexpr (std::is_same_v<Row, Rank>) {
    return report.ranks();
  } else if constexpr (std::is_same_v<Row, MemoryRow>) {
    return report.memory_at_peak();
  } else {
    static_assert(std::is_same_v<Row, Collective>);
    return analysis_of(report).collectives();
  }
}

template <class Row>
struct ChosenColumns {
  std::vector<Column<Row>> figures;
  std::vector<TableColumn> layout;

  bool has(const std::string& name) const {
    return std::ranges::any_of(figures, [&](const auto& figure) { return figure.name == name; });
  }
  void add(const Column<Row>& column, int drop_rank) {
    if (column.name == naming_column<Row>() || has(column.name)) return;
    const bool textual = is_textual(column.info->unit);
    const std::size_t min_width = textual && column.info->unit != Unit::bound ? 12 : 0;
    figures.push_back(column);
    layout.push_back({column.heading, textual, min_width, drop_rank, Keep::both_ends, column.name});
  }
  // Returns a table without rows: the column that names them, and these.
  Table table(TableColumn naming) const {
    Table made{{std::move(naming)}};
    made.columns.insert(made.columns.end(), layout.begin(), layout.end());
    return made;
  }
  void append_cells(std::vector<Cell>& cells, const Row& row) const {
    cells.reserve(cells.size() + figures.size() + 1);
    for (const auto& column : figures) cells.push_back(cell_of(column, row));
    if constexpr (requires { row.module.empty(); }) {  // the model is "" in data
      for (std::size_t i = 0; row.module.empty() && i < figures.size(); ++i) {
        if (figures[i].name == "module") cells[cells.size() - figures.size() + i].text = "(model)";
      }
    }
  }
};

// Returns the columns to show: those asked for (none of which is ever dropped), or the usual ones; the one sorted by is
// always among them. Throws std::invalid_argument for unknown names.
template <class Row>
ChosenColumns<Row> choose_columns(const Report& report, const TableOptions& options) {
  const auto all = columns_of<Row>();
  ChosenColumns<Row> chosen;
  for (const auto& name : options.columns) chosen.add(column_named(all, name), 0);
  if (options.columns.empty()) {
    const TableKind kind = kind_of(options.by);
    const Facts known = facts_of(report, kind);
    for (const auto& [name, rank, when] : default_columns(kind)) {
      const auto& column = column_named(all, name);
      const bool has_facts = ((column.info->needs | when) & ~known) == 0;
      if constexpr (std::is_base_of_v<Figures, Row>) {
        if (has_facts) chosen.add(column, rank);
      } else if (has_facts || (std::is_same_v<Row, KernelRow> && (when & facts::compiled) == 0)) {
        const auto fills = [&](const Row& row) {
          const Value value = column.value(row);
          return value.number || !value.text.empty();
        };
        if (std::ranges::any_of(rows_of<Row>(report), fills)) chosen.add(column, rank);
      }
    }
  }
  if (!options.sort.empty()) chosen.add(column_named(all, options.sort), 0);
  return chosen;
}

}  // namespace roofprof
