#pragma once
// Whose parameters an op takes: that tells the module of an op where the module's own calls are not seen.

#include <ATen/core/ivalue.h>

#include <optional>
#include <unordered_map>

#include "core/profile_data.h"
#include "observe/op_info.h"

namespace roofprof::observe {

struct ThreadState;

class ParameterOwners {
 public:
  // `module` is null where the owner's calls are seen. Of a tensor that several modules registered none is the owner.
  void add_parameter(const at::Tensor& tensor, const void* module) { add(tensor, {module, true}); }
  void add_buffer(const at::Tensor& tensor, const void* module) { add(tensor, {module, false}); }
  // Nothing can be found here.
  bool empty() const;

  // The only module that registered tensors among these inputs, views of parameters included. Null where there is none,
  // where there are several, and where the op writes a parameter: that is an optimizer's or an initialisation's.
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

// The place of the module whose parameters an op takes that starts now, where the session asks for that; empty where
// the op belongs to the module that runs.
std::optional<ModuleId> owner_of_op(const ThreadState& state, const OpInfo& op,
                                    c10::ArrayRef<const c10::IValue> inputs);

}  // namespace roofprof::observe
