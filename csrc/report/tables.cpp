// The tables of a report, and the documents around them.

#include "report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <set>
#include <utility>

#include "analysis/hotspots.h"
#include "analysis/kernel_rows.h"
#include "analysis/memory_rows.h"
#include "analysis/region_rows.h"
#include "analysis/whole/analysis.h"
#include "core/profile.h"
#include "report/columns.h"

namespace roofprof {

namespace {

// ---- rows of a list

std::string rows_left_out(std::size_t count, std::string_view what) {
  return fmt::format("{} more {} {}", count, count == 1 ? "row" : "rows", what);
}

// Says what the table leaves out, and adds it.
void finish(Document& document, Table table, std::size_t left_out, const TableOptions& options,
            std::string_view where = "after these") {
  if (left_out > 0) {
    table.remarks.push_back(
        rows_left_out(left_out, fmt::format("{}: {} shows more", where, option_text(options, "limit"))));
  }
  table.if_dropped = fmt::format("no room for {{}}: {} makes some", option_text(options, "width"));
  document.add(std::move(table));
}

// Sorts the rows as the options say and keeps as many as they allow; returns how many it left out.
template <class Row>
std::size_t sort_and_limit(std::vector<const Row*>& rows, const TableOptions& options) {
  if (!options.sort.empty()) sort_by(column_named(columns_of<Row>(), options.sort), rows);
  const std::size_t limit = options.limit > 0 ? static_cast<std::size_t>(options.limit) : kReadableRows;
  const std::size_t left_out = rows.size() - std::min(rows.size(), limit);
  rows.resize(rows.size() - left_out);
  return left_out;
}

template <class Row>
std::vector<const Row*> pointers_to(const std::vector<Row>& rows) {
  std::vector<const Row*> pointers;
  pointers.reserve(rows.size());
  for (const Row& row : rows) pointers.push_back(&row);
  return pointers;
}

// Ranks, or collectives: `naming` is the first column, whose text `name_of` gives.
template <class Row, class NameOf>
void add_list(Document& document, const Report& report, const TableOptions& options, TableColumn naming, NameOf name_of,
              std::string_view if_none) {
  const auto columns = choose_columns<Row>(report, options);
  auto rows = pointers_to(rows_of<Row>(report));
  if (rows.empty()) return document.say("", std::string(if_none));
  const std::size_t left_out = sort_and_limit(rows, options);
  Table table = columns.table(std::move(naming));
  for (const Row* row : rows) {
    std::vector<Cell> cells = {name_of(*row)};
    columns.append_cells(cells, *row);
    table.add(std::move(cells));
  }
  finish(document, std::move(table), left_out, options);
}

// Adds a line for each rank of a merged report.
void add_ranks(Document& document, const Report& report, const TableOptions& options) {
  constexpr std::size_t kMinWidth = 6;
  const auto name_of = [](const Rank& rank) {
    const std::string name = std::to_string(rank.rank) + (rank.partial ? " (partial)" : "");
    return Cell{name, static_cast<double>(rank.rank), rank.partial ? "partial" : ""};
  };
  add_list<Rank>(document, report, options, {"rank", false, kMinWidth, 0, Keep::both_ends, "rank"}, name_of,
                 "no ranks: the report is of one process (roofprof.gather, roofprof merge)");
}

// Adds a line for each collective of a module, phase and group.
void add_collectives(Document& document, const Report& report, const TableOptions& options) {
  constexpr std::size_t kMinWidth = 8;
  add_list<Collective>(
      document, report, options, {"collective", true, kMinWidth, 0, Keep::both_ends, "name"},
      [](const Collective& row) { return Cell{row.name}; },
      !data_of(report).origin.imported ? "no collectives: none was called while it ran"
                                       : "no collectives: the trace has no call of one");
}

// Adds a line for each kernel in each module and phase, with the columns of nsys.
void add_kernels(Document& document, const Report& report, const TableOptions& options) {
  constexpr std::size_t kMinKernelWidth = 63;
  const auto columns = choose_columns<KernelRow>(report, options);
  if (report.kernels().empty()) return document.say("", why_no_kernels(data_of(report)));
  auto rows = pointers_to(report.kernels());
  const std::size_t left_out = sort_and_limit(rows, options);

  Table table{columns.layout};
  table.columns.push_back({"name", true, kMinKernelWidth, 0, Keep::both_ends, "name"});
  for (const auto* row : rows) {
    std::vector<Cell> cells;
    columns.append_cells(cells, *row);
    cells.emplace_back(row->name);
    table.add(std::move(cells));
  }
  KernelRow sum;
  for (const auto& row : report.kernels()) {
    sum.total_ns = saturating_add(sum.total_ns, row.total_ns);
    sum.instances = saturating_add(sum.instances, row.instances);
  }
  sum.percent_of_time = 100;
  table.add_rule();
  const auto add_sum = [&](const KernelRow& row, std::string_view name, std::initializer_list<std::string_view> known) {
    std::vector<Cell> cells;
    for (const auto& column : columns.figures) {
      const bool is_known = std::ranges::find(known, column.name) != known.end();
      cells.push_back(is_known ? cell_of(column, row) : Cell{""});
    }
    cells.emplace_back(std::string(name));
    table.add(std::move(cells), "total");
  };
  // Time that other work hides counts for the collectives' kernels, but not for the total.
  const RooflineRow& total = report.total();
  if (const auto hidden_ns = data_of(report).device ? total.hidden_communication_ns.value_or(0) : 0; hidden_ns > 0) {
    add_sum(sum, "all kernels", {"percent_of_time", "total", "instances"});
    KernelRow hidden;
    hidden.total_ns = hidden_ns;
    add_sum(hidden, "hidden communication", {"total"});
    sum.total_ns = total.time_ns.value_or(0);
    sum.lower_bound_time_ns = total.lower_bound_time_ns;
    sum.percent_of_roof = total.percent_of_roof;
    sum.bound = total.bound;
    add_sum(sum, "total", {"total", "instances", "lower_bound_time", "percent_of_roof", "bound"});
  } else {
    add_sum(sum, "total", {"percent_of_time", "total", "instances"});
  }
  finish(document, std::move(table), left_out, options);
}

// The sentence above the table: how much was alive, where, and how much of it was there before.
std::string peak_words(const Report& report) {
  std::int64_t before = 0;
  for (const auto& row : report.memory_at_peak()) before += row.before ? row.bytes : 0;
  const auto peak = report.total().peak_memory.value_or(0);
  const auto bytes = [](std::int64_t count) { return human_bytes(static_cast<double>(count)); };
  std::string text = fmt::format(
      "{} were alive at the peak: {} that were allocated since the call began, and {} that "
      "were there before",
      bytes(saturating_add(before, peak)), bytes(peak), bytes(before));
  for (const auto& moment : report.memory_timeline()) {
    if (!moment.is_peak) continue;
    text += fmt::format("; it was reached in the {} of {}", name_of(moment.phase),
                        moment.module.empty() ? "the model" : moment.module);
  }
  return text;
}

// Adds a line for the memory of each category, module and phase, and one for each category below them.
void add_memory(Document& document, const Report& report, const TableOptions& options) {
  constexpr std::size_t kMinWidth = 10;
  const auto& all = options.expand ? report.memory_at_peak() : analysis_of(report).folded_memory();
  if (all.empty()) return document.say("", "no memory at the peak: " + why_no_memory(data_of(report)));
  document.say("", peak_words(report));
  const auto columns = choose_columns<MemoryRow>(report, options);
  auto rows = pointers_to(all);
  const std::size_t left_out = sort_and_limit(rows, options);
  Table table = columns.table({"category", true, kMinWidth, 0, Keep::both_ends, "category"});
  for (const MemoryRow* row : rows) {
    std::vector<Cell> cells = {Cell{row->category}};
    columns.append_cells(cells, *row);
    table.add(std::move(cells));
  }
  table.add_rule();
  auto sums = memory_by_category(all);
  MemoryRow total{.category = "total"};
  for (const auto& sum : sums) {
    total.storages += sum.storages;
    total.bytes = saturating_add(total.bytes, sum.bytes);
  }
  total.percent_of_all = 100;
  sums.push_back(total);
  for (const auto& sum : sums) {
    std::vector<Cell> cells = {Cell{(&sum == &sums.back() ? "" : "all ") + sum.category}};
    for (const auto& column : columns.figures) {
      cells.push_back(is_textual(column.info->unit) ? Cell{""} : cell_of(column, sum));
    }
    table.add(std::move(cells), "total");
  }
  finish(document, std::move(table), left_out, options);
}

// ---- groups of ops

}  // namespace

std::vector<std::string> split_keys(std::string_view text) {
  std::vector<std::string> keys;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::size_t first = text.find_first_not_of(' ', start);
    std::string key(first < end ? text.substr(first, end - first) : "");
    key.erase(key.find_last_not_of(' ') + 1);
    keys.push_back(key);
    start = end + 1;
  }
  return keys;
}

