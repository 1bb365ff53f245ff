#include "run/state_snapshot.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace roofprof::run {

namespace {

// Makes operators that are called while this lives torch's own, whatever modes and transforms the caller is in: none of
// the user's code runs. In inference mode every tensor may be written, and only writes to tensors that have a version
// raise one.
class PlainOperators {
  c10::InferenceMode inference_;
  c10::impl::ExcludeDispatchKeyGuard modes_{c10::DispatchKeySet(
      {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::PythonDispatcher,
       c10::DispatchKey::Functionalize, c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
       c10::DispatchKey::FuncTorchDynamicLayerBackMode})};
};

// Wrappers of torch.func and of functionalization hold their tensors inside.
constexpr c10::DispatchKeySet kWrappers({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
                                         c10::DispatchKey::Functionalize, c10::DispatchKey::ZeroTensor});

std::int64_t bytes_in(const c10::StorageImpl& storage) { return storage.sym_nbytes().maybe_as_int().value_or(0); }

c10::StorageImpl& storage_of(const at::Tensor& tensor) {
  return *tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

// Asked of the storage itself, this may throw.
const void* memory_of(c10::StorageImpl& storage) { return storage._mutable_data_ptr_no_checks().get(); }

// Returns where the elements end if the storage is as long as they require.
std::int64_t bytes_needed(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(at::detail::computeStorageNbytes(
      tensor.sizes(), tensor.strides(), tensor.element_size(), static_cast<std::size_t>(tensor.storage_offset())));
}

// Returns whether elements share memory: they do not where sizes and strides are those of a nest of blocks.
bool overlaps_itself(const at::Tensor& tensor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, size
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) > 1) dims.emplace_back(tensor.stride(dim), tensor.size(dim));
  }
  std::ranges::sort(dims);
  std::int64_t block = 1;
  for (const auto& [stride, size] : dims) {
    if (stride < block) return true;
    block = stride * (size - 1) + block;
  }
  return false;
}

at::Tensor view_of(const at::Storage& storage, at::ScalarType type, std::int64_t offset, at::IntArrayRef sizes,
                   at::IntArrayRef strides) {
  auto view = at::empty({0}, at::TensorOptions().dtype(type).device(storage.device()));
  view.set_(storage, offset, sizes, strides);
  return view;
}

at::Tensor bytes_at(const at::Storage& storage, std::int64_t begin, std::int64_t end) {
  return view_of(storage, at::kByte, begin, {end - begin}, {1});
}

// Numbers of that many bytes, to be copied and compared bit by bit.
std::optional<at::ScalarType> number_of(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return at::kByte;
    case 2:
      return at::kShort;
    case 4:
      return at::kInt;
    case 8:
      return at::kLong;
    default:
      return std::nullopt;
  }
}

bool equal_bits(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_cpu() || a.dim() != 1 || a.scalar_type() != at::kByte) return at::equal(a, b);
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), static_cast<std::size_t>(a.numel())) == 0;
}

// Resizes the storage as torch's own function does, which only knows the devices that it was built for.
void resize(c10::StorageImpl& storage, std::int64_t bytes) {
  const c10::DeviceGuard guard(storage.device());
  const at::Storage fresh(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t{}, static_cast<std::size_t>(bytes), storage.allocator(), /*resizable=*/true));
  const auto both = std::min(bytes, bytes_in(storage));
  if (both > 0) {
    const at::Storage old(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(&storage));
    bytes_at(fresh, 0, both).copy_(bytes_at(old, 0, both));
  }
  auto* made = fresh.unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(made->set_data_ptr(at::DataPtr(nullptr, storage.device())));
  storage.set_nbytes(static_cast<std::size_t>(bytes));
}

bool all_hold(std::initializer_list<at::Tensor> parts) {
  return std::ranges::all_of(parts, [](const at::Tensor& part) { return holds_its_elements(part); });
}

}  // namespace

bool is_dense(const at::Tensor& tensor) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  // First of all: what such a tensor says of itself may be the user's code.
  return !impl->is_python_dispatch() && tensor.layout() == at::kStrided && !impl->has_symbolic_sizes_strides() &&
         !tensor.is_nested() && !impl->key_set().has_any(kWrappers) && impl->has_storage() && impl->unsafe_storage() &&
         impl->unsafe_storage().device_type() != c10::kMeta;
}

