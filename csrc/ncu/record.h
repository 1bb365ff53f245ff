#pragma once
// Makes of Nsight Compute's output alone, without a trace, the record that a profile is made of.

#include "core/run_record.h"
#include "ncu/output.h"

namespace roofprof::ncu {

// Returns the record, without roofs: every kernel stands in (outside), by no operator, and they follow each other
// without gaps, as ncu runs them one by one. Throws NcuError if the time of one is not known.
RunRecord record_of(const Output& output);

}  // namespace roofprof::ncu
