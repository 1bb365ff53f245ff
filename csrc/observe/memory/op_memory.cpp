#include "observe/memory/op_memory.h"

#include <vector>

#include "observe/operators/record_values.h"
#include "observe/operators/symbolic_size.h"

namespace roofprof::observe {
namespace {

// Adds the tensor's storage where its device is watched. (storage() of a tensor without one throws.)
void add_watched(const Allocations& memory, const at::TensorImpl& tensor, std::vector<WeakStorage>& found) {
  if (!tensor.has_storage()) return;
  const auto& storage = tensor.unsafe_storage();
  if (storage && memory.watches(storage.device_type())) found.push_back(storage.getWeakStorageImpl());
}

}  // namespace

bool tell_inputs(Allocations& memory, const at::RecordFunction& fn, const OpInfo& op) {
  std::vector<WeakStorage> inputs;
  for (const auto& input : inputs_of(fn, op)) {
    for_each_tensor(input, [&](const at::TensorImpl& tensor, std::size_t) { add_watched(memory, tensor, inputs); });
  }
  if (!inputs.empty()) memory.op_reads(inputs);
  return !inputs.empty();
}

void tell_inside(Allocations& memory, const void* thread, const at::RecordFunction& fn) {
  const OpInfo* op = op_info(fn);
  if (op == nullptr) return;
  std::vector<WeakStorage> results;
  for (const auto& result : results_of(fn, *op)) {
    for_each_tensor(result, [&](const at::TensorImpl& tensor, std::size_t) { add_watched(memory, tensor, results); });
  }
  if (!results.empty()) memory.made_inside(thread, results);
}

void tell_results(Allocations& memory, const void* thread, const at::RecordFunction* fn, const OpInfo& op) {
  std::vector<SizedBlock> blocks;
  std::vector<WeakStorage> watched;
  const auto see = [&](const at::TensorImpl& tensor, std::size_t) {
    add_watched(memory, tensor, watched);
    if (!tensor.has_storage() || tensor.storage().device_type() != c10::kMeta) return;
    auto& storage = *tensor.storage().unsafeGetStorageImpl();
    blocks.push_back({storage._mutable_data_ptr_no_checks().get_context(), known_value(storage.sym_nbytes())});
  };
  if (fn != nullptr) {
    for (const auto& result : results_of(*fn, op)) for_each_tensor(result, see);
  }
  memory.op_ended(thread, blocks, watched);
}

}  // namespace roofprof::observe
