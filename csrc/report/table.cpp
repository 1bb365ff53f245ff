// The tree of modules, and what prints a report.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>
#include <ostream>
#include <set>

#include "figures/wasters.h"
#include "report/header_and_footer.h"
#include "report/tables.h"
#include "report/utf8.h"
#include "values/profile_data.h"

namespace roofprof {

namespace {

constexpr std::size_t kMinNameWidth = 28;

const std::vector<UsualColumn>& usual_module_columns() {
  static const std::vector<UsualColumn> kUsual = {
      {"type", 13},
      {"params", 14},
      {"macs", 12},
      {"flops", 5},
      {"int_ops", 6, facts::integers},
      {"bytes", 9},
      {"intensity", 11},
      {"time", 0},
      {"utilization", 8},
      {"achieved_flops", 15},
      {"achieved_bandwidth", 16},
      {"dram_bytes", 4},
      {"dram_bytes_ratio", 6},
      {"dram_intensity", 10},
      {"dram_bandwidth", 10},
      {"bound", 3},
      {"percent_of_roof", 7},
      {"wasted_time", 2},
      {"work_share", 1},
  };
  return kUsual;
}

// The deepest level at which the table is still readable, at least the model's children.
std::int64_t readable_depth(const std::vector<RooflineRow>& rows) {
  std::vector<std::size_t> at_depth;
  for (const auto& row : rows) {
    const auto depth = static_cast<std::size_t>(row.depth);
    if (depth >= at_depth.size()) at_depth.resize(depth + 1);
    ++at_depth[depth];
  }
  std::size_t shown = 0;
  std::int64_t depth = 0;
  for (std::size_t level = 0; level < at_depth.size(); ++level) {
    shown += at_depth[level];
    if (level > 1 && shown > kReadableRows) break;
    depth = static_cast<std::int64_t>(level);
  }
  return depth;
}

// Of the rows in tree order, the `limit` that matter most, still in tree order. Parents have at least their children's
// figures and win ties, so no row loses its parent.
std::vector<const RooflineRow*> most_important(std::vector<const RooflineRow*> rows, std::size_t limit) {
  if (rows.size() <= limit) return rows;
  auto ranked = rows;
  const bool timed = std::any_of(rows.begin(), rows.end(), [](const auto* row) { return row->time_ns.has_value(); });
  std::stable_sort(ranked.begin(), ranked.end(), [&](const auto* a, const auto* b) {
    const auto weight = [&](const auto* row) { return timed ? row->time_ns.value_or(0) : row->flops; };
    return weight(a) != weight(b) ? weight(a) > weight(b) : a->depth < b->depth;
  });
  const std::set<const RooflineRow*> kept(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(limit));
  std::erase_if(rows, [&](const auto* row) { return !kept.contains(row); });
  return rows;
}

// In the tree a row shows the part of its path that its parent's line does not.
class TreeNames {
 public:
  explicit TreeNames(const std::vector<RooflineRow>& rows, const std::string& model) {
    std::vector<std::string> parents;
    for (const auto& row : rows) {
      const auto depth = static_cast<std::size_t>(row.depth);
      parents.resize(depth + 1);
      parents[depth] = row.path;
      std::string name = row.path.empty() ? model : row.path;
      if (depth > 0 && !parents[depth - 1].empty() && row.path.starts_with(parents[depth - 1] + ".")) {
        name = row.path.substr(parents[depth - 1].size() + 1);
      }
      names_[&row] = name;
    }
  }
  const std::string& of(const RooflineRow& row) const { return names_.at(&row); }

