#include "profiler/rewind.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>

namespace roofprof::detail {
namespace {

// What no call was seen to write is kept by value as well, until this much is: torch does not tell of writes to tensors
// made in inference mode or through variable_data().
constexpr std::int64_t kBytesKept = 1 << 28;

// Tensors made in inference mode do not keep count.
std::optional<std::int64_t> version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? std::nullopt : std::optional<std::int64_t>(tensor._version());
}

bool is_dense(const at::Tensor& tensor) { return tensor.layout() == at::kStrided && tensor.has_storage(); }

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

// Whether there are values of the tensor's own that could be written: not so where elements share one place.
bool has_values(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta() || !is_dense(tensor)) return false;
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.stride(dim) == 0 && tensor.size(dim) > 1) return false;
  }
  return true;
}

bool same_place(const at::Tensor& a, const at::Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace

AmbientState::AmbientState() : grad_mode_(c10::GradMode::is_enabled()) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  random_ = generator.get_state();
}

void AmbientState::restore() const {
  at::autocast::clear_cache();
  c10::GradMode::set_enabled(grad_mode_);
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(random_);
}

KeptTensor::KeptTensor(at::Tensor tensor, bool by_value)
    : tensor_(std::move(tensor)),
      alias_(tensor_.detach()),
      version_(version_of(tensor_)),
      requires_grad_(tensor_.requires_grad()) {
  if (by_value) values_ = alias_.clone();
  if (tensor_.is_leaf()) grad_ = tensor_.grad();
}

bool KeptTensor::restore() {
  if (!same_place(tensor_, alias_)) tensor_.set_data(alias_);
  const bool written = version_of(tensor_) != version_;
  if (values_.defined() && (written || !at::equal(alias_, values_))) {
    const c10::InferenceMode guard;  // the one mode in which every tensor may be written
    // By variable_data(): the version stays, so that the backward of an earlier call of the user's still runs.
    alias_.variable_data().copy_(values_);
  }
  if (tensor_.is_leaf()) {
    if (!tensor_.grad().is_same(grad_)) tensor_.mutable_grad() = grad_;
    if (tensor_.requires_grad() != requires_grad_) tensor_.set_requires_grad(requires_grad_);
  }
  return values_.defined() || !written;
}

std::vector<at::Tensor> tensors_of(const Reach& reach) {
  std::vector<at::Tensor> tensors;
  std::unordered_set<const void*> seen;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) tensors.push_back(tensor);
  };
  for (const auto& tensor : reach.tensors) add(tensor);
  const observe::ScriptValues values(reach.values);
  for (const auto& tensor : values.tensors()) add(tensor);
  for (std::size_t i = 0, count = tensors.size(); i < count; ++i) {
    if (tensors[i].is_leaf()) add(at::Tensor(tensors[i].grad()));
  }
  return tensors;
}

std::string device_of(const std::vector<at::Tensor>& tensors) {
  const auto elsewhere = std::ranges::find_if(tensors, [](const at::Tensor& tensor) { return !tensor.is_cpu(); });
  return elsewhere == tensors.end() ? "cpu" : elsewhere->device().str();
}

Rewind::Rewind(const Model& model, Reach inputs)
    : model_(model),
      inputs_(std::move(inputs)),
      input_values_(inputs_.values),
      held_(tensors_of(model_.reach().with(inputs_))) {
  for (const auto& tensor : held_) versions_.emplace(tensor.unsafeGetTensorImpl(), version_of(tensor));
  at::autocast::clear_cache();  // as before each further call, so that all of them cast
}

void Rewind::before_call() const {
  input_values_.restore();
  ambient_.restore();
}

std::vector<KeptTensor> Rewind::kept(const std::vector<at::Tensor>& tensors) const {
  std::int64_t spare = kBytesKept;
  std::vector<KeptTensor> kept;
  for (const auto& tensor : tensors) {
    if (!has_values(tensor)) continue;
    const auto before = versions_.find(tensor.unsafeGetTensorImpl());
    const bool written = before == versions_.end() || before->second != version_of(tensor);
    const bool affordable = bytes_of(tensor) <= spare;
    if (affordable && !written) spare -= bytes_of(tensor);
    kept.emplace_back(tensor, written || affordable);
  }
  return kept;
}

void Rewind::undoing(const std::function<void()>& further) {
  const auto after = model_.reach().with(inputs_);
  const observe::ScriptValues values(after.values);
  const AmbientState ambient;
  auto tensors = kept(tensors_of(after));
  const auto undo = [&] {
    values.restore();
    for (auto& tensor : tensors) lost_ += tensor.restore() ? 0 : 1;
    ambient.restore();
  };
  try {
    further();
  } catch (...) {
    undo();
    throw;
  }
  undo();
}

}  // namespace roofprof::detail
