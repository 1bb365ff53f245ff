// Nested tensors (torch's strided layout): an op on one is the same op on each of its components.

#include <algorithm>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// Returns the number of components of the nested tensors; 0 where no tensor is nested, or where the numbers differ.
std::size_t common_components(const OpCall& call) {
  std::size_t count = 0;
  for (const auto* list : {&call.arguments, &call.results}) {
    for (const auto& argument : *list) {
      for (const auto& tensor : argument.tensors) {
        if (!tensor.is_nested()) continue;
        if (count != 0 && count != tensor.components.size()) return 0;
        count = tensor.components.size();
      }
    }
  }
  return count;
}

bool has_nested(const std::vector<TensorDesc>& tensors) {
  return std::ranges::any_of(tensors, [](const TensorDesc& tensor) { return tensor.is_nested(); });
}

bool makes_nested(const OpCall& call) {
  return std::ranges::any_of(call.results, [](const Argument& result) { return has_nested(result.tensors); }) ||
         std::ranges::any_of(call.arguments,
                             [](const Argument& argument) { return argument.written && has_nested(argument.tensors); });
}

void narrow(TensorDesc& tensor, std::size_t component) {
  if (tensor.is_nested()) {
    std::vector<std::int64_t> sizes = {1};
    sizes.insert(sizes.end(), tensor.components[component].begin(), tensor.components[component].end());
    tensor.sizes = std::move(sizes);
    tensor.components.clear();
  } else if (component > 0) {
    tensor.repeated = true;
  }
}

OpCall on_component(const OpCall& call, std::size_t component) {
  OpCall part = call;
  for (auto& argument : part.arguments) {
    for (auto& tensor : argument.tensors) narrow(tensor, component);
  }
  for (auto& result : part.results) {
    // A dense result (the gradient of a weight) is written once.
    if (component > 0 && !has_nested(result.tensors)) result.tensors.clear();
    for (auto& tensor : result.tensors) narrow(tensor, component);
  }
  return part;
}

// ---- CountBytes

// The template gives only sizes and layout.
void without_template_bytes(const OpCall& call, Work& work) {
  read(work, &call.tensor(std::size_t{0}));
  write_results(call, work);
}

// Counts the bytes of the part of the padded tensor that is kept.
void kept_bytes(const OpCall& call, Work& work) {
  write_results(call, work);
  work.read_bytes = work.write_bytes;
  read(work, call.find_tensor("mask"));
}

constexpr OpCost kNestedCosts[] = {
    {"aten::to_padded_tensor", no_operations, 0, nullptr, "", "components copied, padding written"},
    {"aten::_nested_tensor_from_tensor_list", no_operations, 0, nullptr, "", "components copied together"},
    {"aten::_nested_tensor_from_mask", no_operations, 0, kept_bytes, "", "the mask read, what it keeps copied"},
    {"aten::_nested_tensor_from_mask_left_aligned", no_operations, 0, kept_bytes, "", "the mask read"},
    {"aten::_nested_from_padded aten::_nested_from_padded_and_nested_example aten::_padded_dense_to_jagged_forward "
     "aten::_nested_from_padded_tensor",
     no_operations, 0, kept_bytes, "", "copied without the padding"},
    {"aten::_nested_tensor_softmax_with_shape", per_input, 5, without_template_bytes, "",
     "softmax of each padded row: 5 per element"},
    {"aten::_nested_select_backward", no_operations, 0, without_template_bytes, "", "gradient into zeros"},
    {"aten::_nested_sum_backward", no_operations, 0, without_template_bytes, "", "gradient repeated"},
    {"aten::_jagged_to_padded_dense_forward", no_operations, 0, nullptr, "", "values copied, padding written"},
    {"aten::_nested_get_values_copy", no_operations, 0, nullptr, "", "copied"},

    {"aten::_nested_tensor_size aten::_nested_tensor_strides aten::_nested_tensor_storage_offsets "
     "aten::_nested_compute_contiguous_strides_offsets aten::_nested_get_jagged_dummy aten::_nested_get_lengths "
     "aten::_nested_get_max_seqlen aten::_nested_get_min_seqlen aten::_nested_get_offsets aten::_nested_get_ragged_idx",
     no_operations, 0, no_bytes, "", "a question"},
};

}  // namespace

std::vector<OpCall> calls_on_components(const OpCall& call) {
  std::vector<OpCall> calls;
  if (!makes_nested(call)) return calls;
  const std::size_t count = common_components(call);
  for (std::size_t component = 0; component < count; ++component) calls.push_back(on_component(call, component));
  return calls;
}

std::span<const OpCost> nested_costs() { return kNestedCosts; }

}  // namespace roofprof::ops
