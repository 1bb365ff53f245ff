#include "observe/operators/operands.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <utility>

#include "observe/operators/tensor_format.h"

namespace roofprof::observe {
namespace {

// Other devices than the CPU have addresses of their own.
std::int32_t number_of(const c10::Device& device) {
  return device.is_cpu() ? 0 : (static_cast<std::int32_t>(device.type()) << 8) + device.index() + 1;
}

// Returns a number for the strides and sizes that say where the elements of a tensor are, whatever the order of its
// dimensions, and whether one was split in two.
std::uint64_t layout_of(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  c10::SmallVector<std::pair<std::int64_t, std::int64_t>, 8> runs;  // stride, size
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] != 0 && sizes[i] > 1) runs.emplace_back(strides[i], sizes[i]);
  }
  std::ranges::sort(runs);
  std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
  for (std::size_t i = 0; i < runs.size();) {
    auto [stride, size] = runs[i];
    for (++i; i < runs.size() && runs[i].first == stride * size; ++i) size *= runs[i].second;
    for (const auto value : {stride, size}) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 0xC2B2AE3D27D4EB4FULL;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

// Nothing here reads memory: a storage may be shorter than its tensors' sizes, or freed.
void add_tensor(const at::TensorImpl& tensor, Operand::Kind kind, std::vector<Operand>& operands) {
  if (!tensor.has_storage() || !has_plain_strides(tensor) || tensor.is_wrapped_number()) return;
  const auto& storage = tensor.unsafe_storage();
  if (!storage) return;
  auto* impl = storage.unsafeGetStorageImpl();
  const auto* start = impl->_mutable_data_ptr_no_checks().get();
  if (start == nullptr && storage.device_type() != c10::kMeta) return;
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
  const auto origin = reinterpret_cast<std::uintptr_t>(start);
  const auto begin = origin + static_cast<std::uintptr_t>(tensor.storage_offset() * item);
  const auto bytes = std::min(held * item, length);
  operands.push_back({{begin, begin + static_cast<std::uintptr_t>(length), bytes},
                      start == nullptr ? Operand::kNowhere : number_of(storage.device()),
                      kind,
                      impl,
                      origin,
                      bytes == length ? 0 : layout_of(sizes, strides)});
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
