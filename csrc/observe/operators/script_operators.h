#pragma once
// Finds TorchScript's own operators: its interpreter calls them without the dispatcher, so no record reports them.

#include <torch/csrc/jit/runtime/operator.h>

namespace roofprof::observe {

// Returns whether calls of the operator can do work that no record reports: they must be counted or named, node by
// node. False for operators that dispatch their work, and for those known to do nothing with tensors. Operators that
// are unknown here count as work.
bool works_unseen(const torch::jit::Operator& op);

// The node's operator, where it works unseen; null for all others.
const torch::jit::Operator* unseen_operator(const torch::jit::Node& node);

}  // namespace roofprof::observe
