#pragma once
// Calls of torch::nn modules, reported by the intercepted forward functions and ROOFPROF_SCOPE(*this). Modules are
// known by the address of their torch::nn::Module.

#include <c10/util/SmallVector.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "observe/modules/calls.h"
#include "observe/own_calls.h"

namespace at {
struct RecordFunction;
}

namespace roofprof::observe {

// The number of passes that listen to calls. An unobserved call reads this and does nothing else.
extern std::atomic<int> call_listeners;

// Opens the module's frame on this thread if a profile's model has it. Returns false where it opened none, also for a
// call inside the module's own frame (LSTM's forward calls its forward_helper): that is the same call, unless a mark in
// the source meets itself.
bool enter_module(const void* module, CallMark mark);
void leave_module(const void* module) noexcept;

inline bool call_begins(const void* module, CallMark mark = {}) {
  return call_listeners.load(std::memory_order_relaxed) > 0 && enter_module(module, mark);
}

// Opens the frame of a call whose end is not seen: it ends with the next batch or instance normalisation.
void enter_norm(const void* module, const at::Tensor& input);
inline void norm_begins(const void* module, const at::Tensor& input) {
  if (call_listeners.load(std::memory_order_relaxed) > 0) enter_norm(module, input);
}

struct ThreadState;
// Handles the end of that operator: if it ends a normalisation, the normalisation's call returns the operator's result.
void leave_norm(ThreadState& state, const at::RecordFunction& fn);

using Tensors = c10::SmallVector<const at::Tensor*, 4>;
using TensorSpan = std::span<const at::Tensor* const>;
// Reports all tensors that the call of the innermost frame here returned (empty: they are not known), and the sizes of
// those that it took. Does nothing where that frame has another token, or this pass keeps no shapes.
void tell_results(const void* token, CallShapes&& call, std::optional<TensorSpan> results);

// Reports a call that lasts as long as this.
class ModuleCall {
 public:
  explicit ModuleCall(const void* module) : entered_(call_begins(module) ? module : nullptr) { announce_call(module); }
  ~ModuleCall() {
    announced_call_ends();
    if (entered_ != nullptr) leave_module(entered_);
  }
  ModuleCall(const ModuleCall&) = delete;
  ModuleCall& operator=(const ModuleCall&) = delete;

  // Returns whether the pass that observes this thread keeps the shapes of inputs and results.
  bool tells() const { return entered_ != nullptr && keeps_shapes(); }
  void takes(const Tensors& inputs);
  void returns(const Tensors& results);

 private:
  static bool keeps_shapes();  // in the pass that observes this thread

  const void* entered_;
  std::optional<CallShapes> shapes_;
};

// Reports an optimizer's step, or a run of the closure that was passed to one, whose work counts as outside of the
// step. It lasts as long as this, and is reported where a profile observes the thread.
class StepCall {
 public:
  enum class Of : std::uint8_t { optimizer, closure };
  StepCall(Of of, const void* token);
  ~StepCall();
  StepCall(const StepCall&) = delete;
  StepCall& operator=(const StepCall&) = delete;

 private:
  const void* entered_ = nullptr;
};

}  // namespace roofprof::observe
