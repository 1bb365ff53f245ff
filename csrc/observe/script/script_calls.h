#pragma once
// Finds what the code of a TorchScript method calls: other methods, and TorchScript's own operators, which its
// interpreter calls without the dispatcher, so that no record reports them.

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <optional>
#include <vector>

namespace roofprof::observe {

// Returns whether calls of the operator can do work that no record reports: they must be counted or named, node by
// node. False for operators that dispatch their work, and for those known to do nothing with tensors. Operators that
// are unknown here count as work.
bool works_unseen(const torch::jit::Operator& op);

// Returns the node's operator if it works unseen, else null.
const torch::jit::Operator* unseen_operator(const torch::jit::Node& node);

// Returns the module behind a value, by the attributes that lead to it from `self`, whose method the graph is. `self`
// is null where the graph's first input may be anything.
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
