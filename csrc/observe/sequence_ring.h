#pragma once
// Remembers the module in which each autograd node was made: a ring of fixed size from a thread's sequence numbers to
// modules.

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>

#include "core/pass.h"

namespace roofprof::observe {

// Maps sequence numbers to modules. The forward thread writes it, autograd's threads read it. A number overwritten by a
// newer one is gone: the memory of forwards whose backward never comes stays bounded.
class SequenceRing {
 public:
  static constexpr std::uint64_t kSize = kNodesRemembered;

  SequenceRing() : slots_(allocate()) {}

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

  // Zeros from the system, not from the heap: pages that are never touched cost nothing, and most rings touch few.
  static Slot* allocate() {
    void* memory = mmap(nullptr, kSize * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<Slot*>(memory);
  }
  struct Free {
    void operator()(Slot* slots) const { munmap(slots, kSize * sizeof(Slot)); }
  };
  std::unique_ptr<Slot, Free> slots_;
};

}  // namespace roofprof::observe
