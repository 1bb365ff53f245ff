#include "run/state_snapshot.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>

#include "run/plain_operators.h"

namespace roofprof::run {
namespace {

// Tensors made in inference mode do not keep count.
std::optional<std::int64_t> version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? std::nullopt : std::optional<std::int64_t>(tensor._version());
}

// Returns whether the tensor has one of torch's formats whose elements lie in several tensors or in no storage: sparse,
// nested, those of oneDNN. Any other tensor without a storage is a wrapper, and the tensors that it holds are kept
// separately.
bool has_format(const at::Tensor& tensor) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  return !impl->is_python_dispatch() && !tensor.is_meta() && !impl->has_symbolic_sizes_strides() &&
         (tensor.layout() != at::kStrided || tensor.is_nested());
}

bool has_values(const at::Tensor& tensor) { return is_dense(tensor) || has_format(tensor); }

std::int64_t known_bytes_of(const at::Tensor& tensor) {
  const auto nominal = tensor.sym_numel().maybe_as_int().value_or(0) * static_cast<std::int64_t>(tensor.element_size());
  return is_dense(tensor) ? std::min(nominal, storage_state(tensor).bytes) : nominal;
}

bool same_place(const at::Tensor& a, const at::Tensor& b) {
  return is_dense(a) && a.storage().is_alias_of(b.storage()) && a.scalar_type() == b.scalar_type() &&
         a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() && a.strides() == b.strides();
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

std::optional<at::Tensor> gradient_of(const at::Tensor& tensor) {
  try {
    if (tensor.is_leaf()) return tensor.grad();
  } catch (const c10::Error&) {  // a view of what was written in place, a tensor that outlived its transform
  }
  return std::nullopt;
}

KeptTensors::KeptTensors(const std::vector<ToKeep>& tensors) {
  const PlainOperators plain;
  for (const auto& [tensor, by_value] : tensors) {
    if (!tensor.defined()) continue;
    auto& kept = all_.emplace_back();
    kept.tensor = tensor;
    kept.by_value = by_value;
    kept.version = version_of(tensor);
    kept.gradient = gradient_of(tensor);
    kept.requires_grad = tensor.requires_grad();
    if (is_dense(tensor)) {
      kept.alias = tensor.variable_data();
      kept.state = storage_state(tensor);
      storages_.add(tensor, by_value);
    } else if (has_format(tensor) && holds_its_elements(tensor)) {
      kept.alias = tensor.detach();
      if (by_value) kept.values = kept.alias.clone();
    }
  }
  storages_.copy();
}

std::int64_t KeptTensors::restore() {
  // The changes are found before anything is put back: tensors share storages.
  for (auto& kept : all_) kept.written = is_written(kept);
  storages_.restore();
  const PlainOperators plain;
  std::int64_t lost = 0;
  for (auto& kept : all_) lost += put_back(kept) ? 0 : 1;
  return lost;
}

bool KeptTensors::is_written(const Kept& kept) {
  if (!kept.alias.defined()) return false;  // a wrapper: what it holds is kept by itself
  return version_of(kept.tensor) != kept.version || (kept.state && storage_state(kept.alias) != *kept.state);
}

bool KeptTensors::put_back(Kept& kept) const {
  const auto& tensor = kept.tensor;
  bool whole = true;
  try {
    if (kept.state) {
      if (!same_place(tensor, kept.alias)) tensor.set_data(kept.alias);
      whole = storages_.restored(kept.alias) && (kept.by_value || !kept.written);
    } else if (kept.alias.defined()) {
      if (kept.values.defined() && kept.written) tensor.copy_(kept.values);
      whole = kept.values.defined() || !kept.written;
    }
    if (kept.gradient && gradient_of(tensor)) {
      if (!tensor.grad().is_same(*kept.gradient)) tensor.mutable_grad() = *kept.gradient;
      if (tensor.requires_grad() != kept.requires_grad) tensor.set_requires_grad(kept.requires_grad);
    }
  } catch (const c10::Error&) {
    return false;
  }
  return whole;
}

TensorSnapshot::TensorSnapshot(std::vector<at::Tensor> tensors, const std::vector<at::Tensor>& inputs,
                               std::int64_t bytes_kept)
    : held_(std::move(tensors)), bytes_kept_(bytes_kept) {
  std::erase_if(held_, [](const at::Tensor& tensor) { return !tensor.defined(); });
  for (const auto& tensor : held_) before_.emplace(tensor.unsafeGetTensorImpl(), seen(tensor));
  for (const auto& tensor : inputs) inputs_.insert(tensor.unsafeGetTensorImpl());
}

TensorSnapshot::Seen TensorSnapshot::seen(const at::Tensor& tensor) {
  return {version_of(tensor), is_dense(tensor) ? storage_state(tensor) : StorageState{}, holds_its_elements(tensor)};
}

std::string TensorSnapshot::why_only_once() const {
  const auto freed = std::ranges::count_if(held_, [&](const at::Tensor& tensor) {
    return before_.at(tensor.unsafeGetTensorImpl()).holds_its_elements && !holds_its_elements(tensor);
  });
  if (freed == 0) return {};
  return "further ones would find " + std::to_string(freed) + (freed == 1 ? " tensor" : " tensors") +
         " without the memory that it freed; if a call allocates it again, make one before the profile";
}

void TensorSnapshot::keep(const std::vector<at::Tensor>& tensors) {
  std::vector<ToKeep> to_keep;
  std::int64_t spare = bytes_kept_;
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (!has_values(tensor)) {  // but perhaps a gradient
      to_keep.push_back({tensor});
      continue;
    }
    const auto now = seen(tensor);
    const auto before = before_.find(tensor.unsafeGetTensorImpl());
    const bool written =
        before == before_.end() || before->second.version != now.version || before->second.storage != now.storage;
    const bool affordable =
        known_bytes_of(tensor) <= spare && (!now.version || !inputs_.contains(tensor.unsafeGetTensorImpl()));
    if (affordable && !written) spare -= known_bytes_of(tensor);
    to_keep.push_back({tensor, written || affordable});
  }
  kept_.emplace(to_keep);
}

}  // namespace roofprof::run
