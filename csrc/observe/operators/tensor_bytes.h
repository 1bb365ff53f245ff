#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace roofprof::observe {

// Of a tensor whose sizes are plain numbers: its elements, as if each had memory of its own.
inline std::int64_t bytes_of(const at::Tensor& tensor) {
  // Two elements of four bits share a byte, which their size does not say.
  if (tensor.scalar_type() == at::kQUInt4x2) return (tensor.numel() + 1) / 2;
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

}  // namespace roofprof::observe
