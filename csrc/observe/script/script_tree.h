#pragma once
// The tree of a TorchScript model.

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "observe/modules/model_tree.h"

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

// Returns the packed weights that the module and those below it hold, each once.
std::vector<c10::IValue> packed_weights(const torch::jit::Module& module);

// Returns the note about a frozen module, none for others: its modules are gone, and its parameters are constants.
std::optional<Note> frozen_note(const torch::jit::Module& model, const std::string& path);

}  // namespace roofprof::observe
