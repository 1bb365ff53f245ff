#pragma once
// TorchScript's own operators: its interpreter calls them without the dispatcher, so that no record tells of them.

#include <torch/csrc/jit/runtime/operator.h>

namespace roofprof::observe {

// Whether calls of it can do work that no record tells of: they are to be counted or named, node by node. Not of
// operators that dispatch what they do, nor of those known to do nothing with tensors; whatever is new counts as work.
bool works_unseen(const torch::jit::Operator& op);

// The node's operator, where it works unseen; null for all others.
const torch::jit::Operator* unseen_operator(const torch::jit::Node& node);

}  // namespace roofprof::observe
