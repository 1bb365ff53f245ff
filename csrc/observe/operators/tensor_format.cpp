#include "observe/operators/tensor_format.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>
#include <ATen/native/quantized/PackedParams.h>
#include <ATen/native/quantized/cpu/EmbeddingPackedParams.h>
#include <ATen/record_function.h>

#include <atomic>
#include <cstring>
#include <string>

namespace roofprof::observe {

DType dtype_of(c10::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case c10::ScalarType::Double:
      return DType::fp64;
    case c10::ScalarType::Float:
      return DType::fp32;
    case c10::ScalarType::Half:
      return DType::fp16;
    case c10::ScalarType::BFloat16:
      return DType::bf16;
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e4m3fnuz:
    case c10::ScalarType::Float8_e5m2:
    case c10::ScalarType::Float8_e5m2fnuz:
    case c10::ScalarType::Float8_e8m0fnu:
      return DType::fp8;
    case c10::ScalarType::Float4_e2m1fn_x2:
      return DType::fp4;
    case c10::ScalarType::Long:
    case c10::ScalarType::UInt64:
      return DType::int64;
    case c10::ScalarType::Int:
    case c10::ScalarType::UInt32:
    case c10::ScalarType::QInt32:
      return DType::int32;
    case c10::ScalarType::Short:
    case c10::ScalarType::UInt16:
      return DType::int16;
    case c10::ScalarType::Char:
    case c10::ScalarType::QInt8:
      return DType::int8;
    case c10::ScalarType::Byte:
    case c10::ScalarType::QUInt8:
      return DType::uint8;
    case c10::ScalarType::Int4:
    case c10::ScalarType::UInt4:
    case c10::ScalarType::QUInt4x2:
      return DType::int4;
    case c10::ScalarType::Bool:
      return DType::boolean;
    default:
      return DType::other;
  }
}

namespace {

std::atomic<HintReader> hint_reader{nullptr};

}  // namespace

std::optional<std::int64_t> known_value(const c10::SymInt& size) {
  if (const auto value = size.maybe_as_int()) return value;
  const HintReader hint_of = hint_reader.load(std::memory_order_acquire);
  return hint_of == nullptr ? std::nullopt : hint_of(size);
}

void set_hint_reader(HintReader reader) { hint_reader.store(reader, std::memory_order_release); }

namespace {

// Wrappers (fake tensors) have the layout without being of the class that goes with it.
template <typename Impl>
const Impl* as(const at::TensorImpl& tensor) {
  return dynamic_cast<const Impl*>(&tensor);
}

}  // namespace

std::optional<std::int64_t> last_value(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
  const at::TensorImpl& tensor = *value.toTensor().unsafeGetTensorImpl();
  const auto keys = tensor.key_set();
  const bool is_plain = keys.has(c10::DispatchKey::CPU) && !keys.has(c10::DispatchKey::Python) &&
                        has_plain_strides(tensor) && tensor.has_storage() && tensor.storage().data() != nullptr;
  if (!is_plain || tensor.dim() != 1 || tensor.numel() == 0) return std::nullopt;
  const auto last = tensor.storage_offset() + (tensor.numel() - 1) * tensor.strides()[0];
  const auto at_last = [&]<typename T>(T /*type*/) {
    T number = 0;
    const auto* begin = static_cast<const char*>(tensor.storage().data());
    std::memcpy(&number, begin + last * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return std::int64_t{number};
  };
  const auto type = c10::typeMetaToScalarType(tensor.dtype());
  if (type == c10::ScalarType::Int) return at_last(std::int32_t{});
  if (type == c10::ScalarType::Long) return at_last(std::int64_t{});
  return std::nullopt;
}

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

namespace {

template <typename Packed>
bool append_unpacked(torch::jit::CustomClassHolder& holder, std::vector<at::Tensor>& tensors) {
  auto* packed = dynamic_cast<Packed*>(&holder);
  if (packed == nullptr) return false;
  auto [weight, bias] = packed->unpack();
  tensors.push_back(std::move(weight));
  if (bias && bias->defined()) tensors.push_back(*bias);
  return true;
}

bool append_table(torch::jit::CustomClassHolder& holder, std::vector<at::Tensor>& tensors) {
  auto* packed = dynamic_cast<EmbeddingPackedParamsBase*>(&holder);
  if (packed == nullptr) return false;
  tensors.push_back(packed->unpack());
  return true;
}

}  // namespace

bool is_packed_weight(const c10::Type& type) {
  if (type.kind() != c10::TypeKind::ClassType) return false;
  const std::string name = type.str();
  return name.ends_with(".LinearPackedParamsBase") || name.ends_with(".Conv2dPackedParamsBase") ||
         name.ends_with(".Conv3dPackedParamsBase") || name.ends_with(".EmbeddingPackedParamsBase");
}

std::uint64_t identity_of_packed(const c10::IValue& value) {
  return value.isObject() ? reinterpret_cast<std::uintptr_t>(value.toObjectRef().getSlot(0).toCapsule().get()) : 0;
}

std::vector<at::Tensor> unpacked(const c10::IValue& value) {
  std::vector<at::Tensor> tensors;
  if (!value.isObject()) return tensors;
  const at::RecordFunctionGuard unobserved(/*is_enabled=*/false);
  const at::NoGradGuard no_grad;
  const auto holder = value.toObjectRef().getSlot(0).toCapsule();
  if (!append_unpacked<LinearPackedParamsBase>(*holder, tensors) &&
      !append_unpacked<ConvPackedParamsBase<2>>(*holder, tensors) &&
      !append_unpacked<ConvPackedParamsBase<3>>(*holder, tensors) && !append_table(*holder, tensors)) {
    throw InvalidArgument("a packed weight of an unknown kind: its sizes cannot be read");
  }
  return tensors;
}

}  // namespace roofprof::observe
