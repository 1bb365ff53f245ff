#pragma once
// The columns that tables can show: every field of core/fields.h, by its name, as text and as something to sort by.

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/fields.h"
#include "report/text_table.h"
#include "report/units.h"
#include "report/utf8.h"

namespace roofprof {

struct Value {
  std::optional<double> number;  // what numeric columns show and sort by; empty: unknown
  std::string text;              // what textual columns show and sort by
  std::string brief;             // the text where room is short; empty: the same
};

template <class Row>
struct Column {
  std::string name;  // as in Python: "time", "self_flops"
  Unit unit = Unit::text;
  std::string limit;  // what the value is where the row is incomplete: ">=" or "<="; empty: whole all the same
  bool of_self = false;
  std::function<Value(const Row&)> value;
};

// Text, or numbers where larger is more.
constexpr bool is_textual(Unit unit) {
  return unit == Unit::text || unit == Unit::bound || unit == Unit::by_dtype || unit == Unit::shapes ||
         unit == Unit::blocks || unit == Unit::flag;
}

// Columns that say nothing without a timed run.
constexpr bool needs_time(std::string_view name, Unit unit) {
  return (unit == Unit::nanoseconds && name.find("lower_bound") == std::string_view::npos) ||
         name.find("achieved") != std::string_view::npos || name.find("percent_of") != std::string_view::npos ||
         name.find("time_spread") != std::string_view::npos || unit == Unit::bound;
}

// By hardware counters; those need no costs.
constexpr bool is_measured(std::string_view name) {
  return name.starts_with("dram_") || name.starts_with("l2_") || name.starts_with("l1_") || name == "executed_flops";
}

// Counts and their rates: what an op without a cost leaves too low, or, where it is divided by, too high.
constexpr std::string_view limit_of(std::string_view name, Unit unit) {
  if (unit == Unit::ratio) return "<=";
  if (is_measured(name)) return unit == Unit::flops_per_byte ? ">=" : "";
  const bool grows = unit == Unit::macs || unit == Unit::operations || unit == Unit::bytes;
  return grows || name.starts_with("achieved") ? ">=" : "";
}

// The heading of a column; its name where no shorter one is usual.
std::string heading_of(std::string_view name);

// The column's own name for what people type: "ai", "FLOP/s", "wasted", "module".
std::string canonical_column(std::string_view name);

// The value as a cell of that unit: "4.09G", "n/a".
std::string cell_text(const Value& value, Unit unit);

namespace detail {

template <class Field>
Value value_of(const Field& field) {
  if constexpr (std::is_same_v<Field, Bound>) {
    return {std::nullopt, to_string(field), field.resource};
  } else if constexpr (std::is_same_v<Field, std::string>) {
    return {std::nullopt, field, ""};
  } else if constexpr (std::is_same_v<Field, bool>) {
    return {std::nullopt, field ? "yes" : "no", ""};
  } else if constexpr (std::is_same_v<Field, std::array<std::int64_t, kDTypeCount>>) {
    return {std::nullopt, by_dtype_text(field), ""};
  } else if constexpr (std::is_same_v<Field, std::vector<std::vector<std::int64_t>>>) {
    return {std::nullopt, shapes_text(field), ""};
  } else if constexpr (std::is_same_v<Field, std::array<std::int32_t, 3>>) {
    return {std::nullopt, blocks_text(field), ""};
  } else if constexpr (std::is_arithmetic_v<Field>) {
    return {static_cast<double>(field), "", ""};
  } else {
    return field ? Value{static_cast<double>(*field), "", ""} : Value{};
  }
}

}  // namespace detail

template <class Row>
std::vector<Column<Row>> columns_of() {
  std::vector<Column<Row>> columns;
  const auto own = [&](std::string_view name, Unit unit, auto member) {
    columns.push_back(
        {std::string(name), unit, "", false, [member](const Row& row) { return detail::value_of(row.*member); }});
  };
  const auto figure = [&](std::string_view name, Unit unit, auto member) {
    columns.push_back({std::string(name), unit, std::string(limit_of(name, unit)), false,
                       [member](const Row& row) { return detail::value_of(row.*member); }});
  };
  if constexpr (std::is_same_v<Row, RooflineRow>) {
    for_each_row_field(own);
    for_each_figure(figure);
    for_each_figure([&](std::string_view name, Unit unit, auto member) {
      columns.push_back({"self_" + std::string(name), unit, std::string(limit_of(name, unit)), true,
                         [member](const Row& row) { return detail::value_of(row.self.*member); }});
    });
  } else if constexpr (std::is_same_v<Row, KernelRow>) {
    for_each_kernel_field(own);
  } else {
    for_each_group_field(own);
    for_each_figure(figure);
  }
  return columns;
}

// The column of that name. Throws std::invalid_argument naming the known ones.
template <class Row>
const Column<Row>& column_named(const std::vector<Column<Row>>& columns, std::string_view name) {
  // A name that is there as it is written is meant: kernels have a "module" of their own.
  const std::string usual = canonical_column(name);
  const bool kernels_time = std::is_same_v<Row, KernelRow> && usual == "time";
  const std::array<std::string_view, 3> names = {name, usual, kernels_time ? std::string_view("total") : name};
  for (const auto& wanted : names) {
    for (const auto& column : columns) {
      if (column.name == wanted) return column;
    }
  }
  std::string known;
  for (const auto& column : columns) {
    if (!column.of_self) known += (known.empty() ? "" : ", ") + column.name;
  }
  if constexpr (std::is_same_v<Row, RooflineRow>) known += "; each figure also as self_<name>";
  throw std::invalid_argument("no column '" + std::string(name) + "'; the columns are " + known);
}

// The cell of a row: its value, ">=" before counts that an uncosted op left incomplete.
template <class Row>
TextCell cell_of(const Column<Row>& column, const Row& row) {
  const Value value = column.value(row);
  const bool incomplete = [&] {
    if constexpr (std::is_same_v<Row, KernelRow>) return false;
    if constexpr (std::is_same_v<Row, RooflineRow>) return column.of_self ? row.self.incomplete : row.incomplete;
    if constexpr (std::is_same_v<Row, GroupRow>) return row.incomplete;
  }();
  const std::string text = printable(cell_text(value, column.unit));
  return TextCell(incomplete && value.number ? column.limit + text : text, 0, printable(value.brief));
}

// Largest first, unknown last; text in alphabetical order. Equal rows keep their order.
template <class Row>
void sort_by(const Column<Row>& column, std::vector<const Row*>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Row* a, const Row* b) {
    const Value left = column.value(*a);
    const Value right = column.value(*b);
    if (is_textual(column.unit)) return left.text < right.text;
    if (!left.number || !right.number) return left.number.has_value() && !right.number.has_value();
    return *left.number > *right.number;
  });
}

}  // namespace roofprof
