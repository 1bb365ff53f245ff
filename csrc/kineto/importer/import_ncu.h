#pragma once
// Reports with the counters that Nsight Compute read, of a trace or of its kernels alone.

#include <optional>

#include "core/run_record.h"
#include "ncu/output.h"
#include "roofprof/ceilings.h"
#include "roofprof/report.h"

namespace roofprof {

// Gives the kernels of a trace the counters that ncu read of another run of the same program. Throws NcuError if the
// trace has no kernels.
void add_counters(RunRecord& observed, const ncu::Output& output);

// Makes a report of the kernels that ncu ran. `roofs`: empty for the published ones of the device that its table names,
// if it does. Throws NcuError, one sentence.
Report import_ncu(const ncu::Output& output, const std::optional<Ceilings>& roofs = {});

}  // namespace roofprof
