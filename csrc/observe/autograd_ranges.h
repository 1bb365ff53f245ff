#pragma once
// Handles autograd's ranges that do not stand for an op: the nodes of a backward, and the forward of Python's autograd
// functions.

#include <ATen/record_function.h>

#include <memory>

#include "core/profile.h"

namespace roofprof::observe {

class Session;
struct ThreadState;

// The state of the backward that runs on a thread.
struct BackwardState {
  int nodes = 0;  // among the frames: running autograd nodes
  ModuleId last_module = kModel;
  int last_task = -1;                   // the backward that the last node was part of; -1: not of an observed model
  std::weak_ptr<Session> last_session;  // of the last node, for what the engine does between nodes
};

// Opens a frame for a node of the backward, in the module that its forward op ran in. Returns false where no session
// knows it.
bool start_node(ThreadState& state, const at::RecordFunction& fn);
void finish_node(ThreadState& state, const at::RecordFunction& fn);

// Handles the start of a range that does not stand for an op. Notes it if it is the forward of a Python
// autograd.Function.
void start_function(ThreadState& state, const at::RecordFunction& fn);
// Handles the end of such a forward; ignores other ranges.
void finish_function(ThreadState& state, const at::RecordFunction& fn);

}  // namespace roofprof::observe
