#include "run/state_snapshot.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <mutex>

namespace roofprof::run {
namespace {

// Tensors made in inference mode do not keep count.
std::optional<std::int64_t> version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? std::nullopt : std::optional<std::int64_t>(tensor._version());
}

// Whether elements lie in storage of the tensor's own: not so for sparse and nested tensors, and for those that Python
// dispatches (fake and distributed tensors, wrappers).
bool is_dense(const at::Tensor& tensor) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  return tensor.layout() == at::kStrided && !tensor.is_nested() && !impl->is_python_dispatch() && tensor.has_storage();
}

std::int64_t known_bytes_of(const at::Tensor& tensor) {
  const auto count = tensor.sym_numel().maybe_as_int().value_or(0);
  return count * static_cast<std::int64_t>(tensor.element_size());
}

// Whether there are values of the tensor's own that could be written: not so where elements share one place.
bool has_values(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return false;
  if (!is_dense(tensor)) return true;
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.stride(dim) == 0 && tensor.size(dim) > 1) return false;
  }
  return true;
}

bool same_place(const at::Tensor& a, const at::Tensor& b) {
  if (!is_dense(a) || !is_dense(b)) return true;
  return a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

// Asked without starting CUDA, which would cost memory and forbid forks.
bool cuda_is_in_use() {
  return at::detail::getCUDAHooks().isBuilt() && c10::getDeviceAllocator(c10::kCUDA)->initialized();
}

std::vector<at::Generator> default_generators() {
  std::vector<at::Generator> generators{at::detail::getDefaultCPUGenerator()};
  if (!cuda_is_in_use()) return generators;
  const auto& cuda = at::detail::getCUDAHooks();
  for (c10::DeviceIndex device = 0; device < cuda.deviceCount(); ++device) {
    generators.push_back(cuda.getDefaultGenerator(device));
  }
  return generators;
}

}  // namespace

AmbientState::AmbientState() : grad_mode_(c10::GradMode::is_enabled()) {
  for (auto& generator : default_generators()) {
    const std::lock_guard lock(generator.mutex());
    auto state = generator.get_state();
    random_.emplace_back(generator, std::move(state));
  }
}

void AmbientState::restore() const {
  at::autocast::clear_cache();
  c10::GradMode::set_enabled(grad_mode_);
  for (auto [generator, state] : random_) {
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
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
  if (values_.defined() && (written || (is_dense(alias_) && !at::equal(alias_, values_)))) {
    const c10::InferenceMode guard;  // the one mode in which every tensor may be written
    // By variable_data() the version stays, so that the backward of an earlier call of the user's still runs. Of a
    // sparse tensor it would be a copy.
    (alias_.layout() == at::kStrided ? alias_.variable_data() : tensor_).copy_(values_);
  }
  if (tensor_.is_leaf()) {
    if (!tensor_.grad().is_same(grad_)) tensor_.mutable_grad() = grad_;
    if (tensor_.requires_grad() != requires_grad_) tensor_.set_requires_grad(requires_grad_);
  }
  return values_.defined() || !written;
}

TensorSnapshot::TensorSnapshot(std::vector<at::Tensor> tensors, const std::vector<at::Tensor>& inputs,
                               std::int64_t bytes_kept)
    : held_(std::move(tensors)), bytes_kept_(bytes_kept) {
  for (const auto& tensor : held_) versions_.emplace(tensor.unsafeGetTensorImpl(), version_of(tensor));
  for (const auto& tensor : inputs) inputs_.insert(tensor.unsafeGetTensorImpl());
}

void TensorSnapshot::keep(const std::vector<at::Tensor>& tensors) {
  kept_.clear();
  std::int64_t spare = bytes_kept_;
  for (const auto& tensor : tensors) {
    if (!has_values(tensor)) continue;
    const auto* impl = tensor.unsafeGetTensorImpl();
    const auto version = version_of(tensor);
    const auto before = versions_.find(impl);
    const bool written = before == versions_.end() || before->second != version;
    const bool affordable = known_bytes_of(tensor) <= spare && (!version || !inputs_.contains(impl));
    if (affordable && !written) spare -= known_bytes_of(tensor);
    kept_.emplace_back(tensor, written || affordable);
  }
}

std::int64_t TensorSnapshot::restore() {
  std::int64_t lost = 0;
  for (auto& tensor : kept_) lost += tensor.restore() ? 0 : 1;
  return lost;
}

}  // namespace roofprof::run
