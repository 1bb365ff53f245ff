#pragma once
// Reads what tensors of every format say of themselves without their data: element types, symbolic sizes, bytes, the
// stored parts of sparse and nested tensors, packed weights.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/core/SymInt.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "roofprof/dtype.h"

namespace roofprof::observe {

// Returns the dtype in which work on tensors of this type is counted; for a complex type, that of its component.
DType dtype_of(c10::ScalarType type);

// Returns the value of a symbolic size (FakeTensor with a ShapeEnv) in this run, and adds no guard. Empty if the size
// has none: it is unbacked, or the ragged size of a jagged nested tensor.
std::optional<std::int64_t> known_value(const c10::SymInt& size);

// Sets the function that asks a symbolic size of Python's for its hint; the room that knows Python calls this. Before
// that, symbolic sizes have no value.
using HintReader = std::optional<std::int64_t> (*)(const c10::SymInt& size);
void set_hint_reader(HintReader reader);

// Returns the bytes of a tensor whose sizes are plain numbers: those of its elements, as if no two shared memory.
inline std::int64_t bytes_of(const at::Tensor& tensor) {
  // Two elements of four bits share a byte, which their size does not say.
  if (tensor.scalar_type() == at::kQUInt4x2) return (tensor.numel() + 1) / 2;
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

// ---- contents of special formats, which the tensor's own sizes do not show; nothing here allocates

// The number of stored values of a COO or compressed tensor, and the bytes of the indices that say where they are.
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

// Returns whether sizes and strides are plain ones (dense, not symbolic). For most tensors a cost reads nothing else.
[[gnu::always_inline]] inline bool has_plain_strides(const at::TensorImpl& tensor) {
  return !tensor.has_symbolic_sizes_strides() && tensor.layout() == c10::kStrided && !tensor.is_nested();
}

// Returns the last of a list of integers in the CPU's memory; nothing for another value, for a tensor without its own
// data (fake, functorch's), and for one on a device, since reading it would wait for the device.
std::optional<std::int64_t> last_value(const c10::IValue& value);

std::optional<SparseContent> sparse_content(const at::TensorImpl& tensor);
std::optional<NestedSizes> nested_sizes(const at::TensorImpl& tensor);

// ---- weights of quantized layers that are passed as an object, packed for the processor, and not as a tensor

// Returns whether an argument of this type is a packed weight.
bool is_packed_weight(const c10::Type& type);

// Returns a number that differs between packed weights that live at the same time; 0 for None.
std::uint64_t identity_of_packed(const c10::IValue& value);

// Returns the weight and, where there is one, the bias. Unpacking copies, so do it once per bucket or module.
std::vector<at::Tensor> unpacked(const c10::IValue& value);

}  // namespace roofprof::observe
