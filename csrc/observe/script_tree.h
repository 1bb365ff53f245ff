#pragma once
// The tree of a TorchScript model.

#include "observe/model_tree.h"

namespace torch::jit {
struct Module;
}

namespace roofprof::observe {

// Its objects are those that the interpreter hands to the modules' methods (c10::ivalue::Object).
ModelTree tree_of(const torch::jit::Module& model);

}  // namespace roofprof::observe
