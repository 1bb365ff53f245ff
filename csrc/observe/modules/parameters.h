#pragma once
// Sizes of a module's parameters and buffers, whatever kind of module it is.

#include <ATen/core/Tensor.h>

#include <unordered_set>

#include "core/profile_data.h"
#include "observe/operators/tensor_bytes.h"

namespace roofprof::observe {

// Fills in the sizes of a subtree: each tensor once, under however many names it stands there.
template <class Parameters, class Buffers>
void add_sizes(const Parameters& parameters, const Buffers& buffers, Module& row) {
  std::unordered_set<const void*> seen;
  const auto is_first = [&](const at::Tensor& tensor) {
    return tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second;
  };
  for (const at::Tensor& parameter : parameters) {
    if (!is_first(parameter)) continue;
    row.params += parameter.numel();
    row.trainable_params += parameter.requires_grad() ? parameter.numel() : 0;
    row.param_bytes += bytes_of(parameter);
  }
  for (const at::Tensor& buffer : buffers) row.buffer_bytes += is_first(buffer) ? bytes_of(buffer) : 0;
}

}  // namespace roofprof::observe
