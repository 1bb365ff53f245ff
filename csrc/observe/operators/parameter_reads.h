#pragma once
// Finds the modules whose own parameters ops read. A module that was not called may still have done its work, where
// other modules use its parameters (the output projection of nn.MultiheadAttention).

#include <c10/core/TensorImpl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/profile.h"

namespace roofprof::observe {

// Filled before a pass; then any thread may see().
class ParameterReads {
 public:
  explicit ParameterReads(const std::vector<std::pair<const at::TensorImpl*, ModuleId>>& parameters);

  // Runs for every tensor of every op of the counting pass.
  void see(const at::TensorImpl* tensor) {
    for (auto slot = slot_of(tensor);; slot = (slot + 1) & mask_) {
      if (slots_[slot].tensor == nullptr) return;
      if (slots_[slot].tensor != tensor) continue;
      // Not written again: threads share the line.
      auto& read = slots_[slot].read;
      if (!read.load(std::memory_order_relaxed)) read.store(true, std::memory_order_relaxed);
      return;
    }
  }
  // Returns the modules that registered a parameter that was read; all of them where several share it.
  std::vector<ModuleId> owners_of_read() const;

 private:
  struct Slot {
    const at::TensorImpl* tensor = nullptr;
    std::atomic<bool> read{false};
  };

  std::size_t slot_of(const at::TensorImpl* tensor) const {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor);
    return static_cast<std::size_t>((address >> 5) * 0x9E3779B97F4A7C15ULL >> 32) & mask_;
  }
  std::size_t find(const at::TensorImpl* tensor) const;

  std::size_t mask_ = 0;
  std::vector<Slot> slots_;  // open addressing, at most half full
  std::vector<std::pair<const at::TensorImpl*, ModuleId>> parameters_;
};

}  // namespace roofprof::observe
