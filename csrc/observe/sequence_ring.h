#pragma once
// Which module ran when an autograd node was made: a ring of fixed size from a thread's sequence numbers to modules.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>

#include "core/profile_data.h"

namespace roofprof::observe {

// Written by the forward thread, read by autograd's threads. A number overwritten by a newer one is gone: the memory of
// forwards whose backward never comes stays bounded.
class SequenceRing {
 public:
  static constexpr std::uint64_t kSize = 1U << 16;

  // calloc, because pages that are never touched then cost nothing.
  SequenceRing() : slots_(static_cast<Slot*>(std::calloc(kSize, sizeof(Slot)))) {
    if (slots_ == nullptr) throw std::bad_alloc();
  }

  void assign(std::uint64_t first, std::uint64_t end, ModuleId module) {
    if (end - first > kSize) first = end - kSize;
    for (; first < end; ++first) {
      slots_.get()[first % kSize].store(pack(first, module), std::memory_order_relaxed);
    }
  }

  std::optional<ModuleId> find(std::uint64_t number) const {
    const auto slot = slots_.get()[number % kSize].load(std::memory_order_relaxed);
    if (slot == 0 || (slot >> kModuleBits) != (number & kNumberMask)) return std::nullopt;
    return static_cast<ModuleId>(slot & kModuleMask) - 1;
  }

 private:
  using Slot = std::atomic<std::uint64_t>;
  static_assert(sizeof(Slot) == sizeof(std::uint64_t) && Slot::is_always_lock_free);
  static constexpr int kModuleBits = 24;
  static constexpr std::uint64_t kModuleMask = (1U << kModuleBits) - 1;
  static constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << (64 - kModuleBits)) - 1;

  // 0 is an empty slot, so modules are stored from 1 on.
  static std::uint64_t pack(std::uint64_t number, ModuleId module) {
    return (number << kModuleBits) | static_cast<std::uint64_t>(module + 1);
  }

  struct Free {
    void operator()(Slot* slots) const { std::free(slots); }
  };
  std::unique_ptr<Slot, Free> slots_;
};

}  // namespace roofprof::observe
