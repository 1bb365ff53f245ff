#pragma once
// What a RecordFunction shows of an operator's call.

#include <ATen/record_function.h>

#include "observe/operators/op_info.h"

namespace roofprof::observe {

// A boxed call (TorchScript's interpreter) reports the whole stack: what its callers had there lies below.
template <typename Value>
c10::ArrayRef<Value> top_of_stack(c10::ArrayRef<Value> stack, std::size_t count) {
  return stack.size() > count ? stack.slice(stack.size() - count) : stack;
}

inline c10::ArrayRef<const c10::IValue> inputs_of(const at::RecordFunction& fn, const OpInfo& op) {
  return top_of_stack(fn.inputs(), op.arguments.size());
}

// Of a call that ended.
inline c10::ArrayRef<c10::IValue> results_of(const at::RecordFunction& fn, const OpInfo& op) {
  return top_of_stack(c10::ArrayRef<c10::IValue>(fn.outputs()), op.result_written.size());
}

// The first result, where it is a tensor that holds something; null where not.
inline const at::Tensor* first_result(const at::RecordFunction& fn, const OpInfo& op) {
  const auto results = results_of(fn, op);
  if (results.empty() || !results[0].isTensor() || !results[0].toTensor().defined()) return nullptr;
  return &results[0].toTensor();
}

}  // namespace roofprof::observe
