#pragma once
// From a trace to what a profile is made of.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kineto/counted_ops.h"
#include "kineto/places.h"
#include "kineto/trace.h"
#include "values/observed.h"

namespace roofprof::kineto {

// Of ProfilerStep's numbers, the first and the last.
using StepRange = std::pair<std::int64_t, std::int64_t>;

struct ObservedTrace {
  Observed observed;              // without roofs
  std::vector<ModuleCall> calls;  // of modules in the forward
};

// `steps`: only what ran in these, and what it launched; empty: all of the trace. Throws TraceError where it has none of
// them.
ObservedTrace observed_trace(Trace trace, CallCosts& costs, const std::optional<StepRange>& steps = {});

}  // namespace roofprof::kineto
