#include "run/profiler/model_snapshot.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace roofprof::detail {

std::vector<at::Tensor> tensors_of(const Reach& reach) {
  std::vector<at::Tensor> tensors;
  std::unordered_set<const void*> seen;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) tensors.push_back(tensor);
  };
  for (const auto& tensor : reach.tensors) add(tensor);
  const observe::ScriptValues values(reach.values);
  for (const auto& tensor : values.tensors()) add(tensor);
  for (std::size_t i = 0, count = tensors.size(); i < count; ++i) {  // NOLINT(modernize-loop-convert): it grows
    if (const auto gradient = run::gradient_of(tensors[i])) add(*gradient);
  }
  return tensors;
}

std::string device_of(const std::vector<at::Tensor>& tensors) {
  const auto elsewhere =
      std::ranges::find_if(tensors, [](const at::Tensor& tensor) { return !tensor.is_cpu() && !tensor.is_meta(); });
  return elsewhere == tensors.end() ? "cpu" : elsewhere->device().str();
}

ModelSnapshot::ModelSnapshot(const Model& model, Reach inputs)
    : model_(model),
      inputs_(std::move(inputs)),
      input_values_(inputs_.values),
      tensors_(tensors_of(model_.reach().with(inputs_)), tensors_of(inputs_)) {
  at::autocast::clear_cache();  // as before each further call, so that all of them cast
}

void ModelSnapshot::before_call() const {
  input_values_.restore();
  ambient_.restore();
}

std::int64_t ModelSnapshot::undoing(const std::function<void()>& further) {
  const auto after = model_.reach().with(inputs_);
  const observe::ScriptValues values(after.values);
  const run::AmbientState ambient;
  tensors_.keep(tensors_of(after));
  const auto undo = [&] {
    values.restore();
    const auto lost = tensors_.restore();
    ambient.restore();
    return lost;
  };
  try {
    further();
  } catch (...) {
    undo();
    throw;
  }
  return undo();
}

}  // namespace roofprof::detail