namespace {

// Sorts by wasted time; rows without it go by their time, and untimed reports by FLOPs.
void order_by_waste(std::vector<const GroupRow*>& rows) {
  const bool timed = std::ranges::any_of(rows, [](const auto* row) { return row->time_ns.has_value(); });
  std::ranges::stable_sort(rows, [&](const auto* a, const auto* b) {
    const auto weight = [&](const auto* row) {
      return timed ? row->wasted_time_ns.value_or(row->time_ns.value_or(0)) : row->flops;
    };
    return weight(a) > weight(b);
  });
}

// Adds a line for each group of ops; options.by holds keys of Report::group, separated by commas.
void add_groups(Document& document, const Report& report, const TableOptions& options) {
  constexpr std::size_t kMinKeyWidth = 28;
  const auto keys = split_keys(options.by);
  const auto groups = report.group(keys);
  const auto columns = choose_columns<GroupRow>(report, options);
  auto rows = pointers_to(groups);
  order_by_waste(rows);
  const std::size_t left_out = sort_and_limit(rows, options);

  Table table;
  for (const auto& key : keys) {
    table.columns.push_back({key, true, kMinKeyWidth, 0, key == "module" ? Keep::end : Keep::both_ends});
  }
  for (TableColumn column : columns.layout) {
    if (column.figure == "time") column.heading = "self time";
    table.columns.push_back(std::move(column));
  }
  const auto add = [&](const GroupRow& row, const std::string& mark) {
    std::vector<Cell> cells;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      // "" is the model's path; of shapes, an op without tensors.
      const std::string_view unnamed = keys[i] == "module" ? "(model)" : keys[i] == "scope" ? kNoRegionName : "";
      cells.emplace_back(std::string(row.keys[i].empty() ? unnamed : row.keys[i]));
    }
    columns.append_cells(cells, row);
    table.add(std::move(cells), mark);
  };
  for (const auto* row : rows) add(*row, "");
  table.add_rule();
  const auto add_sum = [&](GroupRow row, std::string_view name) {
    row.keys.assign(keys.size(), " ");
    row.keys.front() = name;
    add(row, "total");
  };
  // The sum over all ops is the group without keys. Where more time passed than that in them, the total has it.
  const GroupRow outside = outside_ops(report.total(), data_of(report).device.has_value());
  for (GroupRow sum : report.group({})) {
    if (*outside.time_ns > 0) {
      add_sum(sum, "all ops");
      add_sum(outside, *outside.op);
      sum.percent_of_time.reset();
    }
    static_cast<Figures&>(sum) = report.total();  // NOLINT(cppcoreguidelines-slicing): a group has no more
    add_sum(std::move(sum), "total");
  }
  finish(document, std::move(table), left_out, options);
}

