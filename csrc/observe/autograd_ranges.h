#pragma once
// Handles autograd's ranges that do not stand for an op: the nodes of a backward, and the forward of Python's autograd
// functions.

#include <ATen/record_function.h>

#include "observe/thread_state.h"

namespace roofprof::observe {

// Opens a frame for a node of the backward, in the module that its forward op ran in. False where no session knows it.
bool start_node(ThreadState& state, const at::RecordFunction& fn);
void finish_node(ThreadState& state, const at::RecordFunction& fn);

// Handles the start of a range that does not stand for an op. Notes it if it is the forward of a Python
// autograd.Function.
void start_function(ThreadState& state, const at::RecordFunction& fn);
// Handles the end of such a forward; ignores other ranges.
void finish_function(ThreadState& state, const at::RecordFunction& fn);

}  // namespace roofprof::observe