 private:
  std::map<const RooflineRow*, std::string> names_;
};

struct Selection {
  std::vector<const RooflineRow*> rows;
  std::size_t too_deep = 0;
  std::size_t over_limit = 0;
  std::int64_t depth = 0;
};

Selection select_rows(const Report& report, const TableOptions& options) {
  Selection selection;
  const bool flat = !options.sort.empty();
  const std::int64_t all = std::numeric_limits<std::int64_t>::max();
  selection.depth = options.depth.value_or(flat ? all : readable_depth(report.rows()));
  for (const auto& row : report.rows()) {
    row.depth <= selection.depth ? selection.rows.push_back(&row) : void(++selection.too_deep);
  }
  std::size_t limit = options.limit > 0 ? static_cast<std::size_t>(options.limit) : selection.rows.size();
  if (options.limit <= 0 && !options.depth) limit = kReadableRows;
  const std::size_t before = selection.rows.size();
  if (flat) {
    sort_by(column_named(columns_of<RooflineRow>(), options.sort), selection.rows);
    selection.rows.resize(std::min(limit, before));
  } else {
    selection.rows = most_important(std::move(selection.rows), limit);
  }
  selection.over_limit = before - selection.rows.size();
  return selection;
}

}  // namespace

Facts facts_of(const Report& report, TableKind kind) {
  const auto& rows = report.rows();
  const RooflineRow& total = report.total();
  const auto any = [&](auto holds) { return std::any_of(rows.begin(), rows.end(), holds); };
  const bool of_modules = kind == TableKind::modules;
  Facts known = 0;
  const auto add = [&](bool holds, Facts fact) { known |= holds ? fact : 0; };
  add(total.int_ops > total.flops, facts::integers);
  add(total.time_ns || total.op_time_ns, facts::time);
  add(report.data().device_timed, facts::device);
  add(of_modules && total.utilization, facts::intervals);
  add((of_modules || report.data().counter_ranges == CounterRanges::kernels) &&
          any([](const auto& row) { return row.self.dram_bytes.value_or(0) > 0; }),
      facts::counters);
  add(!report.ceilings().empty(), facts::roofs);
  add(of_modules && any([](const auto& row) { return row.work_share.has_value(); }), facts::regions);
  add(total.incomplete, facts::incomplete);
  add(of_modules && any([](const auto& row) { return row.inferred; }), facts::inferred);
  return known;
}

std::string option_text(const TableOptions& options, std::string_view name, std::string_view value) {
  return options.for_shell ? fmt::format("--{} {}", name, value) : fmt::format("{}={}", name, value);
}

std::string dropped_line(const std::vector<std::string>& dropped, const TableOptions& options) {
  if (dropped.empty()) return "";
  const auto text =
      fmt::format("no room for {}: {} makes some", fmt::join(dropped, ", "), option_text(options, "width"));
  return labelled_paragraph("", text, static_cast<std::size_t>(std::max<std::int64_t>(options.width, 0)));
}

std::string left_out_line(std::size_t count, std::string_view what, std::size_t width) {
  if (count == 0) return "";
  return labelled_paragraph("", fmt::format("{} more {} {}", count, count == 1 ? "row" : "rows", what), width);
}

std::string module_table(const Report& report, const TableOptions& options) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(options.width, 0));
  const auto columns = choose_columns<RooflineRow>(report, options, usual_module_columns());
  const Selection selection = select_rows(report, options);
  const bool flat = !options.sort.empty();
  const auto wasting = wasting_themselves(report.rows(), report.total());
  const TreeNames names(report.rows(), report.data().model.empty() ? "model" : report.data().model);

  std::vector<TextColumn> layout = {{"module", true, kMinNameWidth, 0, flat ? Keep::end : Keep::both_ends}};
  for (const auto& [column, text] : columns) layout.push_back(text);
  TextTable table(std::move(layout));
  const auto add = [&](const RooflineRow& row, const std::string& name, std::size_t level) {
    const std::string marked = (row.inferred ? "~" : "") + printable(name) + (wasting.contains(&row) ? " *" : "");
    std::vector<TextCell> cells = {{marked, level}};
    for (const auto& [column, text] : columns) cells.push_back(cell_of(column, row));
    table.add(std::move(cells));
  };
  for (const auto* row : selection.rows) {
    const bool full_path = flat && !row->path.empty();
    add(*row, full_path ? row->path : names.of(*row), flat ? 0 : static_cast<std::size_t>(row->depth));
  }
  table.add_rule();
  add(report.total(), "total", 0);

  std::vector<std::string> dropped;
  std::string text = table.render(width, &dropped);
  const auto deeper = option_text(options, "depth", std::to_string(saturating_add(selection.depth, 1)));
  text +=
      left_out_line(selection.too_deep, fmt::format("below depth {}: {} shows more", selection.depth, deeper), width);
  const auto more = option_text(options, "limit") + " shows more";
  text += left_out_line(selection.over_limit, (flat ? "after these: " : "smaller than these: ") + more, width);
  return text + dropped_line(dropped, options);
}

std::string Report::table(const TableOptions& wished) const {
  TableOptions options = wished;
  if (!options.depth) options.depth = depth_;
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(options.width, 40));
  std::string text = heading_lines(*this, width);
  const TableKind kind = kind_of(options.by);
  text += kind == TableKind::modules   ? module_table(*this, options)
          : kind == TableKind::kernels ? kernel_table(*this, options)
                                       : group_table(*this, options);
  if (options.by == "module" || options.by == "op") text += waster_lines(*this, width);
  text += '\n';
  if (options.legend) text += legend_lines(*this, kind, width);
  return text + roof_lines(*this, width) + coverage_lines(*this, width);
}

std::ostream& operator<<(std::ostream& out, const Report& report) { return out << report.table(); }

}  // namespace roofprof
