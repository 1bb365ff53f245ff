#pragma once
// Autograd's ranges that are no ops: the nodes of a backward, and the forward of Python's autograd functions.

#include <ATen/record_function.h>

#include "observe/thread_state.h"

namespace roofprof::observe {

// Opens a frame for a node of the backward, in the module that its forward op ran in. False where no session knows it.
bool start_node(ThreadState& state, const at::RecordFunction& fn);
void finish_node(ThreadState& state, const at::RecordFunction& fn);

// A range that is no op. The forward of a Python autograd.Function is noted.
void start_function(ThreadState& state, const at::RecordFunction& fn);
// Ends that of a function; other ranges are ignored.
void finish_function(ThreadState& state, const at::RecordFunction& fn);

}  // namespace roofprof::observe
