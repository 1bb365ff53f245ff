#pragma once
// The roofs of a machine as a table of their own.

#include <cstddef>
#include <string>

#include "report/document.h"
#include "roofprof/ceilings.h"

namespace roofprof {

// Returns the document that `ceilings_table` prints.
Document ceilings_document(const Ceilings& ceilings, const Ceilings* published = nullptr);

// Returns a line for each roof with its value, spread, source, date and method; "no roofs" where there is none. With
// `published` (null: none), each line also has the published value of the same dtype or level, and the roof's share of
// it; roofs that are only published have lines, too.
std::string ceilings_table(const Ceilings& ceilings, std::size_t width = 120, const Ceilings* published = nullptr);

// Returns the rates that the peaks' work sustains, and how much lower they are: "over 1 s: bf16 640 TFLOP/s, 21%
// lower, at 1410 MHz and 690 W"; empty where it was not measured.
std::string sustained_text(const Ceilings& ceilings);

// Returns what gave each measured peak of a GPU: "bf16: at::mm 8192x8192x8192 (MxKxN) by sm90_gemm; fp64: ...", and why
// kernels are not known; empty where nothing names it.
std::string fastest_text(const Ceilings& ceilings);

}  // namespace roofprof
