#pragma once
// Sums the sizes of a module's parameters and buffers, and knows which module owns a parameter.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/profile.h"
#include "observe/operators/op_info.h"

namespace roofprof::observe {

// The tensors that a module itself holds.
struct OwnTensors {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
};

// Sums the sizes of what the modules of a tree hold, for each with all below it. A tensor counts once in a subtree,
// wherever and under however many names it stands there, and as a parameter if it is one anywhere in it.
class SubtreeSizes {
 public:
  // Adds what the module at `place` itself holds, one place after the other; undefined tensors are passed over. The
  // tensors must live until the sums are asked for, because their addresses identify them.
  void add(ModuleId place, const OwnTensors& tensors);
  // Adds a tensor of which several copies exist: they have one `identity`.
  void add_copy(ModuleId place, const at::Tensor& parameter, std::uint64_t identity);

  // Adds the sums to the rows, whose order is that of a walk: each subtree stands together, after its module.
  void write_to(std::vector<Module>& modules) const;

 private:
  struct Held {
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
    bool trainable = false;
    std::vector<ModuleId> as_parameter;
    std::vector<ModuleId> as_buffer;
  };
  Held& held_at(std::uint64_t identity, const at::Tensor& tensor);

  std::unordered_map<std::uint64_t, Held> held_;
};

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
