#pragma once
// Reports of traces that torch.profiler recorded, here or on another machine.

#include <optional>
#include <string>

#include "kineto/trace_reader.h"
#include "kineto/trace_record.h"
#include "roofprof/ceilings.h"
#include "roofprof/report.h"

namespace roofprof {

// What was read, as a report. `roofs`: empty for the published ones of the device that the trace names; `steps`: empty
// for all that was recorded, in steps and outside; `mean`: of the steps, in place of their sum; `model`: null where it
// is not known. Throws kineto::TraceError, one sentence.
Report import_trace(kineto::Trace trace, const std::optional<Ceilings>& roofs = {},
                    const std::optional<kineto::StepRange>& steps = {}, bool mean = false,
                    const kineto::CalledModel* model = nullptr);

}  // namespace roofprof
