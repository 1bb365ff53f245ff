#include "observe/operators/operands.h"

#include <algorithm>

#include "observe/operators/tensor_format.h"

namespace roofprof::observe {
namespace {

// Other devices than the CPU have addresses of their own.
std::int32_t number_of(const c10::Device& device) {
  return device.is_cpu() ? 0 : (static_cast<std::int32_t>(device.type()) << 8) + device.index() + 1;
}

// Nothing here reads memory: a storage may be shorter than its tensors' sizes, or freed.
void add_tensor(const at::TensorImpl& tensor, Operand::Kind kind, std::vector<Operand>& operands) {
  if (!tensor.has_storage() || !has_plain_strides(tensor)) return;
  const auto& storage = tensor.unsafe_storage();
  if (!storage) return;
  const auto* start = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  if (start == nullptr) return;
  std::int64_t held = 1;
  std::int64_t last = 0;
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return;
    if (strides[i] == 0) continue;  // expanded
    held *= sizes[i];
    last += (sizes[i] - 1) * strides[i];
  }
  const auto item = static_cast<std::int64_t>(tensor.itemsize());
  const std::int64_t length = (last + 1) * item;
  if (length <= 0) return;
  const auto begin =
      reinterpret_cast<std::uintptr_t>(start) + static_cast<std::uintptr_t>(tensor.storage_offset() * item);
  operands.push_back({{begin, begin + static_cast<std::uintptr_t>(length), std::min(held * item, length)},
                      number_of(storage.device()),
                      kind});
}

}  // namespace

void add_inputs(const OpInfo& info, const at::RecordFunction& fn, std::vector<Operand>& operands) {
  const auto inputs = inputs_of(fn, info);
  for (const auto& slot : info.slots) {
    if (slot.position >= inputs.size()) continue;
    const auto kind = slot.written ? Operand::Kind::written_input : Operand::Kind::input;
    for_each_tensor(inputs[slot.position],
                    [&](const at::TensorImpl& tensor, std::size_t) { add_tensor(tensor, kind, operands); });
  }
}

void add_results(const OpInfo& info, const at::RecordFunction& fn, std::vector<Operand>& operands) {
  const auto results = results_of(fn, info);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i < info.result_written.size() && info.result_written[i]) continue;  // an input
    for_each_tensor(results[i], [&](const at::TensorImpl& tensor, std::size_t) {
      add_tensor(tensor, Operand::Kind::result, operands);
    });
  }
}

}  // namespace roofprof::observe
