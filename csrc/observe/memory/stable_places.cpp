#include "observe/memory/stable_places.h"

#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <utility>

namespace roofprof::observe {
namespace {

std::int64_t storage_bytes(const c10::StorageImpl& storage) { return storage.sym_nbytes().maybe_as_int().value_or(0); }

}  // namespace

void StablePlaces::place(std::span<Operand> operands) {
  Held held;  // released after the lock: the last reference to a storage may run code of others
  const std::lock_guard guard(mutex_);
  ++op_;
  for (auto& operand : operands) {
    if (operand.device == Operand::kNowhere || operand.storage == nullptr) continue;
    const auto length = static_cast<std::int64_t>(operand.memory.end - operand.origin);
    auto& storage = placed(operand, length, held);
    const auto begin = storage.begin;
    operand.memory.begin = begin + (operand.memory.begin - operand.origin);
    operand.memory.end = begin + (operand.memory.end - operand.origin);
    operand.origin = begin;
    if (std::exchange(storage.last_op, op_) == op_) continue;
    recent_.push_back({op_, storage.number, operand.storage});
    if (recent_.size() > kMostRecent) recent_.pop_front();
  }
}

// `bytes`: that the operand needs of its storage, which may be shorter.
StablePlaces::Placed& StablePlaces::placed(const Operand& operand, std::int64_t bytes, Held& held) {
  const auto known = known_.find(operand.storage);
  if (known != known_.end()) {
    auto& storage = known->second;
    if (storage.bytes == 0 || bytes <= storage.bytes) return storage;
    free_place(storage);
    take_place(storage, bytes);
    return storage;
  }
  drop_recent();
  if (known_.size() >= drop_at_) drop_all();
  auto* impl = static_cast<c10::StorageImpl*>(operand.storage);
  Placed storage{.storage = WeakStorage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl)),
                 .device = operand.device,
                 .number = ++last_number_,
                 .origin = operand.origin};
  if (const auto* same = same_memory(operand, held)) {
    storage.begin = same->begin + (operand.origin - same->origin);
  } else {
    take_place(storage, std::max(storage_bytes(*impl), bytes));
  }
  by_origin_[{operand.device, operand.origin}] = operand.storage;
  return known_.emplace(operand.storage, std::move(storage)).first->second;
}

// Returns the storage that lives where this one begins; null where there is none.
const StablePlaces::Placed* StablePlaces::same_memory(const Operand& operand, Held& held) {
  for (auto at = by_origin_.upper_bound({operand.device, operand.origin}); at != by_origin_.begin();) {
    --at;
    const auto found = known_.find(at->second);
    auto impl = found == known_.end() ? c10::intrusive_ptr<c10::StorageImpl>() : found->second.storage.lock();
    // Another storage may have the entry's, once that one is forgotten; and its memory may have moved.
    const bool is_there =
        impl && found->second.origin == at->first.second &&
        reinterpret_cast<std::uintptr_t>(impl->_mutable_data_ptr_no_checks().get()) == found->second.origin;
    if (!is_there) {
      if (impl) held.push_back(std::move(impl));
      at = by_origin_.erase(at);
      continue;
    }
    const auto& other = found->second;
    const auto held_bytes = storage_bytes(*impl);
    held.push_back(std::move(impl));
    const auto offset = static_cast<std::int64_t>(operand.origin - other.origin);
    const bool inside = other.device == operand.device && offset < held_bytes;
    return inside ? &other : nullptr;
  }
  return nullptr;
}

void StablePlaces::take_place(Placed& storage, std::int64_t bytes) {
  bytes = (std::max<std::int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  const auto fits = free_.lower_bound({storage.device, bytes});
  if (fits != free_.end() && fits->first.first == storage.device && fits->first.second <= 2 * bytes) {
    storage.begin = fits->second.back();
    storage.bytes = fits->first.second;
    fits->second.pop_back();
    if (fits->second.empty()) free_.erase(fits);
    return;
  }
  storage.begin = next_;
  storage.bytes = bytes;
  next_ += static_cast<std::uintptr_t>(bytes);
}

void StablePlaces::free_place(const Placed& storage) {
  if (storage.bytes > 0) free_[{storage.device, storage.bytes}].push_back(storage.begin);
}

void StablePlaces::drop_recent() {
  while (!recent_.empty() && recent_.front().op + kRecentOps < op_) recent_.pop_front();
  for (const auto& used : recent_) {
    const auto known = known_.find(used.storage);
    if (known == known_.end() || known->second.number != used.number || !known->second.storage.expired()) continue;
    free_place(known->second);
    known_.erase(known);
  }
}

void StablePlaces::drop_all() {
  std::vector<Placed> gone;
  std::erase_if(known_, [&](auto& storage) {
    if (!storage.second.storage.expired()) return false;
    gone.push_back(std::move(storage.second));
    return true;
  });
  std::ranges::sort(gone, {}, &Placed::begin);  // the table's order is by address
  for (const auto& storage : gone) free_place(storage);
  drop_at_ = std::max(2 * known_.size(), kFewest);
}

}  // namespace roofprof::observe
