#pragma once
// Finds what the code of a TorchScript method calls.

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <vector>

namespace roofprof::observe {

// The module behind a value, by the attributes that lead to it from `self`, whose method the graph is; null where the
// graph's first input may be anything.
std::optional<torch::jit::Module> module_behind(const torch::jit::Value* value, const torch::jit::Graph& graph,
                                                const torch::jit::Module* self);

// Returns the function that the node calls; null where it calls none, or one without code. A call through an interface
// is a call of the module that is there.
torch::jit::GraphFunction* function_called(torch::jit::Node& node, const torch::jit::Graph& graph,
                                           const torch::jit::Module* self);

// Nodes of one kind that work without a record, in one module's code.
struct UnseenNodes {
  const void* module = nullptr;  // the object whose forward has them; null: the code that called the method
  std::string op;                // "prim::mkldnn_convolution"
  std::int64_t count = 0;        // in the code: each branch and each loop's body once
};

// Returns the unseen nodes of the method and of all code that it calls.
std::vector<UnseenNodes> unseen_nodes(const torch::jit::Module& module, const torch::jit::GraphFunction& method);

}  // namespace roofprof::observe
