// Adds the paragraphs below every table: hotspots and findings, the meaning of the columns, the origin of the roofs,
// and the gaps in the figures.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <variant>

#include "analysis/whole/analysis.h"
#include "core/fields.h"
#include "core/phrases.h"
#include "core/profile.h"
#include "report/ceilings_table.h"
#include "report/columns.h"
#include "report/tables.h"
#include "report/units.h"

namespace roofprof {

namespace {

// ---- siblings

constexpr std::size_t kMostGroups = 3;  // those that take most time
constexpr std::size_t kMostSlow = 5;    // those with a slow one among them, which come first

std::int64_t all_ns(const Siblings& group) {
  return saturating_multiply(group.mean().time_ns.value_or(0), std::ssize(group.paths));
}

std::string text_of(const Siblings& group) {
  std::string text = fmt::format("{} x{}: {} each, spread {}", group.name, group.paths.size(),
                                 human_time(static_cast<double>(group.mean().time_ns.value_or(0))),
                                 human_percent(100 * *group.spread));
  if (group.slowest) {
    text += fmt::format(", slowest {}, {}x the median", *group.slowest, human_ratio(*group.slowest_ratio));
  }
  return text;
}

// ---- legend

constexpr std::string_view kMarkLegend = "*: wastes more in ops of its own than the modules below it do";

// The figures and marks of the tables above a legend. Where a document has no table yet, all may be shown.
class Shown {
 public:
  explicit Shown(const Document& document) {
    for (const auto& block : document.blocks) {
      const auto* table = std::get_if<Table>(&block);
      if (table == nullptr) continue;
      any_ = true;
      for (const auto& column : table->columns) figures_.insert(without_self(column.figure));
      for (const auto& row : table->rows) {
        for (const auto& cell : row.cells) marks_ += cell.mark;
      }
    }
  }

  bool has_figure(std::string_view name) const { return !any_ || figures_.contains(name); }
  bool has_mark(char mark) const { return !any_ || marks_.find(mark) != std::string::npos; }

 private:
  static std::string without_self(const std::string& name) {
    return name.starts_with(kSelf) ? name.substr(kSelf.size()) : name;
  }

