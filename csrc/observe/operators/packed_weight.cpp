#include "observe/operators/packed_weight.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>
#include <ATen/native/quantized/PackedParams.h>
#include <ATen/native/quantized/cpu/EmbeddingPackedParams.h>
#include <ATen/record_function.h>

#include <stdexcept>
#include <string>

namespace roofprof::observe {
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
    throw std::invalid_argument("a packed weight of an unknown kind: its sizes cannot be read");
  }
  return tensors;
}

}  // namespace roofprof::observe
