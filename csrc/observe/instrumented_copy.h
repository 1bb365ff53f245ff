#pragma once
// Copies a TorchScript method as it was written and puts a mark around each call of a module. The counting run calls
// the copy.

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/profile.h"
#include "observe/modules/calls.h"

namespace roofprof::observe {

class Session;

// The inputs and outputs of one module's call.
struct ScriptCallEvent {
  ModuleId module = kModel;
  CallShapes shapes;
};
using OnScriptCallEvent = std::function<void(const ScriptCallEvent&)>;

// The method's code on the method's own module, neither optimised nor fused. The forks that it starts run on its own
// thread. Each module's call opens a frame at its beginning and closes it at its end.
class InstrumentedCopy {
 public:
  // Throws where the code cannot be copied (c10::Error).
  InstrumentedCopy(const torch::jit::Module& module, const std::string& method);

  // `arguments` without the module itself, as the method's schema has them. Throws what the method throws.
  c10::IValue run(const std::shared_ptr<Session>& session, std::vector<c10::IValue> arguments,
                  const OnScriptCallEvent& on_call) const;

 private:
  torch::jit::Module module_;
  c10::FunctionSchema schema_;
  torch::jit::Code code_;
};

// Returns the note that the module at that path could not be copied.
Note note_without_copy(const std::string& path, const std::string& reason);

}  // namespace roofprof::observe
