#pragma once
// What TorchScript's values hold at one moment, however deep: to be put back later, in the very same containers.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace roofprof::observe {

// Looked into are lists, dicts, tuples, and objects (modules too) by their attributes.
class ScriptValues {
 public:
  explicit ScriptValues(std::vector<c10::IValue> roots);

  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  // Puts everything back into the containers that hold something else by now.
  void restore() const;

 private:
  struct Container {
    c10::IValue value;
    std::vector<c10::IValue> items;  // of a dict: keys and values in turn
  };
  std::vector<Container> containers_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace roofprof::observe
