// Groups of ops: one line for each op, or for any other combination of keys.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/hotspots.h"
#include "analysis/region_rows.h"
#include "core/profile_data.h"
#include "report/tables.h"
#include "report/utf8.h"

namespace roofprof {

namespace {

constexpr std::size_t kMinKeyWidth = 28;

std::vector<std::string> split_keys(const std::string& text) {
  std::vector<std::string> keys;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::size_t first = text.find_first_not_of(' ', start);
    std::string key = first < end ? text.substr(first, end - first) : "";
    key.erase(key.find_last_not_of(' ') + 1);
    keys.push_back(key);
    start = end + 1;
  }
  return keys;
}

// By wasted time, what has none by its time, and by FLOPs where nothing was timed.
void rank(std::vector<const GroupRow*>& rows) {
  const bool timed = std::any_of(rows.begin(), rows.end(), [](const auto* row) { return row->time_ns.has_value(); });
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    const auto weight = [&](const auto* row) {
      return timed ? row->wasted_time_ns.value_or(row->time_ns.value_or(0)) : row->flops;
    };
    return weight(a) > weight(b);
  });
}

}  // namespace

const std::vector<DefaultColumn>& default_op_columns() {
  static const std::vector<DefaultColumn> kDefault = {
      {"calls", 12},          {"time", 0},
      {"percent_of_time", 3}, {"macs", 13},
      {"flops", 5},           {"int_ops", 6, facts::integers},
      {"bytes", 9},           {"intensity", 14},
      {"achieved_flops", 15}, {"achieved_bandwidth", 16},
      {"dram_bytes", 6},      {"dram_bytes_ratio", 8},
      {"dram_intensity", 11}, {"dram_bandwidth", 10},
      {"bound", 4},           {"percent_of_roof", 7},
      {"wasted_time", 2},
  };
  return kDefault;
}

std::string group_table(const Report& report, const TableOptions& options) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(options.width, 0));
  const auto keys = split_keys(options.by);
  const auto groups = report.group(keys);
  const auto columns = choose_columns<GroupRow>(report, options, default_op_columns());

  std::vector<const GroupRow*> rows;
  rows.reserve(groups.size());
  for (const auto& group : groups) rows.push_back(&group);
  rank(rows);
  if (!options.sort.empty()) sort_by(column_named(columns_of<GroupRow>(), options.sort), rows);
  const std::size_t limit = options.limit > 0 ? static_cast<std::size_t>(options.limit) : kReadableRows;
  const std::size_t left_out = rows.size() - std::min(rows.size(), limit);
  rows.resize(rows.size() - left_out);

  std::vector<TableColumn> layout;
  layout.reserve(keys.size() + columns.size());
  for (const auto& key : keys) {
    layout.push_back({key, true, kMinKeyWidth, 0, key == "module" ? Keep::end : Keep::both_ends});
  }
  for (auto [column, text] : columns) {
    if (column.name == "time") text.heading = "self time";
    layout.push_back(text);
  }
  Table table{std::move(layout)};
  const auto add = [&](const GroupRow& row) {
    std::vector<Cell> cells;
    cells.reserve(keys.size() + columns.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      // "" is the model's path; of shapes, an op without tensors.
      const std::string_view unnamed = keys[i] == "module" ? "(model)" : keys[i] == "scope" ? kNoRegionName : "";
      cells.emplace_back(std::string(row.keys[i].empty() ? unnamed : row.keys[i]));
    }
    for (const auto& [column, text] : columns) cells.push_back(cell_of(column, row));
    table.add(std::move(cells));
  };
  for (const auto* row : rows) add(*row);
  table.add_rule();
  const auto add_sum = [&](GroupRow row, std::string_view name) {
    row.keys.assign(keys.size(), " ");
    row.keys.front() = name;
    add(row);
  };
  // The sum over all ops is the group without keys. Where more time passed than that in them, the total has it.
  const GroupRow outside = outside_ops(report.total(), report.data().device_timed);
  for (GroupRow sum : report.group({})) {
    if (*outside.time_ns <= 0) {
      add_sum(std::move(sum), "total");
      continue;
    }
    add_sum(sum, "all ops");
    add_sum(outside, *outside.op);
    static_cast<Figures&>(sum) = report.total();  // NOLINT(cppcoreguidelines-slicing): a group has no more
    sum.percent_of_time.reset();
    add_sum(std::move(sum), "total");
  }

  std::vector<std::string> dropped;
  std::string text = render_rows(table, width, &dropped);
  text += left_out_line(left_out, fmt::format("after these: {} shows more", option_text(options, "limit")), width);
  return text + dropped_line(dropped, options);
}

}  // namespace roofprof
