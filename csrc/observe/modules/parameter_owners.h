#pragma once
// Knows which module owns a parameter. Where a module's calls are not seen, the ops that take its parameters are its
// own.

#include <ATen/core/ivalue.h>

#include <unordered_map>

#include "core/profile_data.h"
#include "observe/operators/op_info.h"

namespace roofprof::observe {

class ParameterOwners {
 public:
  // `module` is null where the owner's calls are seen. A tensor that several modules registered has no owner.
  void add_parameter(const at::Tensor& tensor, const void* module) { add(tensor, {module, true}); }
  void add_buffer(const at::Tensor& tensor, const void* module) { add(tensor, {module, false}); }
  // Returns true where no op can have an owner.
  bool empty() const;

  // The only module that registered tensors among these inputs, views of parameters included. Null if there is none, if
  // there are several, or if the op writes a parameter, as optimizers and initialisations do.
  const void* owner_of(const OpInfo& op, c10::ArrayRef<const c10::IValue> inputs) const;

 private:
  struct Owner {
    const void* module = nullptr;
    bool is_parameter = false;
  };
  void add(const at::Tensor& tensor, Owner owner);
  const Owner* find(const at::Tensor& tensor) const;

  std::unordered_map<const void*, Owner> owners_;  // by TensorImpl
};

}  // namespace roofprof::observe
