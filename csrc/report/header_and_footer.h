#pragma once
// What stands above and below every table: what was profiled and how, what the columns mean, where the roofs come from,
// what the figures leave out.

#include <string>

#include "core/profile_data.h"
#include "report/tables.h"

namespace roofprof {

std::string heading_lines(const Report& report, std::size_t width);
// So many modules and ops that waste most time; empty where no waste is known.
std::string hotspot_lines(const Report& report, const TableOptions& options, std::size_t width);
// What to do about them, a sentence for each rule that holds; empty where none does.
std::string advice_lines(const Report& report, std::size_t width);
// How the times of equal siblings scatter, and which of them stands out; empty where none are one line.
std::string sibling_lines(const Report& report, std::size_t width);
// "8 ranks on 1 host: ..."; of a merged report.
std::string rank_words(const Report& report);
// "rank 3 computes 1.4 times as long as the median rank, most in layers.2"; empty where none stands out.
std::string slow_rank_words(const Report& report);
std::string late_rank_words(const Report& report);
std::string legend_lines(const Report& report, const TableOptions& options, TableKind kind, std::size_t width);
std::string roof_lines(const Report& report, std::size_t width);
std::string coverage_lines(const Report& report, std::size_t width);
std::string note_text(const Note& note);

}  // namespace roofprof
