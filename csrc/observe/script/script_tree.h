#pragma once
// The tree of a TorchScript model, and the values that it holds.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "observe/modules/module_index.h"

namespace torch::jit {
struct Module;
}

namespace roofprof::observe {

// Returns the model's tree. Its objects are those that the interpreter passes to the modules' methods
// (c10::ivalue::Object).
ModelTree tree_of(const torch::jit::Module& model);

// Returns whether both are made from one module: scripting a module under two names gives two objects that share all
// tensors.
bool is_same_module(const torch::jit::Module& a, const torch::jit::Module& b);

// Returns the packed weights that the module holds, and, with `recurse`, those below it, each once.
std::vector<c10::IValue> packed_weights(const torch::jit::Module& module, bool recurse = true);

// Returns the note about a frozen module, none for others: its modules are gone, and its parameters are constants.
std::optional<Note> frozen_note(const torch::jit::Module& model, const std::string& path);

// Remembers the contents of TorchScript's values at one moment, and can put them back later into the same containers.
// It follows lists, dicts, tuples and the attributes of objects, modules included.
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
