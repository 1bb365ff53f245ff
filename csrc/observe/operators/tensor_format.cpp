#include "observe/operators/tensor_format.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>

#include "observe/operators/tensor_bytes.h"

namespace roofprof::observe {
namespace {

// Wrappers (fake tensors) have the layout without being of the class that goes with it.
template <typename Impl>
const Impl* as(const at::TensorImpl& tensor) {
  return dynamic_cast<const Impl*>(&tensor);
}

}  // namespace

std::optional<SparseContent> sparse_content(const at::TensorImpl& tensor) {
  if (tensor.layout() == c10::kStrided) return std::nullopt;
  if (const auto* coo = as<at::SparseTensorImpl>(tensor)) {
    return SparseContent{coo->values().numel(), bytes_of(coo->indices())};
  }
  if (const auto* compressed = as<at::SparseCsrTensorImpl>(tensor)) {
    return SparseContent{compressed->values().numel(),
                         bytes_of(compressed->compressed_indices()) + bytes_of(compressed->plain_indices())};
  }
  return std::nullopt;
}

std::optional<NestedSizes> nested_sizes(const at::TensorImpl& tensor) {
  if (!tensor.is_nested()) return std::nullopt;
  const auto* nested = as<at::native::NestedTensorImpl>(tensor);
  if (nested == nullptr) return std::nullopt;
  const at::Tensor& sizes = nested->get_nested_sizes();
  if (sizes.dim() != 2) return NestedSizes{};  // no components
  const auto numel = static_cast<std::size_t>(sizes.numel());
  return NestedSizes{
      {sizes.const_data_ptr<std::int64_t>(), numel}, sizes.size(0), static_cast<std::size_t>(sizes.size(1))};
}

}  // namespace roofprof::observe
