#include "observe/memory/storage_watch.h"

namespace roofprof::observe {

void StorageWatch::was_read(const WeakStorage& storage) {
  const auto* impl = storage._unsafe_get_target();
  if (made_.find(impl) == made_.end()) before_.try_emplace(impl, storage);
}

void StorageWatch::was_given(const WeakStorage& weak) {
  const auto* impl = weak._unsafe_get_target();
  if (before_.find(impl) != before_.end()) return;
  const auto storage = weak.lock();
  if (!storage) return;  // made and dropped inside of the op
  const auto* block = storage->_mutable_data_ptr_no_checks().get_context();
  const auto size = storage->sym_nbytes().maybe_as_int();
  if (!size || (block == nullptr && *size > 0)) unknown_ = true;
  if (!size || block == nullptr) return;
  devices_.insert(storage->device().str());
  auto& made = made_.try_emplace(impl, Made{weak, nullptr}).first->second;
  if (made.block == block) {
    ledger_.resized(block, *size);
    return;
  }
  if (made.block != nullptr) ledger_.freed(made.block);  // it has got other memory
  made.block = block;
  ledger_.allocated(block, *size);
}

void StorageWatch::look() {
  for (auto made = made_.begin(); made != made_.end();) {
    if (!made->second.storage.expired()) {
      ++made;
      continue;
    }
    ledger_.freed(made->second.block);
    made = made_.erase(made);
  }
}

}  // namespace roofprof::observe