  bool any_ = false;
  std::set<std::string, std::less<>> figures_;
  std::string marks_;
};

// Returns whether the tree shows the mark.
bool marks_hotspots(const Report& report, const Shown& shown) {
  return std::ranges::count(analysis_of(report).wasting_themselves(), true) > 0 && shown.has_mark('*');
}

// Returns the legend of lines for equal siblings; its number is that of the report's first.
std::string sibling_legend(const Report& report, const TableOptions& options) {
  if (options.expand) return "";
  const auto& groups = analysis_of(report).siblings();
  if (groups.empty()) return "";
  const auto count = groups.front().count;
  std::string text = fmt::format("x{0}: {1}{0} equal modules", count, folds_siblings(options) ? "the mean of " : "");
  if (!folds_siblings(options)) text += " together";
  const bool has_sums = report.total().time_ns && !report.ceilings().empty();  // hotspots are listed
  if (folds_siblings(options) && has_sums) text += ", under \"most waste in\" their sum";
  return text + fmt::format(", {} shows each", switch_text(options, "expand"));
}

// Returns what the columns of the fused bound say, where one of them was asked for; why they are empty, where they are.
std::vector<std::string> fused_legend(const Report& report, const TableOptions& options) {
  const auto names_fused = [&](const std::string& name) { return lower_case(name).find("fused") != std::string::npos; };
  if (std::ranges::none_of(options.columns, names_fused) && !names_fused(options.sort)) return {};
  const auto& data = data_of(report);
  if (data.counts.crossings_known) {
    return {"fused bytes: what crosses the row's boundary, were all of its ops one",
            "fused bound: max(FLOPs / peak, fused bytes / bandwidth), phases added up", "%fused = fused bound / time"};
  }
  std::string why =
      "the program was not observed op by op with the memory that its modules share (TorchScript is not, nor are "
      "modules nested more than 256 deep)";
  if (data.origin.imported)
    why = "a trace does not tell which memory its ops share; the model of a forward does (--model)";
  if (find_note(data.notes, "fused-not-known") != nullptr) why = "a note says why";
  if (data.origin.predicted() != nullptr && !data.origin.imported) why = "they were not counted, or with another batch";
  return {"fused bytes, fused bound and %fused are n/a: " + why};
}

struct Spoken {
  const FigureInfo* figure;
  const Sentence* sentence;
  Facts depends_on;
  bool is_needed;
};

// Marks the legends of the figures that the sentence mentions, and what these mention.
void need_mentioned_by(const Sentence& sentence, std::vector<Spoken>& spoken) {
  for (const auto name : sentence.mentions) {
    const auto legend = std::ranges::find_if(
        spoken, [&](const Spoken& one) { return one.figure->name == name && one.sentence == &one.figure->legend; });
    if (legend == spoken.end() || legend->is_needed) continue;
    legend->is_needed = true;
    need_mentioned_by(*legend->sentence, spoken);
  }
}

// Returns the sentences on columns that are shown, and on what these sentences mention. Sorts by the facts that they
// need, fewest first; then by their order; then as the table of figures has them.
template <class Row>
std::vector<Spoken> sentences_of(Facts known, const Shown& shown) {
  std::set<std::string_view> explained;  // figures whose sentences explain a column that is shown
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto) {
    const bool is_shown = info.unit == Unit::flag || shown.has_figure(info.name);  // a flag is a sign in other columns
    if (!of_self && is_shown) explained.insert({info.name, info.legend_of});
  });
  std::vector<Spoken> spoken;
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto) {
    if (of_self) return;
    const auto add = [&](const Sentence& sentence) {
      const Facts depends_on = info.needs | sentence.when;
      const bool holds = (depends_on & ~known) == 0 && (sentence.unless & known) == 0;
      if (holds && !sentence.text.empty())
        spoken.push_back({&info, &sentence, depends_on, explained.contains(info.name)});
    };
    add(info.legend);
    for (const Sentence& hint : info.hints) add(hint);
  });
  for (std::size_t i = 0; i < spoken.size(); ++i) {
    if (spoken[i].is_needed) need_mentioned_by(*spoken[i].sentence, spoken);
  }
  std::erase_if(spoken, [](const Spoken& one) { return !one.is_needed; });
  std::ranges::stable_sort(spoken, [](const Spoken& a, const Spoken& b) {
    return a.depends_on != b.depends_on ? a.depends_on < b.depends_on : a.sentence->order < b.sentence->order;
  });
  return spoken;
}

// A legend that begins with these sentences.
template <class Row>
void add_sentences(Document& document, std::vector<std::string> sentences, Facts known, const Shown& shown) {
  std::erase(sentences, "");
  for (const Spoken& spoken : sentences_of<Row>(known, shown)) sentences.emplace_back(spoken.sentence->text);
  document.add(Paragraph{.label = "columns", .items = std::move(sentences)});
}

// ---- roofs

std::string roof_text(std::string_view name, double rate, std::string_view unit, std::int64_t capacity,
                      const Provenance& provenance) {
  std::string text = fmt::format("{} {}", name, human_count(rate, unit));
  if (capacity > 0) text += " up to " + human_bytes(static_cast<double>(capacity));
  if (provenance.spread) text += fmt::format(" ({})", human_percent(100 * *provenance.spread));
  return text;
}

// "measured 2025-01-01": what roofs of one origin stand behind.
std::string origin_of(const Provenance& provenance) {
  std::string origin = provenance.source.empty() ? "of unknown origin" : provenance.source;
  if (!provenance.date.empty()) origin += " " + provenance.date.substr(0, 10);
  // The JSON has a measurement's method; a published or given figure is shown with its source.
  if (provenance.source != "measured" && !provenance.method.empty()) origin += " (" + provenance.method + ")";
  return origin;
}

// ---- coverage

constexpr std::size_t kListed = 8;        // names in a list before the rest is counted
constexpr std::size_t kShown = 3;         // modules named for each op of such a list
constexpr std::size_t kLines = 2;         // of each sentence
constexpr std::int64_t kNegligible = 20;  // less than one part in so many

std::string names_with_calls(const std::map<std::string, std::int64_t>& calls) {
  std::vector<std::pair<std::string, std::int64_t>> ranked(calls.begin(), calls.end());
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto& [name, times] : ranked) names.push_back(name + " (" + counted(times, "call") + ")");
  return listed(names, kListed);
}

std::string module_name(const std::string& path) { return path.empty() ? "the model" : path; }

