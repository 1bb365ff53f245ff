#pragma once
// The documents of a report: what its tables show, and what stands above and below them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fields.h"
#include "report/document.h"
#include "roofprof/report.h"

namespace roofprof {

// Returns everything that Report::table prints. Throws as it does.
Document report_document(const Report& report, const TableOptions& options);
// Returns one part of it: "heading", "rows", "legend", "roofs" or "coverage". Throws std::invalid_argument for others.
Document part_of_report(const Report& report, std::string_view part, const TableOptions& options);
// Returns the names of the columns that a table shows where none are chosen, without those that name the line.
std::vector<std::string> default_columns_of(const Report& report, std::string_view by);

// ---- the parts of these documents

// Rows shown where nothing else was asked for.
inline constexpr std::size_t kReadableRows = 60;

enum class TableKind : std::uint8_t { modules, regions, groups, kernels, ranks, collectives, memory };

inline TableKind kind_of(std::string_view by) {
  if (by == "module") return TableKind::modules;
  if (by == "scope") return TableKind::regions;
  if (by == "rank") return TableKind::ranks;
  if (by == "collective") return TableKind::collectives;
  if (by == "memory") return TableKind::memory;
  return by == "kernel" ? TableKind::kernels : TableKind::groups;
}

// Returns whether equal siblings are one line. A flat list shows each at its own place.
inline bool folds_siblings(const TableOptions& options) {
  return !options.expand && options.sort.empty() && options.by == "module";
}

// Returns the facts that hold for the report, as far as that kind of table shows them: a group's ops have no intervals
// and no regions, and counters of whole modules say nothing about ops.
Facts facts_of(const Report& report, TableKind kind);

// Add the parts above and below every table; an empty part adds nothing.
void add_heading(Document& document, const Report& report);
// Adds the modules and ops that waste most time, as many as `options` asks for.
void add_hotspots(Document& document, const Report& report, const TableOptions& options);
// Adds findings on them, a sentence for each rule that holds.
void add_findings(Document& document, const Report& report);
// Returns what is wrong, and the line of the user's code where it is known.
std::string text_with_source(const Finding& finding);
// The remark above a list of findings with their gains.
inline constexpr std::string_view kGainsOverlap = "gains do not add up: findings may be about the same time";
// Adds how the times of equal siblings scatter, and which of them stands out.
void add_siblings(Document& document, const Report& report);
void add_legend(Document& document, const Report& report, const TableOptions& options);
void add_roofs(Document& document, const Report& report);
void add_coverage(Document& document, const Report& report);

// Returns the note's text, followed by its count and places if it was noted more than once and does not only inform.
std::string note_text(const Note& note);
// Returns an option as the reader would write it: limit=... or --limit ...
std::string option_text(const TableOptions& options, std::string_view name, std::string_view value = "...");
// Returns an option that is switched on: expand=True, --expand or .expand = true.
std::string switch_text(const TableOptions& options, std::string_view name);

}  // namespace roofprof
