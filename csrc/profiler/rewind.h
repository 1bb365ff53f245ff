#pragma once
// What calls of a model leave changed, kept so that further calls can be undone. Python's is roofprof/_state.py.

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "observe/script_values.h"
#include "profiler/model.h"

namespace roofprof::detail {

// The CPU's random number generator, the grad mode, and what autocast has cast already.
class AmbientState {
 public:
  AmbientState();
  void restore() const;

 private:
  bool grad_mode_;
  at::Tensor random_;
};

// A tensor as it was when this was made.
class KeptTensor {
 public:
  KeptTensor(at::Tensor tensor, bool by_value);
  // Puts back storage, values, gradient and whether there is one to be. False where it was written but not kept by
  // value.
  bool restore();

 private:
  at::Tensor tensor_;
  at::Tensor alias_;  // stays with the storage when set_data() moves the tensor on
  at::Tensor values_;
  std::optional<std::int64_t> version_;
  at::Tensor grad_;
  bool requires_grad_ = false;
};

// Each tensor once, with those that script values hold, and gradients.
std::vector<at::Tensor> tensors_of(const Reach& reach);

// Where the work runs: the device that is not the CPU where one of them is, else "cpu".
std::string device_of(const std::vector<at::Tensor>& tensors);

// Lets a call be made again and again, and leaves all within reach as its first call left it. Made before the first
// call. Within reach are the model's parameters and buffers, of TorchScript all attributes, the arguments, their
// gradients, and the ambient state; no other members of a C++ module.
class Rewind {
 public:
  Rewind(const Model& model, Reach inputs);

  // Gives a further call the containers and random numbers that the first one got.
  void before_call() const;
  // Begins after the first call: what is called in `further` is undone at its end, also when it throws.
  void undoing(const std::function<void()>& further);
  // How many tensors only further calls wrote to, so that they could not be put back.
  std::int64_t lost() const { return lost_; }

 private:
  std::vector<KeptTensor> kept(const std::vector<at::Tensor>& tensors) const;

  const Model& model_;
  Reach inputs_;
  observe::ScriptValues input_values_;
  AmbientState ambient_;
  std::vector<at::Tensor> held_;  // so that no other tensor gets the address of one of these
  std::unordered_map<const void*, std::optional<std::int64_t>> versions_;
  std::int64_t lost_ = 0;
};

}  // namespace roofprof::detail
