#pragma once
// Describes the contents of tensors of special formats, which their own sizes do not show. Nothing here allocates.

#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <optional>
#include <span>

namespace roofprof::observe {

// COO and the compressed formats: values that are stored, and the bytes of the indices that say where.
struct SparseContent {
  std::int64_t values = 0;
  std::int64_t index_bytes = 0;
};

// Nested tensors of torch's strided layout: sizes of `count` components with `dims` dimensions each, one after another.
struct NestedSizes {
  std::span<const std::int64_t> sizes;
  std::int64_t count = 0;
  std::size_t dims = 0;

  std::span<const std::int64_t> of(std::int64_t component) const {
    return sizes.subspan(static_cast<std::size_t>(component) * dims, dims);
  }
};

// The tensor's sizes and strides are plain ones (dense, not symbolic): all that a cost can read of most tensors.
inline bool has_plain_strides(const at::TensorImpl& tensor) {
  return !tensor.has_symbolic_sizes_strides() && tensor.layout() == c10::kStrided && !tensor.is_nested();
}

std::optional<SparseContent> sparse_content(const at::TensorImpl& tensor);
std::optional<NestedSizes> nested_sizes(const at::TensorImpl& tensor);

}  // namespace roofprof::observe
