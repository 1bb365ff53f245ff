#pragma once
// What runs in a call of a graph that was compiled for its kernels: torch opens a range in each of them, and its own
// operators are ranges anyway.

#include <ATen/record_function.h>

#include <cstdint>
#include <vector>

#include "core/pass.h"

namespace roofprof::observe {

class Session;

// Mark the begin and the end of a graph's call on this thread. Where no pass observes the thread, nothing is kept.
void enter_graph(Session& session, std::int64_t graph);
void leave_graph(Session& session);

// Returns whether a graph's call is open on this thread.
bool in_graph();
// Tell the outermost ranges in a graph's call.
void begin_in_graph(const at::RecordFunction& fn);
void end_in_graph(const at::RecordFunction& fn);

}  // namespace roofprof::observe
