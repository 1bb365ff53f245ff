#pragma once
// The blocks of memory (observe/memory/allocations.h) that a call's outputs are in.

#include <ATen/core/Tensor.h>

#include <vector>

#include "observe/operators/dispatch_path.h"

namespace roofprof::observe {

// Adds the block of that output. False where it is not known: a sparse tensor has no storage, and a subclass keeps its
// tensors elsewhere.
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

}  // namespace roofprof::observe
