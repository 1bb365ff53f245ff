#pragma once
// Reports of traces that torch.profiler recorded, here or on another machine.

#include <optional>
#include <string>
#include <vector>

#include "kineto/observed_trace.h"
#include "kineto/trace_reader.h"
#include "roofprof/ceilings.h"
#include "roofprof/report.h"

namespace roofprof {

struct ImportedTrace {
  Report report;
  std::vector<kineto::ModuleCall> calls;  // of modules in the forward, by the report's rows
};

// What was read, as a report. `roofs`: empty for the published ones of the device that the trace names; `steps`: empty
// for all. Throws kineto::TraceError, one sentence.
ImportedTrace import_trace(kineto::Trace trace, const std::optional<Ceilings>& roofs = {},
                           const std::optional<kineto::StepRange>& steps = {});

}  // namespace roofprof