// ---- regions and modules

// Adds a line for each region, those inside below it, and one for what ran in none.
void add_regions(Document& document, const Report& report, const TableOptions& options) {
  constexpr std::size_t kMinRegionWidth = 20;
  const auto columns = choose_columns<RooflineRow>(report, options);
  if (report.regions().empty()) {
    return document.say("", "no regions: none was opened (roofprof.scope, record_function, ROOFPROF_SCOPE)");
  }
  const bool flat = !options.sort.empty();
  auto rows = pointers_to(report.regions());
  std::erase_if(rows, [&](const auto* row) { return row->depth > options.depth.value_or(row->depth); });
  const std::size_t too_deep = report.regions().size() - rows.size();
  const std::size_t left_out = sort_and_limit(rows, options);

  Table table = columns.table({"region", true, kMinRegionWidth, 0, Keep::end, "path"});
  const auto add = [&](const RooflineRow& row, const std::string& name, const std::string& mark) {
    std::vector<Cell> cells = {{name, flat ? 0 : static_cast<std::size_t>(row.depth)}};
    columns.append_cells(cells, row);
    table.add(std::move(cells), mark);
  };
  for (const auto* row : rows) add(*row, row->path, "");
  table.add_rule();
  add(report.total(), "total", "total");
  if (too_deep > 0) {
    table.remarks.push_back(
        rows_left_out(too_deep, fmt::format("inside these: {} shows more", option_text(options, "depth"))));
  }
  finish(document, std::move(table), left_out, options);
}

