#pragma once
// The dispatcher as a new thread has it, for measurements of torch itself.

#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace roofprof {

// While it lives: no autograd, autocast, vmap, fake tensors or Python modes, and no observer sees what is called.
// A measurement may be asked for below any of these, and would take their work for the machine's.
class DispatchDefaults {
 public:
  DispatchDefaults() = default;
  DispatchDefaults(const DispatchDefaults&) = delete;
  DispatchDefaults& operator=(const DispatchDefaults&) = delete;

 private:
  static c10::impl::LocalDispatchKeySet defaults() { return c10::impl::PODLocalDispatchKeySet{}; }

  c10::impl::ForceDispatchKeyGuard keys_{defaults()};
  c10::InferenceMode inference_;
  at::DisableRecordFunctionGuard observers_;
};

}  // namespace roofprof
