#include "observe/modules/call_shapes.h"

#include <utility>

#include "observe/operators/tensor_bytes.h"

namespace roofprof::observe {
namespace {

constexpr std::size_t kMostShapes = 16;

}  // namespace

bool TensorShapes::full() const { return shapes_.size() >= kMostShapes; }

void TensorShapes::add(const at::Tensor& tensor) {
  if (full() || !tensor.defined()) return;
  if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() || tensor.is_nested()) {
    known_ = false;
    return;
  }
  if (tensor.layout() != at::kStrided) known_ = false;  // sparse
  shapes_.emplace_back(tensor.sizes().begin(), tensor.sizes().end());
  bytes_ += bytes_of(tensor);
}

void TensorShapes::add(const c10::IValue& value) {
  if (full()) return;
  if (value.isTensor()) {
    add(value.toTensor());
  } else if (value.isTuple()) {
    for (const auto& element : value.toTupleRef().elements()) add(element);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) add(element);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) add(item.value());
  }
}

std::optional<std::int64_t> TensorShapes::bytes() const {
  return known_ && !shapes_.empty() ? std::optional(bytes_) : std::nullopt;
}

void CallShapes::write_to(Module& row) const {
  row.input_shapes = inputs.all();
  row.output_shapes = outputs.all();
  row.output_bytes = outputs.bytes();
}

void LastShapes::keep(ModuleId place, CallShapes call) {
  const std::lock_guard lock(mutex_);
  calls_.insert_or_assign(place, std::move(call));
}

void LastShapes::write_to(std::vector<Module>& modules) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [place, call] : calls_) call.write_to(modules.at(index_of(place)));
}

}  // namespace roofprof::observe
