#pragma once
// Reads the inputs and results of an operator's call from its RecordFunction, and the memory that they are in.

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <vector>

#include "observe/operators/op_info.h"
#include "observe/reuse/reuse_log.h"

namespace roofprof::observe {

// A boxed call (TorchScript's interpreter) reports the whole stack, so the values of its callers lie below its own.
template <typename Value>
[[gnu::always_inline]] inline c10::ArrayRef<Value> top_of_stack(c10::ArrayRef<Value> stack, std::size_t count) {
  return stack.size() > count ? stack.slice(stack.size() - count) : stack;
}

[[gnu::always_inline]] inline c10::ArrayRef<const c10::IValue> inputs_of(const at::RecordFunction& fn,
                                                                         const OpInfo& op) {
  return top_of_stack(fn.inputs(), op.arguments.size());
}

// Returns the results of a call that ended.
[[gnu::always_inline]] inline c10::ArrayRef<c10::IValue> results_of(const at::RecordFunction& fn, const OpInfo& op) {
  return top_of_stack(c10::ArrayRef<c10::IValue>(fn.outputs()), op.result_written.size());
}

// Returns the tensor that a value is; null where it is not a tensor, or an undefined one.
[[gnu::always_inline]] inline const at::TensorImpl* tensor_in(const c10::IValue& value) {
  if (!value.isTensor()) return nullptr;
  const at::TensorImpl* impl = value.unsafeToTensorImpl();
  return impl == c10::UndefinedTensorImpl::singleton() ? nullptr : impl;
}

// Calls visit(value that is a defined tensor, position in the list) for each tensor in a list, a tuple or a dict, which
// counts as the list of its values, in its order. A None takes a position, too.
template <typename Visit>
void for_each_tensor_inside(const c10::IValue& value, const Visit& visit) {
  std::size_t position = 0;
  const auto look_at = [&](const c10::IValue& item) {
    if (tensor_in(item) != nullptr) {
      visit(item, position);
    } else {
      for_each_tensor_inside(item, visit);
    }
    ++position;
  };
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) look_at(item);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) look_at(item.value());
  } else if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) look_at(item);
  }
}

// Does the same for each tensor of a slot, which is a tensor or has tensors inside.
template <typename Visit>
[[gnu::always_inline]] inline void for_each_tensor_value(const c10::IValue& value, const Visit& visit) {
  if (!value.isTensor()) {
    for_each_tensor_inside(value, visit);
  } else if (tensor_in(value) != nullptr) {
    visit(value, std::size_t{0});
  }
}

// Calls visit(tensor impl, position) for each of these values.
template <typename Visit>
[[gnu::always_inline]] inline void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  for_each_tensor_value(
      value, [&](const c10::IValue& tensor, std::size_t position) { visit(*tensor.unsafeToTensorImpl(), position); });
}

// Returns the first result if it is a defined tensor, else null.
inline const at::Tensor* first_result(const at::RecordFunction& fn, const OpInfo& op) {
  const auto results = results_of(fn, op);
  if (results.empty() || !results[0].isTensor() || !results[0].toTensor().defined()) return nullptr;
  return &results[0].toTensor();
}

// Adds the tensors that an op takes (when it begins) and those that it made (when it ended). Leaves out those whose
// memory strides do not describe (sparse, nested and packed ones).
void add_inputs(const OpInfo& info, const at::RecordFunction& fn, std::vector<Operand>& operands);
void add_results(const OpInfo& info, const at::RecordFunction& fn, std::vector<Operand>& operands);

}  // namespace roofprof::observe
