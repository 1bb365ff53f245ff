#pragma once
// What a table prints, in pieces: for pages, which lay it out anew.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"
#include "roofprof/report.h"

namespace roofprof {

// `part` is "heading", "roofs", "coverage", or "legend", which is that of a table by "module", "op" or "kernel".
// Throws std::invalid_argument for others.
std::vector<Paragraph> paragraphs_of(const Report& report, std::string_view part, std::string_view by);

// The names of the columns that a table shows where none are chosen, beside the one that names the line.
std::vector<std::string> default_columns_of(const Report& report, std::string_view by);

// What stands below tables as "most waste in": pairs of module and op.
std::vector<GroupRow> most_wasting(const Report& report);

// Which rows of the tree are marked by "*": they waste more in ops of their own than the modules below them do.
std::vector<std::size_t> marked_rows(const Report& report);

}  // namespace roofprof