// A row of the tree, or one for equal siblings.
struct TreeLine {
  const RooflineRow* row;
  std::string_view parent = {};  // path
  std::int64_t members = 1;      // that the row is the mean of
  std::int64_t count = 1;        // of these below one parent
  bool wasting = false;          // one of them wastes more itself than the modules below it do

  // Returns the part of the row's path that its parent's line does not show.
  std::string_view name_in_tree() const {
    const std::string_view path = row->path;
    const bool below = !parent.empty() && path.starts_with(parent) && path.substr(parent.size()).starts_with('.');
    return below ? path.substr(parent.size() + 1) : path;
  }
};

// Equal siblings are one line, but in a flat list, where each stands at its own place.
std::vector<TreeLine> tree_lines(const Report& report, const TableOptions& options) {
  const auto& rows = report.rows();
  const auto& wasting = analysis_of(report).wasting_themselves();
  std::vector<TreeLine> lines;
  if (!folds_siblings(options)) {
    const auto& parents = report.parents();
    lines.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      TreeLine& line = lines.emplace_back(TreeLine{.row = &rows[i], .wasting = wasting[i]});
      if (parents[i] >= 0) line.parent = rows[static_cast<std::size_t>(parents[i])].path;
    }
    return lines;
  }
  const auto& folded = analysis_of(report).folded_rows();
  for (const FoldedRow& fold : folded) {
    TreeLine& line =
        lines.emplace_back(TreeLine{.row = &fold.mean, .members = std::ssize(fold.members), .count = fold.count});
    line.wasting = std::ranges::any_of(fold.members, [&](std::size_t row) { return wasting[row]; });
    if (fold.parent >= 0) line.parent = folded[static_cast<std::size_t>(fold.parent)].mean.path;
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

// Returns the `limit` lines that matter most, still in tree order. Parents have at least their children's
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
bool says_the_same(const RooflineRow& row, const RooflineRow& total, const ChosenColumns<RooflineRow>& columns) {
  return std::ranges::all_of(columns.figures, [&](const Column<RooflineRow>& figure) {
    return figure.name == "type" || cell_of(figure, row).text == cell_of(figure, total).text;
  });
}

// The tree of modules, or a flat list where options.sort names a column.
void add_modules(Document& document, const Report& report, const TableOptions& options) {
  constexpr std::size_t kMinNameWidth = 28;
  const auto columns = choose_columns<RooflineRow>(report, options);
  const auto lines = tree_lines(report, options);
  const Selection selection = select_lines(lines, options);
  const bool flat = !options.sort.empty();
  const std::string model = data_of(report).run.model.empty() ? "model" : data_of(report).run.model;

  Table table = columns.table({"module", true, kMinNameWidth, 0, flat ? Keep::end : Keep::both_ends, "path"});
  const auto add = [&](const RooflineRow& row, Cell name, std::string mark) {
    std::vector<Cell> cells = {std::move(name)};
    columns.append_cells(cells, row);
    table.add(std::move(cells), std::move(mark));
  };
  table.rows.reserve(selection.lines.size() + 1);
  for (const auto* line : selection.lines) {
    const RooflineRow& row = *line->row;
    std::string name(row.path.empty() ? model : flat ? row.path : line->name_in_tree());
    if (row.inferred) name.insert(0, "~");
    if (line->count > 1) name += fmt::format(" x{}", line->count);
    if (line->wasting) name += " *";
    Cell cell(name, flat ? 0 : static_cast<std::size_t>(row.depth));
    cell.mark = std::string(row.inferred ? "~" : "") + (line->wasting ? "*" : "");
    add(row, std::move(cell), "");
  }
  if (lines.size() != 1 || !says_the_same(*lines.front().row, report.total(), columns)) {
    table.add_rule();
    add(report.total(), Cell{"total"}, "total");
  }
  if (selection.too_deep > 0) {
    const auto deeper = option_text(options, "depth", std::to_string(saturating_add(selection.depth, 1)));
    table.remarks.push_back(
        rows_left_out(selection.too_deep, fmt::format("below depth {}: {} shows more", selection.depth, deeper)));
  }
  finish(document, std::move(table), selection.over_limit, options, flat ? "after these" : "smaller than these");
}

void add_rows(Document& document, const Report& report, const TableOptions& options) {
  switch (kind_of(options.by)) {
    case TableKind::modules:
      return add_modules(document, report, options);
    case TableKind::regions:
      return add_regions(document, report, options);
    case TableKind::groups:
      return add_groups(document, report, options);
    case TableKind::kernels:
      return add_kernels(document, report, options);
    case TableKind::ranks:
      return add_ranks(document, report, options);
    case TableKind::collectives:
      return add_collectives(document, report, options);
    case TableKind::memory:
      return add_memory(document, report, options);
  }
}

// An empty line stands before the paragraphs from there on.
void set_apart(Document& document, std::size_t from) {
  if (from >= document.blocks.size()) return;
  if (auto* paragraph = std::get_if<Paragraph>(&document.blocks[from])) paragraph->apart = true;
}

}  // namespace

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
  const auto speech = options.speech;
  if (speech == Speech::shell) return fmt::format("--{}", name);
  return option_text(options, name, speech == Speech::python ? "True" : "true");
}

