#pragma once
// Work that did not go through the dispatcher: the evidence of it on one thread, and how it is listed. The observer
// collects the evidence (op_observer.h); functions (autograd_ranges.h) and modules (frames_here.h) judge it as they
// end.

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/profile.h"
#include "observe/numpy_exchange.h"
#include "observe/operators/op_info.h"
#include "observe/rule/counting_rule.h"

namespace at {
struct RecordFunction;
}

namespace roofprof::observe {

struct ThreadState;

// A Python autograd.Function's forward.
struct RunningFunction {
  const at::RecordFunction* record = nullptr;
  Evidence evidence_before = 0;
  std::size_t exchanges_before = 0;
};

// The evidence of whether code bypassed the dispatcher.
struct BypassState {
  std::vector<RunningFunction> functions;
  NumpyExchange numpy_exchange;  // since the outermost module was called
  Evidence evidence = 0;         // seen since the innermost frame or function began
};

// Lists unobserved work: what was seen so far inside the innermost frame or function of that kind cannot explain its
// results.
void note_unobserved(ThreadState& state, std::string_view name, Unobserved kind);
// Lists `calls` calls of that work, which belong to `module`.
void note_unobserved(ThreadState& state, std::string_view name, Unobserved kind, ModuleId module, std::int64_t calls);

}  // namespace roofprof::observe
