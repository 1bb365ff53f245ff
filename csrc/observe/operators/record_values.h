#pragma once
// What a RecordFunction shows of an operator's call.

#include <ATen/core/Tensor.h>
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

// The tensor that a value is; null where it is none, or an undefined one.
inline const at::TensorImpl* tensor_in(const c10::IValue& value) {
  if (!value.isTensor()) return nullptr;
  const at::TensorImpl* impl = value.unsafeToTensorImpl();
  return impl == c10::UndefinedTensorImpl::singleton() ? nullptr : impl;
}

// Calls visit(tensor impl, position in the list) for each defined tensor of a slot; what is None in a list has a
// position there too.
template <typename Visit>
void for_each_tensor(const c10::IValue& value, Visit&& visit, std::size_t position = 0) {
  if (const auto* tensor = tensor_in(value)) {
    visit(*tensor, position);
  } else if (value.isList()) {
    position = 0;
    for (const c10::IValue& item : value.toListRef()) for_each_tensor(item, visit, position++);
  }
}

// The first result, where it is a tensor that holds something; null where not.
inline const at::Tensor* first_result(const at::RecordFunction& fn, const OpInfo& op) {
  const auto results = results_of(fn, op);
  if (results.empty() || !results[0].isTensor() || !results[0].toTensor().defined()) return nullptr;
  return &results[0].toTensor();
}

}  // namespace roofprof::observe
