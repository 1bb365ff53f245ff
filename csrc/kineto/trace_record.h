#pragma once
// Makes of a trace the record that a profile is made of.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/run_record.h"
#include "kineto/counted_ops.h"
#include "kineto/graph_replays.h"
#include "kineto/places.h"
#include "kineto/trace.h"

namespace roofprof::kineto {

// The first and the last of ProfilerStep's numbers.
using StepRange = std::pair<std::int64_t, std::int64_t>;
inline constexpr StepRange kAllSteps = {0, std::numeric_limits<std::int64_t>::max()};

// Returns the record, without roofs. `steps`: only code that ran in these, and what it launched; empty: all of the
// trace. `model`: the one that was recorded; null: not known. Throws TraceError if the trace has none of the steps.
// `captures`: of the graphs that were replayed.
RunRecord trace_record(Trace trace, CallCosts& costs, const std::optional<StepRange>& steps = {},
                       const CalledModel* model = nullptr, std::vector<Capture> captures = {});

}  // namespace roofprof::kineto
