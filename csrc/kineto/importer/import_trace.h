#pragma once
// Reports of traces that torch.profiler recorded, here or on another machine.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/profile_data.h"
#include "kineto/trace_reader.h"
#include "kineto/trace_record.h"
#include "roofprof/ceilings.h"
#include "roofprof/report.h"

namespace roofprof {

// Returns the profile of one step, from that of `steps` steps (1 or more): every sum is divided by their number. If the
// steps did different work, counts are rounded down, and a note says so.
ProfileData mean_of_steps(ProfileData data, std::int64_t steps);

// Makes a report of the trace. `roofs`: empty for the published ones of the device that the trace names; `steps`: empty
// for everything that was recorded, in steps and outside; `mean`: the report is the mean of the steps, not their sum;
// `model`: null where it is not known; `captures`: of the graphs that were replayed. Throws kineto::TraceError, one
// sentence.
Report import_trace(kineto::Trace trace, const std::optional<Ceilings>& roofs = {},
                    const std::optional<kineto::StepRange>& steps = {}, bool mean = false,
                    const kineto::CalledModel* model = nullptr, std::vector<kineto::Capture> captures = {});

}  // namespace roofprof
