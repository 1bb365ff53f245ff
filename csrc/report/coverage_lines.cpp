// What the figures leave out, and notes, in few lines: JSON has all of it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/phrases.h"
#include "report/document.h"
#include "report/header_and_footer.h"
#include "report/tables.h"
#include "report/units.h"

namespace roofprof {

namespace {

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

// Whether it is of no use to a reader of this table.
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

// Those of one code together, warnings before what only informs.
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

std::string all_counted_words(const ProfileData& data) {
  if (data.bypass_sought) return "everything observed was counted";
  if (data.imported) return "every op of the trace was counted; work that bypasses torch's dispatcher is not in traces";
  return "every op of torch's dispatcher was counted; work that bypasses it is not looked for in C++";
}

}  // namespace

// With how often it was said, and where, if more than once; what only informs is said without.
std::string note_text(const Note& note) {
  std::string text = note.text;
  if (note.count < 2 || note.level == NoteLevel::info) return text;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(note.where.size(), kShown); ++i) shown.push_back(module_name(note.where[i]));
  if (note.where.size() > kShown) shown.emplace_back("...");
  return text + fmt::format(" ({} times{}{})", note.count, shown.empty() ? "" : ": ", fmt::join(shown, ", "));
}

std::string coverage_lines(const Report& report, std::size_t width) {
  const Coverage& coverage = report.coverage();
  std::string text;
  bool all_said = true;
  const auto say = [&](const std::string& sentence, std::string_view ending = "") {
    const auto paragraph = shortened_paragraph(text.empty() ? "coverage" : "", sentence, ending, width, kLines);
    text += paragraph.text;
    all_said = all_said && paragraph.whole && ending.empty();
  };
  const bool all_counted = coverage.uncosted.empty() && coverage.unobserved.empty() && !coverage.dropped_records &&
                           !coverage.unattributed_kernels && !report.data().partial;
  if (all_counted) {
    say(all_counted_words(report.data()));
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
    say("note: " + note_text(*notes.front()), more > 0 ? fmt::format(" (and {} more like it)", more) : "");
  }
  if (!all_said) say("in full: coverage in the report's JSON");
  return text;
}

}  // namespace roofprof