// "fusion, head and 3 more"
std::string names_of_modules(const UncostedOp& op) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(op.modules.size(), kShown); ++i) names.push_back(module_name(op.modules[i]));
  const auto more = op.module_count - std::ssize(names);
  return listed(names) + (more > 0 ? fmt::format(" and {} more", more) : "");
}

// "aten::foo (12 calls, 3.4% of the op time, in layer1.0, head and 3 more)"
std::string uncosted_words(const std::vector<UncostedOp>& ops) {
  std::vector<std::string> words;
  for (const auto& op : ops) {
    std::string share;
    if (op.percent_of_time) share = human_percent(*op.percent_of_time) + " of the op time, ";
    words.push_back(fmt::format("{} ({}, {}in {})", op.op, counted(op.calls, "call"), share, names_of_modules(op)));
  }
  return listed(words, kListed);
}

// Below an uncalled module everything is uncalled: the topmost names say it.
std::string topmost_names(const std::vector<std::string>& paths) {
  auto topmost = topmost_of(paths);
  for (auto& path : topmost) path = path.empty() ? "the model itself" : path;
  const auto total = std::ssize(paths);
  if (topmost.size() > kListed) topmost.resize(kListed);
  std::string text = listed(topmost);
  if (total > std::ssize(topmost)) text += " (" + counted(total, "module") + " with all below)";
  return text;
}

// Modules without parameters are not missed: a dropout that is replaced by a function, an Identity.
std::vector<std::string> missed_modules(const Report& report) {
  std::set<std::string_view> with_parameters;
  for (const auto& row : report.rows()) {
    if (row.params > 0) with_parameters.insert(row.path);
  }
  std::vector<std::string> missed = report.coverage().uncalled_modules;
  std::erase_if(missed, [&](const auto& path) { return !with_parameters.contains(path); });
  return missed;
}

// Returns whether a reader of this table can do without the note.
bool is_idle(const Note& note, const Report& report) {
  if (note.code != "roof-by-bytes-alone") return false;
  std::int64_t all = 0;
  std::int64_t without_roof = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto operations = report.total().operations_by_dtype[i];
    all = saturating_add(all, operations);
    if (report.ceilings().compute_for(static_cast<DType>(i)) == nullptr) {
      without_roof = saturating_add(without_roof, operations);
    }
  }
  return without_roof < all / kNegligible;
}

// Returns the notes grouped by code, warnings first.
std::vector<std::vector<const Note*>> kinds_of_notes(const Report& report) {
  std::vector<std::vector<const Note*>> kinds;
  for (const auto& note : report.coverage().notes) {
    if (note.level == NoteLevel::attention || is_idle(note, report)) continue;
    const auto same = [&](const auto& kind) { return kind.front()->code == note.code; };
    const auto found = std::ranges::find_if(kinds, same);
    found == kinds.end() ? kinds.push_back({&note}) : found->push_back(&note);
  }
  std::ranges::stable_sort(kinds, [](const auto& a, const auto& b) { return a.front()->level > b.front()->level; });
  return kinds;
}

// Returns the codes of all notes that the table prints, those above its rows first.
std::vector<std::string> codes_of_notes(const Report& report) {
  std::vector<std::string> codes;
  for (const auto& note : report.coverage().notes) {
    if (note.level == NoteLevel::attention && std::ranges::find(codes, note.code) == codes.end()) {
      codes.push_back(note.code);
    }
  }
  for (const auto& notes : kinds_of_notes(report)) codes.push_back(notes.front()->code);
  return codes;
}

std::string all_counted_words(const Profile& data) {
  if (data.run.bypass_sought) return "everything observed was counted";
  if (data.origin.imported)
    return "every op of the trace was counted; work that bypasses torch's dispatcher is not in traces";
  return "every op of torch's dispatcher was counted; work that bypasses it is not looked for in C++";
}

}  // namespace

