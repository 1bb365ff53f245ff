#pragma once
// Sums the sizes of a module's parameters and buffers, and knows which module owns a parameter.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "core/profile_data.h"
#include "observe/operators/op_info.h"
#include "observe/operators/tensor_format.h"

namespace roofprof::observe {

// Adds the sizes of a subtree to `row`. A tensor counts once, even if it stands there under several names.
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

// Knows which module owns a parameter. Where a module's calls are not seen, the ops that take its parameters are its
// own.
class ParameterOwners {
 public:
  // `module` is null where the owner's calls are seen. A tensor that several modules registered has no owner.
  void add_parameter(const at::Tensor& tensor, const void* module) { add(tensor, {module, true}); }
  void add_buffer(const at::Tensor& tensor, const void* module) { add(tensor, {module, false}); }
  // Returns true where no op can have an owner.
  bool empty() const;

  // Returns the only module that registered a tensor among these inputs, views of parameters included. Null if no
  // module or several did, or if the op writes a parameter, as optimizers and initialisations do.
  const void* owner_of(const OpInfo& op, c10::ArrayRef<const c10::IValue> inputs) const;

 private:
  struct Owner {
    const void* module = nullptr;
    bool is_parameter = false;
  };
  void add(const at::Tensor& tensor, Owner owner);
  const Owner* find(const at::Tensor& tensor) const;
  // Returns false where find() gives null: that is so for most tensors.
  bool may_find(const at::TensorImpl& tensor) const {
    return may_own_.test(bit_of(&tensor)) || tensor.autograd_meta() != nullptr;
  }
  static std::size_t bit_of(const void* tensor) { return reinterpret_cast<std::uintptr_t>(tensor) / 64 % kBits; }

  static constexpr std::size_t kBits = 1 << 13;
  std::unordered_map<const void*, Owner> owners_;  // by TensorImpl
  std::bitset<kBits> may_own_;                     // a bit of each of these
};

}  // namespace roofprof::observe
