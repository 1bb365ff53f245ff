#pragma once
// Remembers the contents of TorchScript's values at one moment, at any depth, and can put them back later into the same
// containers.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace roofprof::observe {

// Lists, dicts, tuples and the attributes of objects (modules too) are followed.
class ScriptValues {
 public:
  explicit ScriptValues(std::vector<c10::IValue> roots);

  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  // Puts everything back into containers that hold something else now.
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