void add_hotspots(Document& document, const Report& report, const TableOptions& options) {
  constexpr std::size_t kMinModuleWidth = 27;
  constexpr std::size_t kMinOpWidth = 18;
  const Analysis& analysis = analysis_of(report);
  const auto& hotspots = analysis.hotspots(options.expand);
  if (hotspots.empty()) return;
  const auto columns = columns_of<GroupRow>();
  const std::array shown = {&column_named(columns, "time"), &column_named(columns, "bound"),
                            &column_named(columns, "percent_of_roof"), &column_named(columns, "wasted_time")};

  Table table{{{"most waste in", true, kMinModuleWidth, 0, Keep::end},
               {"op", true, kMinOpWidth, 0},
               {"time", false, 0, 4, Keep::both_ends, "time"},
               {"bound", true, 0, 1, Keep::both_ends, "bound"},
               {"%roof", false, 0, 3, Keep::both_ends, "percent_of_roof"},
               {"wasted", false, 0, 0, Keep::both_ends, "wasted_time"},
               {"of total", false, 0, 2}}};
  for (const auto& [row, members] : hotspots) {
    std::string name = row.module->empty() ? "(model)" : *row.module;
    if (members > 1) name += fmt::format(" x{}", members);
    std::vector<Cell> cells = {name, *row.op};
    for (const auto* column : shown) cells.push_back(cell_of(*column, row));
    const auto all_ns = static_cast<double>(report.total().time_ns.value_or(0));
    cells.emplace_back(all_ns > 0 && row.wasted_time_ns
                           ? human_percent(100 * static_cast<double>(*row.wasted_time_ns) / all_ns)
                           : "n/a");
    table.add(std::move(cells));
  }
  document.add(std::move(table));
}

std::string text_with_source(const Finding& finding) {
  return finding.source ? finding.text + " (" + *finding.source + ")" : finding.text;
}

void add_findings(Document& document, const Report& report) {
  constexpr std::size_t kMost = 5;
  const auto& findings = analysis_of(report).findings();
  for (std::size_t i = 0; i < std::min(findings.size(), kMost); ++i) {
    const auto& finding = findings[i];
    document.add(
        Paragraph{.label = i == 0 ? "findings" : "",
                  .text = fmt::format("{}: {} [{}]", text_with_source(finding), finding.action, finding.reference),
                  .apart = i == 0});
  }
}

void add_siblings(Document& document, const Report& report) {
  std::vector<const Siblings*> groups;
  for (const Siblings& group : analysis_of(report).siblings()) {
    if (group.spread) groups.push_back(&group);
  }
  std::ranges::stable_sort(groups, [](const Siblings* a, const Siblings* b) {
    return a->slowest.has_value() != b->slowest.has_value() ? a->slowest.has_value() : all_ns(*a) > all_ns(*b);
  });
  const auto slow =
      static_cast<std::size_t>(std::ranges::count_if(groups, [](const auto& g) { return g->slowest.has_value(); }));
  const std::size_t shown = std::min(groups.size(), std::clamp(slow, kMostGroups, kMostSlow));
  for (std::size_t i = 0; i < shown; ++i) document.say(i == 0 ? "siblings" : "", text_of(*groups[i]));
  if (slow > shown) document.say("", fmt::format("and {} more with a slow one", slow - shown));
}

void add_legend(Document& document, const Report& report, const TableOptions& options) {
  const TableKind kind = kind_of(options.by);
  const Shown shown(document);
  const auto add = [&]<class Row>(std::vector<std::string> sentences) {
    add_sentences<Row>(document, std::move(sentences), facts_of(report, kind), shown);
  };
  switch (kind) {
    case TableKind::modules: {
      std::vector<std::string> sentences = {"a row includes the modules below it",
                                            std::string(marks_hotspots(report, shown) ? kMarkLegend : ""),
                                            sibling_legend(report, options)};
      std::ranges::move(fused_legend(report, options), std::back_inserter(sentences));
      add.operator()<RooflineRow>(std::move(sentences));
      break;
    }
    case TableKind::regions:
      if (report.regions().empty()) break;
      add.operator()<RooflineRow>(
          {"a row has all that ran in its region, those inside it included",
           shown.has_figure("wall") ? "wall: from its opening to its end, calls added up" : ""});
      break;
    case TableKind::groups:
      add.operator()<GroupRow>({"a row sums all calls of its ops", sibling_legend(report, options)});
      break;
    case TableKind::kernels:
      if (report.kernels().empty()) break;
      add.operator()<KernelRow>(
          {data_of(report).device || data_of(report).times->compiled_kernels.empty()
               ? "one line for a kernel, copy or memset in one module, op and launch size"
               : "one line for a kernel in one place of the compiled code: its total is its part of the "
                 "region's time, and median to std dev are of its calls in runs with ranges "
                 "around kernels"});
      break;
    case TableKind::ranks:
      if (report.ranks().empty()) break;
      add.operator()<Rank>({"one line for a rank"});
      break;
    case TableKind::collectives:
      if (analysis_of(report).collectives().empty()) break;
      add.operator()<Collective>({"one line for a collective in one module, phase, group and size"});
      break;
    case TableKind::memory:
      if (report.memory_at_peak().empty()) break;
      add.operator()<MemoryRow>({"one line for what a module allocated in one phase, or had before",
                                 "activations: kept for the backward; temporaries: neither kept nor returned",
                                 sibling_legend(report, options)});
      break;
  }
}