Document part_of_report(const Report& report, std::string_view part, const TableOptions& options) {
  Document document;
  if (part == "heading") {
    add_heading(document, report);
  } else if (part == "rows") {
    add_rows(document, report, options);
  } else if (part == "legend") {
    add_legend(document, report, options);
  } else if (part == "roofs") {
    add_roofs(document, report);
  } else if (part == "coverage") {
    add_coverage(document, report);
  } else {
    throw InvalidArgument("a report prints heading, rows, legend, roofs and coverage, not '" + std::string(part) + "'");
  }
  return document;
}

Document report_document(const Report& report, const TableOptions& options) {
  for (const auto& [name, value] : {std::pair("depth", options.depth.value_or(0)), std::pair("width", options.width),
                                    std::pair("limit", options.limit)}) {
    if (value < 0) throw InvalidArgument(fmt::format("{} must be 0 or more, not {}", name, value));
  }
  if (options.rows_only) return part_of_report(report, "rows", options);
  Document document;
  add_heading(document, report);
  const std::size_t rows = document.blocks.size();
  add_rows(document, report, options);
  set_apart(document, rows);
  if (options.by == "module" || options.by == "op") {
    add_hotspots(document, report, options);
    add_findings(document, report);
  }
  const std::size_t explanations = document.blocks.size();
  if (folds_siblings(options)) add_siblings(document, report);
  if (options.legend) add_legend(document, report, options);
  add_roofs(document, report);
  add_coverage(document, report);
  set_apart(document, explanations);
  return document;
}

std::string Report::table(const TableOptions& requested) const {
  TableOptions options = requested;
  if (!options.depth) options.depth = depth_;
  return render_text(report_document(*this, options), static_cast<std::size_t>(options.width));
}

std::ostream& operator<<(std::ostream& out, const Report& report) { return out << report.table(); }

}  // namespace roofprof
