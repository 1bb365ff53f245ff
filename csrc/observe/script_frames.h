#pragma once
// TorchScript's interpreter calls no hooks: its ops find their module by the interpreter's call stack.

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>

namespace roofprof::observe {

class Session;
struct ThreadState;

// A method of TorchScript's begins or ends (RecordScope::TORCHSCRIPT_FUNCTION).
void start_script_frame(ThreadState& state, const at::RecordFunction& fn);
void finish_script_frame(ThreadState& state, const at::RecordFunction& fn);

// An op starts in an open TorchScript frame, which becomes that of the op's module.
void enter_script_op(ThreadState& state);
// The same on a thread of torch::jit::fork, which has no frame open. False if the fork is not of an observed call.
bool open_forked_op(ThreadState& state, const at::RecordFunction& fn);

// The session of the observed call that torch started this thread's work for; null where there is none.
std::shared_ptr<Session> session_of_fork();

// While this lives, forks of this thread know the session.
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
