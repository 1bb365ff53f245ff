#include "observe/op_memory.h"

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

bool tell_inputs(const ThreadState& state, const at::RecordFunction& fn, const OpInfo& op) {
  std::vector<WeakStorage> inputs;
  for (const auto& input : inputs_of(fn, op)) {
    for_each_tensor(input,
                    [&](const at::TensorImpl& tensor, std::size_t) { add_watched(*state.memory, tensor, inputs); });
  }
  if (!inputs.empty()) state.memory->op_reads(inputs);
  return !inputs.empty();
}

void tell_inside(const ThreadState& state, const at::RecordFunction& fn) {
  const OpInfo* op = op_info(fn);
  if (op == nullptr) return;
  std::vector<WeakStorage> results;
  for (const auto& result : results_of(fn, *op)) {
    for_each_tensor(result,
                    [&](const at::TensorImpl& tensor, std::size_t) { add_watched(*state.memory, tensor, results); });
  }
  if (!results.empty()) state.memory->made_inside(&state, results);
}

void tell_results(const ThreadState& state, const at::RecordFunction* fn, const OpInfo& op) {
  if (state.in_owned_work()) return;
  std::vector<SizedBlock> blocks;
  std::vector<WeakStorage> watched;
  const auto see = [&](const at::TensorImpl& tensor, std::size_t) {
    add_watched(*state.memory, tensor, watched);
    if (!tensor.has_storage() || tensor.storage().device_type() != c10::kMeta) return;
    auto& storage = *tensor.storage().unsafeGetStorageImpl();
    blocks.push_back({storage._mutable_data_ptr_no_checks().get_context(), known_value(storage.sym_nbytes())});
  };
  if (fn != nullptr) {
    for (const auto& result : results_of(*fn, op)) for_each_tensor(result, see);
  }
  state.memory->op_ended(&state, blocks, watched);
}

}  // namespace roofprof::observe
