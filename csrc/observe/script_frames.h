#pragma once
// TorchScript's interpreter calls no hooks: its ops find their module by the interpreter's call stack.

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>

namespace roofprof::observe {

class Session;
struct ThreadState;

// Handle the beginning and the end of a TorchScript method (RecordScope::TORCHSCRIPT_FUNCTION).
void start_script_frame(ThreadState& state, const at::RecordFunction& fn);
void finish_script_frame(ThreadState& state, const at::RecordFunction& fn);

// Moves an open TorchScript frame to the module of an op that starts in it.
void enter_script_op(ThreadState& state);
// Opens a frame for an op on a thread of torch::jit::fork, which has none. Returns false if the fork is not of an
// observed call.
bool open_forked_op(ThreadState& state, const at::RecordFunction& fn);

// Returns the session of the observed call that torch started this thread's work for; null where no such call is known.
std::shared_ptr<Session> session_of_fork();

// Makes the session known to forks of this thread, for as long as this lives.
class ScriptForks {
 public:
  explicit ScriptForks(const std::shared_ptr<Session>& session);
  ~ScriptForks();
  ScriptForks(const ScriptForks&) = delete;
  ScriptForks& operator=(const ScriptForks&) = delete;

 private:
  std::shared_ptr<c10::DebugInfoBase> info_;
};

}  // namespace roofprof::observe
