#pragma once
// Puts back what further calls of a C++ model change; run/state_snapshot.h lists what that is.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "observe/script/script_tree.h"
#include "run/profiler/model.h"
#include "run/state_snapshot.h"

namespace roofprof::detail {

// Each tensor once, with those that script values hold, and gradients.
std::vector<at::Tensor> tensors_of(const Reach& reach);

// Returns the device on which the work may run: one that is neither the CPU nor meta if there is one, else "cpu".
std::string device_of(const std::vector<at::Tensor>& tensors);

// Lets a call be made again and again, and leaves all within reach as its first call left it. It must be made before
// the first call.
class ModelSnapshot {
 public:
  ModelSnapshot(const Model& model, Reach inputs);

  // Returns why no further calls can be made, after the first call; empty: they can.
  std::string why_only_once() const { return tensors_.why_only_once(); }
  // Gives a further call the containers and random numbers that the first one got.
  void before_call() const;
  // Must begin after the first call. What is called in `further` is undone at its end, also when it throws. Returns how
  // many tensors could not be put back.
  std::int64_t undoing(const std::function<void()>& further);

 private:
  const Model& model_;
  Reach inputs_;
  observe::ScriptValues input_values_;
  run::AmbientState ambient_;
  run::TensorSnapshot tensors_;
};

}  // namespace roofprof::detail
