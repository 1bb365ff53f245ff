#include "observe/numpy_exchange.h"

#include <algorithm>

namespace roofprof::observe {
namespace {

// A model that logs its tensors may read out many in a call.
constexpr std::size_t kMaxExchanges = 256;

}  // namespace

bool has_memory(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

MemoryRange memory_of(const at::Tensor& tensor) {
  const auto& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  const auto* begin = static_cast<const char*>(storage.data());
  return {storage.unsafeGetStorageImpl(), begin, begin + storage.nbytes()};
}

void NumpyExchange::add(Exchange exchange) {
  if (all_.size() < kMaxExchanges) all_.push_back(std::move(exchange));
}

void NumpyExchange::exported(const at::Tensor& tensor, std::size_t running_ops) {
  if (has_memory(tensor)) add({tensor.storage().getWeakStorageImpl(), memory_of(tensor), running_ops});
}

void NumpyExchange::imported(const at::Tensor& tensor, std::size_t running_ops) {
  // Memory of others cannot be resized by torch.
  if (all_.empty() || !has_memory(tensor) || tensor.numel() <= 1 || tensor.storage().resizable()) return;
  const auto memory = memory_of(tensor);
  const bool known = std::ranges::any_of(all_, [&](const Exchange& other) {
    // Freed memory may have been given to another owner.
    return other.storage && other.memory.overlaps(memory) && !other.storage->expired();
  });
  if (!known) add({std::nullopt, memory, running_ops});
}

std::vector<MemoryRange> NumpyExchange::results(std::size_t first) const {
  std::vector<MemoryRange> found;
  bool any_exported = false;
  for (std::size_t i = first; i < all_.size(); ++i) {
    if (all_[i].storage) {
      any_exported = true;
    } else if (any_exported) {
      found.push_back(all_[i].memory);
    }
  }
  return found;
}

void NumpyExchange::forget(std::size_t first) {
  if (first < all_.size()) all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(first), all_.end());
}

void NumpyExchange::forget_results(std::size_t first) {
  const auto begin = all_.begin() + static_cast<std::ptrdiff_t>(std::min(first, all_.size()));
  all_.erase(std::remove_if(begin, all_.end(), [](const Exchange& each) { return !each.storage; }), all_.end());
}

void NumpyExchange::forget_inside(std::size_t running_ops) {
  while (!all_.empty() && all_.back().running_ops > running_ops) all_.pop_back();
}

}  // namespace roofprof::observe
