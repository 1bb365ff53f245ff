#pragma once
// The end of every run, block and count.

#include <cstdint>
#include <optional>

#include "core/run_record.h"
#include "machine/common/measurement.h"
#include "roofprof/report.h"
#include "run/observed_run.h"

namespace roofprof::run {

// The report of what `run` observed, at least the counting call; takes the passes out of it. `observed` comes with what
// the door alone knows: the model, its modules, the steps and the door's notes. `roofs`: none where nothing was timed.
// `depth`: of the report's tables.
Report finish_report(ObservedRun& run, RunRecord observed, const MeasuredCeilings& roofs,
                     std::optional<std::int64_t> depth = {});

}  // namespace roofprof::run
