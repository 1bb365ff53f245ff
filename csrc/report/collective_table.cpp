// Collectives: one line for all calls of one in a module, phase and group.

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "analysis/whole/analysis.h"
#include "report/document.h"
#include "report/header_and_footer.h"
#include "report/tables.h"
#include "report/units.h"

namespace roofprof {

namespace {

constexpr std::size_t kMinCollectiveWidth = 8;

template <class Value, class Format>
std::string known_or_none(const std::optional<Value>& value, Format format) {
  return value ? format(static_cast<double>(*value)) : "n/a";
}

std::string time_cell(const std::optional<std::int64_t>& ns) {
  return known_or_none(ns, [](double value) { return human_time(value, ""); });
}

std::string rate_cell(const std::optional<double>& rate) {
  return known_or_none(rate, [](double value) { return human_count(value, "B/s", ""); });
}

std::string percent_cell(const std::optional<double>& percent) { return known_or_none(percent, human_percent); }

}  // namespace

std::string collective_table(const Report& report, const TableOptions& options) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(options.width, 0));
  const auto& collectives = report.analysis().collectives();
  if (collectives.empty()) {
    return labelled_paragraph("",
                              !report.data().imported
                                  ? "no collectives: none was called while it ran"
                                  : "no collectives: they are not read from traces; c10d's operators have their times",
                              width);
  }
  const bool merged = !report.ranks().empty();
  const bool has_roofs =
      std::ranges::any_of(collectives, [](const auto& row) { return row.lower_bound_ns.has_value(); });
  std::vector<TableColumn> columns = {{"collective", true, kMinCollectiveWidth, 0},
                                      {"module", true, kMinCollectiveWidth, 0},
                                      {"phase", true, 0, 8},
                                      {"group", true, 4, 9},
                                      {"ranks", false, 0, 4},
                                      {"hosts", false, 0, 5},
                                      {"dtype", true, 0, 10},
                                      {"calls", false, 0, 3},
                                      {"bytes", false, 0, 0},
                                      {"time", false, 0, 0}};
  if (merged) {
    columns.push_back({"wait", false, 0, 0});
    columns.push_back({"transfer", false, 0, 2});
  }
  columns.push_back({"exposed", false, 0, 0});
  columns.push_back({"alg. bw", false, 0, 6});
  columns.push_back({"bus bw", false, 0, 1});
  if (has_roofs) {
    columns.push_back({"bound", true, 0, 7});
    columns.push_back({"%roof", false, 0, 0});
    columns.push_back({"wasted", false, 0, 5});
  }
  Table table{std::move(columns)};
  const std::size_t limit = options.limit > 0 ? static_cast<std::size_t>(options.limit) : kReadableRows;
  for (const auto& row : std::span(collectives).first(std::min(limit, collectives.size()))) {
    std::vector<Cell> cells = {row.name,
                               row.module.empty() ? "(model)" : row.module,
                               row.phase,
                               row.group,
                               std::to_string(row.ranks),
                               row.hosts > 0 ? std::to_string(row.hosts) : "n/a",
                               std::string(name_of(row.dtype)),
                               human_count(static_cast<double>(row.calls), "", ""),
                               human_bytes(static_cast<double>(row.bytes), ""),
                               time_cell(row.time_ns)};
    if (merged) {
      cells.emplace_back(time_cell(row.wait_ns));
      cells.emplace_back(time_cell(row.transfer_ns));
    }
    cells.emplace_back(time_cell(row.exposed_ns));
    cells.emplace_back(rate_cell(row.algorithm_bandwidth));
    cells.emplace_back(rate_cell(row.bus_bandwidth));
    if (has_roofs) {
      cells.emplace_back(row.lower_bound_ns ? to_string(row.bound) : "unknown");
      cells.emplace_back(percent_cell(row.percent_of_roof));
      cells.emplace_back(time_cell(row.wasted_ns));
    }
    table.add(std::move(cells));
  }
  std::vector<std::string> dropped;
  std::string text = render_rows(table, width, &dropped);
  const std::size_t left_out = collectives.size() - std::min(collectives.size(), limit);
  text += left_out_line(left_out, fmt::format("after these: {} shows more", option_text(options, "limit")), width);
  return text + dropped_line(dropped, options);
}

}  // namespace roofprof
