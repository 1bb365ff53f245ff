#pragma once
// Turns an operator's arguments into the key of its bucket, into the path that its call takes to a kernel, and, once
// per bucket, into the OpCall that its cost reads.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <string>
#include <vector>

#include "observe/operators/op_info.h"
#include "observe/operators/operands.h"
#include "observe/operators/parameter_reads.h"
#include "roofprof/op_call.h"

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

// Returns whether the tensor may hold nothing, or stand for other tensors.
inline bool may_stand_in(c10::DispatchKeySet keys) {
  constexpr auto kStandIns = kFunctorchWrappers | c10::DispatchKeySet(c10::DispatchKey::Python);
  return keys.has_any(kStandIns) || keys.has_backend(c10::BackendComponent::MetaBit);
}

// Sees the tensors of one call, and finds out who stands between the call and the kernel that does its work.
class DispatchPathReader {
 public:
  // `reads` records every tensor that is seen; null: nothing is recorded.
  explicit DispatchPathReader(ParameterReads* reads) : reads_(reads) {}

  // Runs for every tensor of every op.
  [[gnu::always_inline]] void see(const at::TensorImpl& tensor) {
    if (reads_ != nullptr) reads_->see(&tensor);
    const auto keys = tensor.key_set();
    keys_ = keys_ | keys;
    if (may_stand_in(keys)) [[unlikely]]
      see_stand_in(tensor);
    path_.dual = path_.dual || has_tangent(tensor);
  }

  // Must be called once, after all tensors were seen.
  DispatchPath dispatch_path(const OpInfo& info);

 private:
  void see_stand_in(const at::TensorImpl& tensor);
  void read_modes();

  ParameterReads* reads_;
  c10::DispatchKeySet keys_;
  bool subclass_ = false;  // other than fake ones
  bool modes_ = false;     // other than that of fake tensors
  DispatchPath path_;
};

// Adds the block of memory (observe/memory/allocations.h) that the output is in. Returns false where the block is not
// known: a sparse tensor has no storage, and a subclass keeps its tensors elsewhere.
inline bool add_output_block(const at::Tensor& tensor, std::vector<const void*>& blocks) {
  if (!tensor.defined()) return true;
  const auto* impl = tensor.unsafeGetTensorImpl();
  const auto& storage = impl->unsafe_storage();  // storage() may throw
  const bool subclass = impl->key_set().has(c10::DispatchKey::Python) && !is_fake(*impl);
  if (subclass || !storage) return false;
  const auto* block = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get_context();
  if (block != nullptr) blocks.push_back(block);
  return block != nullptr || tensor.numel() == 0;
}

struct Signature {
  // Hash of what the op's cost reads of its inputs: dtypes, sizes, expanded dims, repeated views, declared scalars.
  std::uint64_t hash = 0;
  DispatchPath dispatch_path;
  bool tells_results = false;  // the results follow from them
};

// Returns the signature of the inputs. It runs for every op: no allocation for strided tensors. `reads` may be null.
Signature signature_of(const OpInfo& info, c10::ArrayRef<const c10::IValue> inputs, ParameterReads* reads);
// Returns the dispatch path alone, for ops whose inputs need no signature.
DispatchPath dispatch_path_of(const OpInfo& info, c10::ArrayRef<const c10::IValue> inputs, ParameterReads* reads);
// Returns the inputs' hash with the results mixed in, which show what inputs do not (strides, output sizes, values).
std::uint64_t with_results(std::uint64_t inputs_hash, c10::ArrayRef<c10::IValue> outputs);
// Returns the same where the results follow: mixed in is torch's default dtype, which results of integers may have.
std::uint64_t without_results(std::uint64_t inputs_hash);

// Describe the inputs and results of a call; they run once per bucket.
ops::OpCall describe_inputs(const OpInfo& info, c10::ArrayRef<const c10::IValue> inputs);
void describe_results(const OpInfo& info, c10::ArrayRef<c10::IValue> outputs, ops::OpCall& call);

// Returns the sizes of the tensors that the call takes.
OpShapes shapes_of(const ops::OpCall& call);

}  // namespace roofprof::observe
