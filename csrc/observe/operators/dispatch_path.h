#pragma once
// Who stands between an operator's call and the kernel that does its work.

#include <c10/core/DispatchKeySet.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/autograd/variable.h>

#include "observe/operators/op_info.h"
#include "observe/operators/parameter_reads.h"
#include "observe/operators/record_values.h"

namespace roofprof::observe {

// A FakeTensor is dispatched to some device's kernels, while its memory is nowhere.
inline bool is_fake(const at::TensorImpl& tensor) {
  return tensor.has_storage() && tensor.storage().device_type() == c10::kMeta &&
         !tensor.key_set().has_backend(c10::BackendComponent::MetaBit);
}

// Returns whether the results hold no data. An operator that takes no tensor shows this in its results alone.
inline bool hold_no_data(c10::ArrayRef<c10::IValue> results) {
  if (results.size() != 1) return false;
  const auto* tensor = tensor_in(results[0]);
  return tensor != nullptr && (tensor->is_meta() || is_fake(*tensor));
}

inline bool has_tangent(const at::TensorImpl& tensor) {
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(tensor.autograd_meta());
  return meta != nullptr && meta->fw_grad_ != nullptr && !meta->fw_grad_->empty();
}

inline constexpr c10::DispatchKeySet kFunctorchWrappers({c10::DispatchKey::FuncTorchBatched,
                                                         c10::DispatchKey::FuncTorchGradWrapper});

// Sees the tensors of one call, and tells its dispatch_path.
class DispatchPathReader {
 public:
  // `reads` records every tensor that is seen; null: nothing is recorded.
  explicit DispatchPathReader(ParameterReads* reads) : reads_(reads) {}

  // Runs for every tensor of every op.
  void see(const at::TensorImpl& tensor) {
    if (reads_ != nullptr) reads_->see(&tensor);
    const auto keys = tensor.key_set();
    keys_ = keys_ | keys;
    if (keys.has(c10::DispatchKey::Python)) (is_fake(tensor) ? path_.fake : subclass_) = true;
    if (keys.has_backend(c10::BackendComponent::MetaBit)) path_.fake = true;
    // Wrappers of torch.func show the device of what they hold, not its backend's key.
    if (keys.has_any(kFunctorchWrappers) && tensor.is_meta()) path_.fake = true;
    path_.dual = path_.dual || has_tangent(tensor);
  }

  // Once, when all are seen.
  DispatchPath dispatch_path(const OpInfo& info);

 private:
  void read_modes();

  ParameterReads* reads_;
  c10::DispatchKeySet keys_;
  bool subclass_ = false;  // other than fake ones
  bool modes_ = false;     // other than that of fake tensors
  DispatchPath path_;
};

}  // namespace roofprof::observe
