#pragma once
// What calls of a TorchScript model may leave changed in its modules, beside its tensors' values.

#include <torch/csrc/jit/api/module.h>

#include <vector>

namespace roofprof::observe {

// The attributes of a module and of all below it as they are now: numbers, tensors by identity, containers by content.
class KeptAttributes {
 public:
  explicit KeptAttributes(const torch::jit::Module& model);
  // Puts back what is something else by now.
  void restore() const;

 private:
  struct Slot {
    c10::intrusive_ptr<c10::ivalue::Object> owner;
    std::size_t index = 0;
    c10::IValue value;
    c10::IValue content;  // of a list or dict; none for others
  };
  std::vector<Slot> slots_;
};

// A list or dict with the same elements; anything else is itself.
c10::IValue shallow_copy(const c10::IValue& value);

}  // namespace roofprof::observe
