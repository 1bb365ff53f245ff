// The tree of modules, and what prints a report.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <stdexcept>
#include <utility>

#include "analysis/whole/analysis.h"
#include "core/profile_data.h"
#include "report/header_and_footer.h"
#include "report/tables.h"
#include "report/utf8.h"

namespace roofprof {

namespace {

constexpr std::size_t kMinNameWidth = 28;

// A row of the tree, or one for equal siblings.
struct TreeLine {
  const RooflineRow* row;
  std::int64_t members = 1;  // that the row is the mean of
  std::int64_t count = 1;    // of these below one parent
  bool wasting = false;      // one of them wastes more itself than the modules below it do
};

// Equal siblings are one line, but in a flat list, where each stands at its own place.
std::vector<TreeLine> tree_lines(const Report& report, const TableOptions& options) {
  const auto& rows = report.rows();
  const auto& wasting = report.analysis().wasting_themselves();
  std::vector<TreeLine> lines;
  if (!folds_siblings(options)) {
    lines.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) lines.push_back({&rows[i], 1, 1, wasting[i]});
    return lines;
  }
  for (const FoldedRow& folded : report.analysis().folded_rows()) {
    const bool wastes = std::ranges::any_of(folded.members, [&](std::size_t row) { return wasting[row]; });
    lines.push_back({&folded.mean, std::ssize(folded.members), folded.count, wastes});
  }
  return lines;
}

// The deepest level at which the table is still readable, at least the model's children.
std::int64_t readable_depth(const std::vector<TreeLine>& lines) {
  std::vector<std::size_t> at_depth;
  for (const auto& line : lines) {
    const auto depth = static_cast<std::size_t>(line.row->depth);
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

// Of the lines in tree order, the `limit` that matter most, still in tree order. Parents have at least their children's
// figures, all members together, and win ties, so no row loses its parent.
std::vector<const TreeLine*> most_important(std::vector<const TreeLine*> lines, std::size_t limit) {
  if (lines.size() <= limit) return lines;
  auto ranked = lines;
  const bool timed = std::ranges::any_of(lines, [](const auto* line) { return line->row->time_ns.has_value(); });
  const auto weight = [&](const TreeLine* line) {
    const RooflineRow& row = *line->row;
    return saturating_multiply(timed ? row.time_ns.value_or(0) : row.flops, line->members);
  };
  std::stable_sort(ranked.begin(), ranked.end(), [&](const auto* a, const auto* b) {
    return weight(a) != weight(b) ? weight(a) > weight(b) : a->row->depth < b->row->depth;
  });
  const std::set<const TreeLine*> kept(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(limit));
  std::erase_if(lines, [&](const auto* line) { return !kept.contains(line); });
  return lines;
}

// In the tree a row shows the part of its path that its parent's line does not.
class TreeNames {
 public:
  TreeNames(const std::vector<TreeLine>& lines, const std::string& model) {
    std::vector<std::string> parents;
    for (const auto& line : lines) {
      const RooflineRow& row = *line.row;
      const auto depth = static_cast<std::size_t>(row.depth);
      parents.resize(depth + 1);
      parents[depth] = row.path;
      std::string name = row.path.empty() ? model : row.path;
      if (depth > 0 && !parents[depth - 1].empty() && row.path.starts_with(parents[depth - 1] + ".")) {
        name = row.path.substr(parents[depth - 1].size() + 1);
      }
      names_[&line] = name;
    }
  }
  const std::string& of(const TreeLine& line) const { return names_.at(&line); }

 private:
  std::map<const TreeLine*, std::string> names_;
};

struct Selection {
  std::vector<const TreeLine*> lines;
  std::size_t too_deep = 0;
  std::size_t over_limit = 0;
  std::int64_t depth = 0;
};

Selection select_lines(const std::vector<TreeLine>& lines, const TableOptions& options) {
  Selection selection;
  const bool flat = !options.sort.empty();
  const std::int64_t all = std::numeric_limits<std::int64_t>::max();
  selection.depth = options.depth.value_or(flat ? all : readable_depth(lines));
  for (const auto& line : lines) {
    line.row->depth <= selection.depth ? selection.lines.push_back(&line) : void(++selection.too_deep);
  }
  std::size_t limit = options.limit > 0 ? static_cast<std::size_t>(options.limit) : selection.lines.size();
  if (options.limit <= 0 && !options.depth) limit = kReadableRows;
  const std::size_t before = selection.lines.size();
  if (flat) {
    sort_by(column_named(columns_of<RooflineRow>(), options.sort), selection.lines,
            [](const TreeLine& line) -> const RooflineRow& { return *line.row; });
    selection.lines.resize(std::min(limit, before));
  } else {
    selection.lines = most_important(std::move(selection.lines), limit);
  }
  selection.over_limit = before - selection.lines.size();
  return selection;
}

// The total has no type.
bool says_the_same(const RooflineRow& row, const RooflineRow& total,
                   const std::vector<std::pair<Column<RooflineRow>, TableColumn>>& columns) {
  return std::ranges::all_of(columns, [&](const auto& column) {
    const Column<RooflineRow>& figure = column.first;
    return figure.name == "type" || cell_of(figure, row).text == cell_of(figure, total).text;
  });
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
  add(of_modules && total.time_max_ns, facts::ranks);
  add(of_modules && total.communication_ns, facts::collectives);
  add(total.time_low_ns.has_value(), facts::predicted);
  add(any([](const auto& row) { return row.bound.kind == BoundKind::latency; }), facts::latency);
  return known;
}

const std::vector<DefaultColumn>& default_module_columns() {
  static const std::vector<DefaultColumn> kDefault = {
      {"type", 13},
      {"params", 14},
      {"macs", 12},
      {"flops", 5},
      {"int_ops", 6, facts::integers},
      {"bytes", 9},
      {"intensity", 11},
      {"time", 0},
      {"time_low", 5},
      {"time_high", 5},
      {"time_min", 6},
      {"time_max", 1},
      {"slowest_rank", 1},
      {"imbalance", 4},
      {"exposed_communication", 3},
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
  return kDefault;
}

std::string option_text(const TableOptions& options, std::string_view name, std::string_view value) {
  switch (options.speech) {
    case Speech::shell:
      return fmt::format("--{} {}", name, value);
    case Speech::python:
      return fmt::format("{}={}", name, value);
    default:
      return fmt::format(".{} = {}", name, value);
  }
}

std::string switch_text(const TableOptions& options, std::string_view name) {
  if (options.speech == Speech::shell) return fmt::format("--{}", name);
  return option_text(options, name, options.speech == Speech::python ? "True" : "true");
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
  const auto columns = choose_columns<RooflineRow>(report, options, default_module_columns());
  const auto lines = tree_lines(report, options);
  const Selection selection = select_lines(lines, options);
  const bool flat = !options.sort.empty();
  const TreeNames names(lines, report.data().model.empty() ? "model" : report.data().model);

  std::vector<TableColumn> layout = {{"module", true, kMinNameWidth, 0, flat ? Keep::end : Keep::both_ends}};
  for (const auto& [column, text] : columns) layout.push_back(text);
  Table table{std::move(layout)};
  const auto add = [&](const RooflineRow& row, const std::string& name, std::size_t level) {
    std::vector<Cell> cells = {{name, level}};
    for (const auto& [column, text] : columns) cells.push_back(cell_of(column, row));
    table.add(std::move(cells));
  };
  for (const auto* line : selection.lines) {
    const RooflineRow& row = *line->row;
    std::string name = (row.inferred ? "~" : "") + (flat && !row.path.empty() ? row.path : names.of(*line));
    if (line->count > 1) name += fmt::format(" x{}", line->count);
    if (line->wasting) name += " *";
    add(row, name, flat ? 0 : static_cast<std::size_t>(row.depth));
  }
  if (lines.size() != 1 || !says_the_same(*lines.front().row, report.total(), columns)) {
    table.add_rule();
    add(report.total(), "total", 0);
  }

  std::vector<std::string> dropped;
  std::string text = render_rows(table, width, &dropped);
  const auto deeper = option_text(options, "depth", std::to_string(saturating_add(selection.depth, 1)));
  text +=
      left_out_line(selection.too_deep, fmt::format("below depth {}: {} shows more", selection.depth, deeper), width);
  const auto more = option_text(options, "limit") + " shows more";
  text += left_out_line(selection.over_limit, (flat ? "after these: " : "smaller than these: ") + more, width);
  return text + dropped_line(dropped, options);
}

std::string Report::table(const TableOptions& requested) const {
  TableOptions options = requested;
  if (!options.depth) options.depth = depth_;
  for (const auto& [name, value] : {std::pair("depth", options.depth.value_or(0)), std::pair("width", options.width),
                                    std::pair("limit", options.limit)}) {
    if (value < 0) throw std::invalid_argument(fmt::format("{} must be 0 or more, not {}", name, value));
  }
  if (options.width == 0) options.width = kAnyWidth;
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(options.width, 40));
  const TableKind kind = kind_of(options.by);
  std::string text = kind == TableKind::modules       ? module_table(*this, options)
                     : kind == TableKind::regions     ? region_table(*this, options)
                     : kind == TableKind::kernels     ? kernel_table(*this, options)
                     : kind == TableKind::ranks       ? rank_table(*this, options)
                     : kind == TableKind::collectives ? collective_table(*this, options)
                                                      : group_table(*this, options);
  if (options.rows_only) return text;
  text = heading_lines(*this, width) + text;
  if (options.by == "module" || options.by == "op")
    text += hotspot_lines(*this, options, width) + advice_lines(*this, width);
  text += '\n';
  if (kind == TableKind::modules && folds_siblings(options)) text += sibling_lines(*this, width);
  if (options.legend) text += legend_lines(*this, options, kind, width);
  return text + roof_lines(*this, width) + coverage_lines(*this, width);
}

std::ostream& operator<<(std::ostream& out, const Report& report) { return out << report.table(); }

}  // namespace roofprof
