#include "observe/operators/parameter_reads.h"

#include <bit>

namespace roofprof::observe {

ParameterReads::ParameterReads(const std::vector<std::pair<const at::TensorImpl*, ModuleId>>& parameters)
    : mask_(std::bit_ceil(2 * parameters.size() + 1) - 1), slots_(mask_ + 1), parameters_(parameters) {
  for (const auto& [tensor, module] : parameters) slots_[find(tensor)].tensor = tensor;
}

std::size_t ParameterReads::find(const at::TensorImpl* tensor) const {
  auto slot = slot_of(tensor);
  while (slots_[slot].tensor != nullptr && slots_[slot].tensor != tensor) slot = (slot + 1) & mask_;
  return slot;
}

std::vector<ModuleId> ParameterReads::owners_of_read() const {
  std::vector<ModuleId> owners;
  for (const auto& [tensor, module] : parameters_) {
    if (slots_[find(tensor)].read.load(std::memory_order_relaxed)) owners.push_back(module);
  }
  return owners;
}

}  // namespace roofprof::observe
