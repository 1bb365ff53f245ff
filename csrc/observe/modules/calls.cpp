#include "observe/modules/calls.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <utility>

#include "observe/operators/tensor_format.h"

namespace roofprof::observe {

namespace {

constexpr std::size_t kMostShapes = 16;

}  // namespace

bool TensorShapes::full() const { return ends_.size() >= kMostShapes; }

std::vector<std::vector<std::int64_t>> TensorShapes::all() const {
  std::vector<std::vector<std::int64_t>> shapes;
  const auto* begin = sizes_.begin();
  for (const auto end : ends_) {
    shapes.emplace_back(begin, sizes_.begin() + end);
    begin = sizes_.begin() + end;
  }
  return shapes;
}

void TensorShapes::add(const at::Tensor& tensor) {
  if (full() || !tensor.defined()) return;
  if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() || tensor.is_nested()) {
    known_ = false;
    return;
  }
  if (tensor.layout() != at::kStrided) known_ = false;  // sparse
  sizes_.append(tensor.sizes().begin(), tensor.sizes().end());
  ends_.push_back(static_cast<std::uint32_t>(sizes_.size()));
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
  return known_ && !ends_.empty() ? std::optional(bytes_) : std::nullopt;
}

void CallShapes::write_to(Module& row) const {
  row.input_shapes = inputs.all();
  row.output_shapes = outputs.all();
  row.output_bytes = outputs.bytes();
}

void LastShapes::keep(ModuleId place, CallShapes&& call) {
  const std::lock_guard lock(mutex_);
  calls_.insert_or_assign(place, std::move(call));
}

void LastShapes::write_to(std::vector<Module>& modules) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [place, call] : calls_) call.write_to(modules.at(index_of(place)));
}

void CallsOfOthers::note(ModuleId place, bool inferred) {
  const std::lock_guard lock(mutex_);
  ++calls_[{at::RecordFunction::currentThreadId(), place}];
  all_.inferred |= inferred;
}

void CallsOfOthers::note_run(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  runs_.insert(number);
}

void CallsOfOthers::note_unclear() {
  const std::lock_guard lock(mutex_);
  ++all_.unclear;
}

void CallsOfOthers::note_helper() {
  const std::lock_guard lock(mutex_);
  helped_ = true;
  all_.helped = true;
}

void CallsOfOthers::end_pass(const std::function<std::int64_t(ModuleId)>& own_calls) {
  const std::lock_guard lock(mutex_);
  // Some models show only the calls of their modules. Each module then gives a number of calls of the model: its calls
  // on the thread, divided by its calls in one call of the model. The largest of these numbers counts.
  std::map<std::uint64_t, std::int64_t> by_thread;
  for (const auto& [call, count] : calls_) {
    const auto [thread, place] = call;
    const auto in_one = std::max<std::int64_t>(own_calls(place), 1);
    auto& calls = by_thread[thread];
    calls = std::max(calls, (count + in_one - 1) / in_one);
  }
  for (const auto& [thread, count] : by_thread) all_.calls += count;
  all_.calls += static_cast<std::int64_t>(runs_.size());
  all_.mixed |= helped_ && !calls_.empty();
  helped_ = false;
  calls_.clear();
  runs_.clear();
}

OtherCalls CallsOfOthers::all() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

}  // namespace roofprof::observe
