// A report in at most 40 lines of ASCII for readers in a hurry and for programs, and as Markdown for pull requests.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/gainable_idle.h"
#include "analysis/whole/analysis.h"
#include "core/phrases.h"
#include "core/profile.h"
#include "core/utf8.h"
#include "report/tables.h"
#include "report/units.h"

namespace roofprof {

namespace {

constexpr std::size_t kMostCharacters = 5'000;  // 2,000 tokens at most, as figures and signs are short ones
constexpr std::size_t kNoLimit = std::string::npos;
constexpr std::size_t kWidest = 400;  // the first width that lines are cut to, as the last resort
constexpr std::size_t kNarrowest = 60;
constexpr std::size_t kHeadingLines = 6;
constexpr std::size_t kCoverageLines = 4;
constexpr std::size_t kModulesNamed = 5;
constexpr std::size_t kRowsInMarkdown = 25;

// Returns the text with ASCII alone: a few signs have one of their own, each other character becomes "?".
std::string ascii(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSigns = {
      {{"µ", "u"}, {"…", "..."}, {"×", "x"}, {"≥", ">="}, {"≤", "<="}, {"→", "->"}}};
  std::string plain;
  while (!text.empty()) {
    const auto sign = std::ranges::find_if(kSigns, [&](const auto& one) { return text.starts_with(one.first); });
    const auto length = sign != kSigns.end() ? sign->first.size() : std::max<std::size_t>(utf8_sequence(text), 1);
    if (sign != kSigns.end()) {
      plain += sign->second;
    } else {
      const char letter = text.front();
      plain += length == 1 && letter >= ' ' && letter <= '~' ? letter : '?';
    }
    text.remove_prefix(length);
  }
  return plain;
}

// Cuts a line behind a word.
std::string cut(const std::string& line, std::size_t width) {
  constexpr std::string_view kMore = " ...";
  constexpr std::size_t kLongestWord = 30;  // a longer one is cut itself
  if (line.size() <= width) return line;
  const std::size_t room = width - kMore.size();
  const std::size_t space = line.rfind(' ', room);
  const bool at_word = space != std::string::npos && space + kLongestWord > room;
  return line.substr(0, line.find_last_not_of(" ,;:(", (at_word ? space : room) - 1) + 1).append(kMore);
}

// "encoder...er.0-5.attention" of a longer path: how it begins, and its end, from a dot on where one is near.
std::string short_path(const std::string& path, std::size_t most) {
  if (path.size() <= most) return path;
  const std::size_t begins = std::min(path.find('.'), most / 4);
  const std::size_t ends = most - begins - std::string_view("...").size();
  const std::size_t dot = path.find('.', path.size() - ends - 1);
  const bool is_near = dot != std::string::npos && dot < path.size() - ends + ends / 4;
  return path.substr(0, begins) + "..." + path.substr(is_near ? dot + 1 : path.size() - ends);
}

// Limits of the parts that the text of a large report can do without.
struct Room {
  std::size_t path = kNoLimit;  // characters
  std::size_t note = kNoLimit;  // characters of a line above or below the findings
  bool basis = true;
  std::size_t tries = kNoLimit;    // findings with the code that tries them
  std::size_t sources = kNoLimit;  // findings with their line
  std::size_t text = kNoLimit;     // characters of a finding's text
};

// Sorted from the largest to the smallest. Each has room for a finding's action, gain and confidence.
constexpr std::array<Room, 8> kRooms = {
    {{},
     {.path = 60, .note = 300},
     {.path = 45, .note = 200, .tries = 5},
     {.path = 45, .note = 160, .basis = false, .tries = 3, .sources = 5},
     {.path = 45, .note = 160, .basis = false, .tries = 0, .sources = 3, .text = 300},
     {.path = 40, .note = 120, .basis = false, .tries = 0, .sources = 0, .text = 240},
     {.path = 40, .note = 100, .basis = false, .tries = 0, .sources = 0, .text = 190},
     {.path = 30, .note = 80, .basis = false, .tries = 0, .sources = 0, .text = 140}}};

std::string percent_of(std::int64_t part_ns, std::int64_t all_ns) {
  return all_ns > 0 ? human_percent(100 * static_cast<double>(part_ns) / static_cast<double>(all_ns)) : "n/a";
}

// "1.20 ms to 3.40 ms (10% to 28% of the total)"
std::string gain_words(const Finding& finding, const Report& report) {
  if (finding.gain_high_ns <= 0) return "none to be had by code";
  const auto time = [](std::int64_t ns) { return ns <= 0 ? "0" : human_time(static_cast<double>(ns)); };
  const bool is_idle = finding.rule == kIdleRule;  // whose time is none of the total's
  const auto all_ns = is_idle ? device_span_ns(report.total()) : report.total().time_ns.value_or(0);
  return fmt::format("{} to {} ({} to {} of the {})", time(finding.gain_low_ns), time(finding.gain_high_ns),
                     percent_of(finding.gain_low_ns, all_ns), percent_of(finding.gain_high_ns, all_ns),
                     is_idle ? "time from the device's first launch to its last" : "total");
}

std::vector<std::string> contents_of(const Document& document, std::size_t most) {
  std::vector<std::string> lines;
  for (const auto& block : document.blocks) {
    const auto* paragraph = std::get_if<Paragraph>(&block);
    if (paragraph == nullptr || paragraph->if_shortened) continue;
    const std::string& label = paragraph->label;
    lines.push_back((label.empty() ? "" : label + ": ") + paragraph->content());
  }
  if (lines.size() > most) {
    const auto more = lines.size() - most + 1;
    lines.resize(most - 1);
    lines.push_back(fmt::format("({} more lines)", more));
  }
  return lines;
}

std::string total_words(const Report& report) {
  const RooflineRow& total = report.total();
  const auto count = [](std::int64_t value) { return human_count(static_cast<double>(value)); };
  const std::string_view at_least = total.incomplete ? ">=" : "";
  std::string text = fmt::format("total: {}{} FLOPs, ", at_least, count(total.flops));
  if (total.int_ops > total.flops) text += fmt::format("{}{} integer operations, ", at_least, count(total.int_ops));
  text += fmt::format("{}{} moved", at_least, human_bytes(static_cast<double>(total.bytes)));
  if (total.params_known) text += fmt::format(", {} parameters", count(total.params));
  if (total.time_ns) text += ", " + human_time(static_cast<double>(*total.time_ns));
  if (total.lower_bound_time_ns)
    text += fmt::format(", lower bound {}{}", at_least, human_time(static_cast<double>(*total.lower_bound_time_ns)));
  if (total.percent_of_roof)
    text += fmt::format(" ({}{} of the roof)", at_least, human_percent(*total.percent_of_roof));
  if (total.bound.kind != BoundKind::unknown)
    text += fmt::format(", bound: {}{}", to_string(total.bound), total.incomplete ? ", by what is known" : "");
  return text;
}

// The modules whose own ops take most of the time: "layer4.2.conv1 x3 12%".
std::string most_time_words(const Report& report, const Room& room) {
  std::vector<const FoldedRow*> lines;
  const auto own_ns = [](const FoldedRow* line) {
    return line->mean.self.time_ns.value_or(0) * static_cast<std::int64_t>(line->members.size());
  };
  for (const auto& line : analysis_of(report).folded_rows()) {
    if (own_ns(&line) > 0) lines.push_back(&line);
  }
  std::ranges::stable_sort(lines, std::greater(), own_ns);
  if (lines.size() > kModulesNamed) lines.resize(kModulesNamed);
  std::vector<std::string> words;
  for (const auto* line : lines) {
    const auto times = line->members.size() > 1 ? fmt::format(" x{}", line->members.size()) : "";
    words.push_back(fmt::format("{}{} {}", short_path(display_path(line->mean.path), room.path), times,
                                percent_of(own_ns(line), report.total().time_ns.value_or(0))));
  }
  return words.empty() ? "" : "own time: " + fmt::format("{}", fmt::join(words, ", "));
}

// The finding's text with short names of the modules in it.
std::string text_in(const Room& room, const Finding& finding) {
  std::string text = finding.text;
  std::vector<std::string> paths = finding.modules;
  paths.push_back(finding.module);  // of equal siblings together
  std::ranges::sort(paths, std::greater(), &std::string::size);
  for (const auto& path : paths) {
    if (path.size() <= room.path) break;
    if (const auto at = text.find(path); at != std::string::npos)
      text.replace(at, path.size(), short_path(path, room.path));
  }
  return cut(text, room.text);
}

// Returns the text where no rule holds: it names the op that wastes most, if the roofs are known.
std::string no_findings_words(const Report& report, std::size_t longest_path) {
  if (!report.total().time_ns) return "none: they need times";
  if (data_of(report).roofs.empty()) return "none: they need roofs, and the report has none";
  const auto& hotspots = analysis_of(report).hotspots(/*expand=*/false);
  if (hotspots.empty() || hotspots.front().row.wasted_time_ns.value_or(0) <= 0) return "none";
  const auto& [row, members] = hotspots.front();
  return fmt::format("none by a rule; most waste is in {} of {}{}: {}, {} of the total", *row.op,
                     short_path(display_path(*row.module), longest_path),
                     members > 1 ? fmt::format(" x{}", members) : "",
                     human_time(static_cast<double>(*row.wasted_time_ns)),
                     percent_of(*row.wasted_time_ns, report.total().time_ns.value_or(0)));
}

std::vector<std::string> findings_in(const Room& room, const Report& report) {
  const auto& findings = analysis_of(report).findings();
  if (findings.empty()) return {"findings: " + no_findings_words(report, room.path)};
  std::vector<std::string> lines = {std::string("findings, what gains most first") +
                                    (findings.size() > 1 ? fmt::format(" ({}):", kGainsOverlap) : ":")};
  std::size_t number = 0;
  for (const auto& finding : findings) {
    std::string second = fmt::format("   -> {}; gain {}", finding.action, gain_words(finding, report)) +
                         (room.basis ? ", basis: " + finding.basis : "") + "; confidence " +
                         std::string(kConfidenceNames.at(static_cast<std::size_t>(finding.confidence)));
    if (finding.source && number < room.sources) second += "; at " + *finding.source;
    if (finding.try_it && number < room.tries) second += "; try: " + *finding.try_it;
    lines.push_back(fmt::format("{}. [{}] {}", ++number, finding.rule, text_in(room, finding)));
    lines.push_back(std::move(second));
  }
  return lines;
}

// `heading` and `coverage`: what stands above and below, in full.
std::vector<std::string> lines_in(const Room& room, const Report& report, const std::vector<std::string>& heading,
                                  const std::vector<std::string>& coverage) {
  std::vector<std::string> lines;
  for (const auto& line : heading) lines.push_back(cut(line, room.note));
  if (auto words = most_time_words(report, room); !words.empty()) lines.push_back(std::move(words));
  for (auto& line : findings_in(room, report)) lines.push_back(std::move(line));
  for (const auto& line : coverage) lines.push_back(cut(line, room.note));
  lines.emplace_back(
      "more: roofprof show FILE [--depth N] [--by op|kernel|op,phase] [--sort time]; roofprof html FILE; in its JSON "
      "\"findings\" has evidence and all modules");
  return lines;
}

}  // namespace

std::string Report::brief() const {
  std::vector<std::string> heading = contents_of(part_of_report(*this, "heading", {}), kHeadingLines);
  heading.push_back(total_words(*this));
  const auto coverage = contents_of(part_of_report(*this, "coverage", {}), kCoverageLines);
  const auto text_with = [&](const Room& room, std::size_t width) {
    std::string text;
    for (const auto& line : lines_in(room, *this, heading, coverage)) text += cut(ascii(printable(line)), width) + '\n';
    return text;
  };
  std::string text;
  for (const Room& room : kRooms) {
    text = text_with(room, kNoLimit);
    if (text.size() <= kMostCharacters) return text;
  }
  for (std::size_t width = kWidest; text.size() > kMostCharacters && width >= kNarrowest; width -= 20)
    text = text_with(kRooms.back(), width);
  return text;
}

std::string Report::markdown(const TableOptions& requested) const {
  TableOptions options = requested;
  if (options.limit == 0) options.limit = kRowsInMarkdown;
  Document document;
  const std::string& model = data_of(*this).run.model;
  document.add(Heading{fmt::format("roofprof: {} on {}", model.empty() ? "model" : model, data_of(*this).run.device)});
  add_heading(document, *this);
  document.say("total", total_words(*this).substr(std::string_view("total: ").size()));
  const auto& findings = analysis_of(*this).findings();
  if (findings.empty()) {
    document.say("findings", no_findings_words(*this, kNoLimit));
  } else {
    Table table{{{.heading = "finding", .left = true},
                 {.heading = "what to do", .left = true},
                 {.heading = "gain", .left = true},
                 {.heading = "confidence", .left = true}},
                "Findings" + (findings.size() > 1 ? fmt::format(" ({})", kGainsOverlap) : "")};
    for (const auto& finding : findings) {
      table.add({Cell(text_with_source(finding)), Cell(finding.action),
                 Cell(gain_words(finding, *this) + "; basis: " + finding.basis),
                 Cell(std::string(kConfidenceNames.at(static_cast<std::size_t>(finding.confidence))))});
    }
    document.add(std::move(table));
  }
  for (auto& block : part_of_report(*this, "rows", options).blocks) {
    if (auto* table = std::get_if<Table>(&block)) table->title = "Where the time goes";
    document.add(std::move(block));
  }
  add_coverage(document, *this);
  return render_markdown(document);
}

}  // namespace roofprof