StorageState storage_state(const at::Tensor& tensor) {
  auto& storage = storage_of(tensor);
  return {memory_of(storage), bytes_in(storage)};
}

bool holds_its_elements(const at::Tensor& tensor) {
  if (!tensor.defined()) return true;
  const auto* impl = tensor.unsafeGetTensorImpl();
  if (is_dense(tensor)) return tensor.numel() == 0 || bytes_needed(tensor) <= bytes_in(storage_of(tensor));
  if (const auto* coo = dynamic_cast<const at::SparseTensorImpl*>(impl)) {
    return all_hold({coo->indices(), coo->values()});
  }
  if (const auto* compressed = dynamic_cast<const at::SparseCsrTensorImpl*>(impl)) {
    return all_hold({compressed->compressed_indices(), compressed->plain_indices(), compressed->values()});
  }
  if (const auto* nested = dynamic_cast<const at::native::NestedTensorImpl*>(impl)) {
    return holds_its_elements(nested->get_unsafe_storage_as_tensor());
  }
  return true;
}

void KeptStorages::add(const at::Tensor& tensor, bool by_value) {
  const auto& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  auto& kept =
      all_.try_emplace(storage.unsafeGetStorageImpl(), Kept{storage, bytes_in(storage_of(tensor))}).first->second;
  if (!by_value || tensor.numel() == 0 || memory_of(storage_of(tensor)) == nullptr) return;
  const auto item = static_cast<std::int64_t>(tensor.element_size());
  const auto needed = bytes_needed(tensor);
  const auto begin = tensor.storage_offset() * item;
  const bool has_gaps = needed - begin > tensor.numel() * item;
  if (has_gaps && needed <= kept.bytes && number_of(tensor.element_size()) && !overlaps_itself(tensor)) {
    kept.spread.push_back(tensor);
  } else if (begin < kept.bytes) {
    kept.ranges.push_back({begin, std::min(needed, kept.bytes)});
  }
}

void KeptStorages::copy() {
  const PlainOperators plain;
  for (auto& [storage, kept] : all_) copy_into(kept);
}

std::vector<KeptStorages::Range> KeptStorages::merged(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {}, &Range::begin);
  std::vector<Range> result;
  for (const auto& range : ranges) {
    if (!result.empty() && range.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, range.end);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

void KeptStorages::copy_into(Kept& kept) {
  const auto ranges = merged(std::move(kept.ranges));
  const auto add = [&](at::Tensor place) {
    auto values = place.clone();
    kept.copies.push_back({std::move(place), std::move(values)});
  };
  for (const auto& range : ranges) add(bytes_at(kept.storage, range.begin, range.end));
  std::vector<at::Tensor> seen;
  for (const auto& tensor : kept.spread) {
    const auto begin = tensor.storage_offset() * static_cast<std::int64_t>(tensor.element_size());
    const auto needed = bytes_needed(tensor);
    const bool inside =
        std::ranges::any_of(ranges, [&](const Range& range) { return range.begin <= begin && needed <= range.end; });
    const bool repeated = std::ranges::any_of(seen, [&](const at::Tensor& other) {
      return other.storage_offset() == tensor.storage_offset() && other.element_size() == tensor.element_size() &&
             other.sizes() == tensor.sizes() && other.strides() == tensor.strides();
    });
    if (inside || repeated) continue;
    seen.push_back(tensor);
    add(view_of(kept.storage, *number_of(tensor.element_size()), tensor.storage_offset(), tensor.sizes(),
                tensor.strides()));
  }
  kept.ranges.clear();
  kept.spread.clear();
}

void KeptStorages::restore() {
  const PlainOperators plain;
  for (auto& [storage, kept] : all_) {
    try {
      restore_one(kept);
    } catch (const std::exception&) {  // no memory for what was freed
      kept.failed = true;
    }
  }
}

void KeptStorages::restore_one(Kept& kept) {
  auto& storage = *kept.storage.unsafeGetStorageImpl();
  if (bytes_in(storage) != kept.bytes) {
    kept.failed = !storage.resizable() || storage.allocator() == nullptr;
    if (kept.failed) return;
    resize(storage, kept.bytes);
  }
  for (const auto& [place, values] : kept.copies) {
    if (!equal_bits(place, values)) place.copy_(values);
  }
}

bool KeptStorages::restored(const at::Tensor& tensor) const {
  const auto found = all_.find(&storage_of(tensor));
  return found != all_.end() && !found->second.failed;
}

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
