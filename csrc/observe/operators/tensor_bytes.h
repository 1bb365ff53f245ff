#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace roofprof::observe {

// Returns the bytes of a tensor whose sizes are plain numbers: those of its elements, as if no two shared memory.
inline std::int64_t bytes_of(const at::Tensor& tensor) {
  // Two elements of four bits share a byte, which their size does not say.
  if (tensor.scalar_type() == at::kQUInt4x2) return (tensor.numel() + 1) / 2;
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

}  // namespace roofprof::observe