void add_roofs(Document& document, const Report& report) {
  const Ceilings& ceilings = report.ceilings();
  if (ceilings.empty()) {
    if (report.total().time_ns) document.say("roofs", "none given: no bounds, no % of roof and no wasted time");
    return;
  }
  // One paragraph for each origin, in order of appearance.
  struct Origin {
    std::string name;
    std::vector<std::string> roofs;
    bool has_spread = false;
  };
  std::vector<Origin> origins;
  const auto add = [&](const Provenance& provenance, std::string roof) {
    const std::string name = origin_of(provenance);
    auto found = std::find_if(origins.begin(), origins.end(), [&](const auto& known) { return known.name == name; });
    if (found == origins.end()) found = origins.insert(origins.end(), {name, {}, false});
    found->roofs.push_back(std::move(roof));
    found->has_spread = found->has_spread || provenance.spread.has_value();
  };
  for (const auto& peak : ceilings.compute) {
    add(peak.provenance, roof_text(name_of(peak.dtype), peak.operations_per_second,
                                   is_floating(peak.dtype) ? "FLOP/s" : "op/s", 0, peak.provenance));
  }
  for (const auto& level : ceilings.memory) {
    add(level.provenance,
        roof_text(level.level, level.bytes_per_second, "B/s", level.capacity_bytes, level.provenance));
  }
  for (const auto& origin : origins) {
    const std::string_view brackets = origin.has_spread ? " (in brackets the spread over repeats)" : "";
    document.say(&origin == origins.data() ? "roofs" : "",
                 fmt::format("{}{}: {}", origin.name, brackets, fmt::join(origin.roofs, ", ")));
  }
  if (const auto sustained = sustained_text(ceilings); !sustained.empty()) {
    document.say("", "rows are held against peaks of the first milliseconds; sustained " + sustained);
  }
}

void add_coverage(Document& document, const Report& report) {
  const Coverage& coverage = report.coverage();
  bool first = true;
  const auto say = [&](std::string sentence, Role role = Role::statement, std::string ending = "") {
    document.add(Paragraph{.label = first ? "coverage" : "",
                           .text = std::move(sentence),
                           .role = role,
                           .most_lines = kLines,
                           .ending = std::move(ending)});
    first = false;
  };
  const bool all_counted = coverage.uncosted.empty() && coverage.unobserved.empty() && !coverage.dropped_records &&
                           !coverage.unattributed_kernels && !data_of(report).run.partial && !report.total().incomplete;
  if (all_counted) {
    say(all_counted_words(data_of(report)));
  }
  if (!coverage.uncosted.empty()) say("not counted, no cost is known: " + uncosted_words(coverage.uncosted_ops));
  if (!coverage.unobserved.empty()) {
    say("not observed, bypasses the dispatcher: " + names_with_calls(coverage.unobserved));
  }
  if (coverage.dropped_records > 0) say(counted(coverage.dropped_records, "record was", "records were") + " dropped");
  if (coverage.unattributed_kernels > 0) {
    say(counted(coverage.unattributed_kernels, "launch belongs", "launches belong") +
        " to no module: kernels, copies or memsets that no scope saw, in (outside)");
  }
  if (const auto missed = missed_modules(report); !missed.empty()) say("never called: " + topmost_names(missed));
  for (const auto& notes : kinds_of_notes(report)) {
    const auto more = notes.size() - 1;
    say("note: " + note_text(*notes.front()), Role::note, more > 0 ? fmt::format(" (and {} more like it)", more) : "");
  }
  if (const auto codes = codes_of_notes(report); !codes.empty()) {
    document.add(Paragraph{.text = fmt::format("more on notes: roofprof explain {}", fmt::join(codes, " ")),
                           .role = Role::hint,
                           .most_lines = kLines});
  }
  document.add(Paragraph{.text = "in full: coverage in the report's JSON",
                         .role = Role::hint,
                         .most_lines = kLines,
                         .if_shortened = true});
}

}  // namespace roofprof
