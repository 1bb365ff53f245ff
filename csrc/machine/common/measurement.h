#pragma once
// Functions that measurements of all kinds of devices share: they put figures into words, and note odd ones.

#include <cstdint>
#include <string>
#include <vector>

#include "roofprof/ceilings.h"
#include "roofprof/report.h"

namespace roofprof {

// The result of a measurement of roofs.

struct MeasuredCeilings {
  Ceilings ceilings;
  std::vector<std::string> notes;  // what looks odd, and memory levels that were left out
};

// Returns the local date of today, "2024-02-29".
std::string local_date();

// Writes the value with three digits and no unit: "0.123", "12.3", "1234".
std::string number_text(double value);

// Writes the bytes with a unit: "512 KiB", "96 MiB".
std::string bytes_text(std::int64_t bytes);

// Returns the first line of what torch says in an error; its further lines are stack frames.
std::string first_line_of(const std::string& message);

// Adds a note where the repeats of some roofs differ by more than a quarter.
void note_unsteady(const Ceilings& ceilings, std::vector<std::string>& notes);

// Adds a note where a larger level is the faster one, which the reader would otherwise take for an error of the
// profiler.
void note_odd_order(const std::vector<MemoryCeiling>& memory, std::vector<std::string>& notes);

}  // namespace roofprof
