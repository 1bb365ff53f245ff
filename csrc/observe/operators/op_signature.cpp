#include "observe/operators/op_signature.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <optional>

#include "observe/operators/operands.h"
#include "observe/operators/tensor_format.h"

namespace roofprof::observe {

DispatchPath DispatchPathReader::dispatch_path(const OpInfo& info) {
  const auto local = c10::impl::tls_local_dispatch_key_set();
  auto active = ((keys_ | local.included_) - local.excluded_) & info.wrapped_by;
  if (active.has(c10::DispatchKey::Python)) {
    active = active.remove(c10::DispatchKey::Python);
    if (local.included_.has(c10::DispatchKey::Python)) read_modes();
    path_.wrapped = subclass_ || modes_;
  }
  path_.by_mode = path_.wrapped && !subclass_ && active.empty();
  path_.wrapped = path_.wrapped || !active.empty();
  return path_;
}

[[gnu::noinline]] void DispatchPathReader::see_stand_in(const at::TensorImpl& tensor) {
  const auto keys = tensor.key_set();
  if (keys.has(c10::DispatchKey::Python)) (is_fake(tensor) ? path_.fake : subclass_) = true;
  if (keys.has_backend(c10::BackendComponent::MetaBit)) path_.fake = true;
  // Wrappers of torch.func show the device of what they hold, not its backend's key.
  if (keys.has_any(kFunctorchWrappers) && tensor.is_meta()) path_.fake = true;
}

[[gnu::noinline]] void DispatchPathReader::read_modes() {
  using Modes = c10::impl::TorchDispatchModeTLS;
  const bool fake = Modes::get_mode(c10::impl::TorchDispatchModeKey::FAKE).has_value();
  modes_ = Modes::stack_len() > (fake ? 1 : 0);
  path_.fake = path_.fake || fake;
}

namespace {

// More tensors than this in one call (foreach lists) are not compared with each other: the comparison is quadratic.
constexpr std::size_t kMaxCompared = 32;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value;
  hash *= 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

std::int64_t size_of(const c10::SymInt& size) { return known_value(size).value_or(ops::TensorDesc::kUnknown); }

// Visits the dimensions of a tensor with symbolic sizes. It uses the strides only to find expanded dimensions.
template <typename Visit>
void for_each_symbolic_dim(const at::TensorImpl& tensor, Visit&& visit) {
  const auto sizes = tensor.sym_sizes();
  const bool has_strides = tensor.layout() == c10::kStrided && !tensor.is_nested();
  const auto strides = has_strides ? tensor.sym_strides() : c10::SymIntArrayRef{};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool expanded = i < strides.size() && strides[i].maybe_as_int() == 0;
    visit(size_of(sizes[i]), std::int64_t{expanded ? 0 : 1});
  }
}

template <typename Visit>
[[gnu::always_inline]] inline void for_each_plain_dim(const at::TensorImpl& tensor, const Visit& visit) {
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  const auto* size = sizes.data();
  const auto* stride = strides.data();
  for (const auto* end = size + sizes.size(); size != end; ++size, ++stride) visit(*size, *stride);
}

// Visits the sizes that a cost can read, and strides where the layout has them.
template <typename Visit>
void for_each_dim(const at::TensorImpl& tensor, Visit&& visit) {
  if (has_plain_strides(tensor)) {
    for_each_plain_dim(tensor, visit);
  } else if (tensor.has_symbolic_sizes_strides()) {
    for_each_symbolic_dim(tensor, visit);
  } else if (const auto nested = nested_sizes(tensor)) {
    for (const auto size : nested->sizes) visit(size, std::int64_t{1});
  } else {
    for (const auto size : tensor.sizes()) visit(size, std::int64_t{1});
  }
}

std::uint64_t mix_dim(std::uint64_t hash, std::int64_t size, std::int64_t stride) {
  return mix(hash, static_cast<std::uint64_t>(size) * 2 + (stride == 0 ? 1 : 0));
}

[[gnu::noinline]] std::uint64_t mix_special_sizes(std::uint64_t hash, const at::TensorImpl& tensor) {
  for_each_dim(tensor, [&hash](std::int64_t size, std::int64_t stride) { hash = mix_dim(hash, size, stride); });
  if (const auto sparse = sparse_content(tensor)) {
    hash = mix(mix(hash, static_cast<std::uint64_t>(sparse->values)), static_cast<std::uint64_t>(sparse->index_bytes));
  }
  return hash;
}

// Runs for every tensor of every op, and so do the two below.
[[gnu::always_inline]] inline std::uint64_t mix_plain_sizes(std::uint64_t hash, const at::TensorImpl& tensor) {
  for_each_plain_dim(tensor, [&hash](std::int64_t size, std::int64_t stride) { hash = mix_dim(hash, size, stride); });
  return hash;
}

// Returns whether tensors that share a storage have the same part of it.
[[gnu::noinline]] bool same_part(const at::TensorImpl* a, const at::TensorImpl* b) {
  if (!has_plain_strides(*a) || !has_plain_strides(*b)) return false;
  return a->storage_offset() == b->storage_offset() && a->sizes() == b->sizes() && a->strides() == b->strides();
}

[[gnu::always_inline]] inline bool same_view(const at::TensorImpl* a, const at::TensorImpl* b) {
  if (a == b) return true;
  const auto* storage = a->unsafe_storage().unsafeGetStorageImpl();
  return storage != nullptr && storage == b->unsafe_storage().unsafeGetStorageImpl() && same_part(a, b);
}

// Remembers the tensors of one call, to tell repeated views.
class Seen {
 public:
  [[gnu::always_inline]] bool repeats(const at::TensorImpl* tensor) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (same_view(tensors_[i], tensor)) return true;
    }
    if (count_ < kMaxCompared) tensors_[count_++] = tensor;
    return false;
  }
  void note_special_sizes() { all_plain_ = false; }
  bool all_plain() const { return all_plain_; }

 private:
  std::array<const at::TensorImpl*, kMaxCompared> tensors_;
  std::size_t count_ = 0;
  bool all_plain_ = true;
};

std::uint64_t hash_scalar(std::uint64_t hash, const c10::IValue& value) {
  if (value.isInt()) return mix(hash, static_cast<std::uint64_t>(value.toInt()) + 1);
  if (value.isBool()) return mix(hash, value.toBool() ? 3 : 2);
  if (value.isDouble()) return mix(hash, std::hash<double>{}(value.toDouble()));
  if (value.isString()) return mix(hash, std::hash<std::string>{}(value.toStringRef()));
  if (value.isSymInt()) return mix(hash, static_cast<std::uint64_t>(size_of(value.toSymInt())) + 1);
  if (value.isDevice()) return mix(hash, std::hash<c10::Device>{}(value.toDevice()) + 11);
  if (value.isList()) {
    hash = mix(hash, 5);
    for (const c10::IValue& item : value.toListRef()) hash = hash_scalar(hash, item);
    return hash;
  }
  return mix(hash, 7);
}

// Returns the scalar; empty where it is symbolic, and not known.
std::optional<ops::Scalar> describe_scalar(const c10::IValue& value) {
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isSymInt()) return known_value(value.toSymInt());
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return value.toDevice().str();
  if (!value.isList()) return std::monostate{};
  const auto list = value.toListRef();
  if (!list.empty() && list.front().isDouble()) {
    std::vector<double> numbers;
    for (const c10::IValue& item : list) numbers.push_back(item.isDouble() ? item.toDouble() : 0);
    return numbers;
  }
  std::vector<std::int64_t> items;
  for (const c10::IValue& item : list) {
    if (item.isInt()) {
      items.push_back(item.toInt());
    } else if (item.isBool()) {
      items.push_back(item.toBool() ? 1 : 0);
    } else if (item.isSymInt()) {
      const auto known = known_value(item.toSymInt());
      if (!known) return std::nullopt;
      items.push_back(*known);
    } else {
      return std::monostate{};
    }
  }
  return items;
}

void describe_components(const NestedSizes& nested, ops::TensorDesc& desc) {
  desc.sizes.push_back(nested.count);
  for (std::int64_t component = 0; component < nested.count; ++component) {
    const auto sizes = nested.of(component);
    desc.components.emplace_back(sizes.begin(), sizes.end());
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
      if (component == 0) {
        desc.sizes.push_back(sizes[dim]);
      } else if (desc.sizes[dim + 1] != sizes[dim]) {
        desc.sizes[dim + 1] = ops::TensorDesc::kRagged;
      }
    }
  }
}

ops::TensorDesc describe(const at::TensorImpl& tensor, Seen* seen) {
  ops::TensorDesc desc;
  const auto type = c10::typeMetaToScalarType(tensor.dtype());
  desc.dtype = dtype_of(type);
  desc.is_complex = c10::isComplexType(type);
  desc.element_type = static_cast<int>(type);
  // A Python scalar comes along with the call, whatever memory torch wraps it in.
  desc.item_bytes = tensor.is_wrapped_number() ? 0 : static_cast<std::int64_t>(tensor.dtype().itemsize());
  if (const auto sparse = sparse_content(tensor)) {
    desc.stored = sparse->values;
    desc.index_bytes = sparse->index_bytes;
  }
  desc.repeated = seen != nullptr && seen->repeats(&tensor);
  if (const auto nested = nested_sizes(tensor)) {
    describe_components(*nested, desc);
    return desc;
  }
  bool any_expanded = false;
  for_each_dim(tensor, [&](std::int64_t size, std::int64_t stride) {
    desc.sizes.push_back(size);
    desc.expanded.push_back(stride == 0 && size > 1);
    any_expanded |= desc.expanded.back();
  });
  if (!any_expanded) desc.expanded.clear();
  if (has_plain_strides(tensor)) {
    desc.channels_last = tensor.is_strides_like_channels_last() || tensor.is_strides_like_channels_last_3d();
  }
  return desc;
}

}  // namespace

namespace {

// Mixes an input's tensor into the hash; `position` is its place in its list. What runs for every tensor of every op
// becomes one loop below: compilers leave the small functions of torch's headers as calls where a file has much to
// inline.
[[gnu::always_inline]] inline std::uint64_t mix_input(std::uint64_t hash, const at::TensorImpl& tensor,
                                                      std::size_t position, DispatchPathReader& reader, Seen& seen) {
  reader.see(tensor);
  const auto type = static_cast<std::uint64_t>(c10::typeMetaToScalarType(tensor.dtype())) + (position << 8);
  hash = mix(hash, type * 4 + (tensor.is_wrapped_number() ? 2 : 0) + (seen.repeats(&tensor) ? 1 : 0));
  if (has_plain_strides(tensor)) [[likely]]
    return mix_plain_sizes(hash, tensor);
  seen.note_special_sizes();
  return mix_special_sizes(hash, tensor);
}

[[gnu::noinline]] std::uint64_t mix_inputs_inside(std::uint64_t hash, const c10::IValue& value,
                                                  DispatchPathReader& reader, Seen& seen) {
  for_each_tensor(value, [&](const at::TensorImpl& tensor, std::size_t position) {
    hash = mix_input(hash, tensor, position, reader, seen);
  });
  return hash;
}

[[gnu::noinline]] std::uint64_t mix_value(std::uint64_t hash, OpInfo::Slot::Kind kind, const c10::IValue& value) {
  if (kind == OpInfo::Slot::Kind::scalar) return hash_scalar(hash, value);
  if (kind == OpInfo::Slot::Kind::packed_weight) return mix(hash, identity_of_packed(value));
  return mix(hash, static_cast<std::uint64_t>(last_value(value).value_or(-1)) + 1);
}

[[gnu::always_inline]] inline std::uint64_t mix_result(std::uint64_t hash, const at::TensorImpl& tensor) {
  hash = mix(hash, static_cast<std::uint64_t>(c10::typeMetaToScalarType(tensor.dtype())));
  return has_plain_strides(tensor) ? mix_plain_sizes(hash, tensor) : mix_special_sizes(hash, tensor);
}

[[gnu::noinline]] std::uint64_t mix_results_inside(std::uint64_t hash, const c10::IValue& value) {
  for_each_tensor(value, [&](const at::TensorImpl& tensor, std::size_t) { hash = mix_result(hash, tensor); });
  return hash;
}

}  // namespace

[[gnu::flatten]] Signature signature_of(const OpInfo& info, c10::ArrayRef<const c10::IValue> inputs,
                                        ParameterReads* reads) {
  Signature signature;
  Seen seen;
  DispatchPathReader reader(reads);
  std::uint64_t hash = 0x243F6A8885A308D3ULL;
  for (const auto& slot : info.slots) {
    if (slot.position >= inputs.size()) break;
    const auto& value = inputs[slot.position];
    hash = mix(hash, slot.position);
    if (slot.kind != OpInfo::Slot::Kind::tensor && slot.kind != OpInfo::Slot::Kind::tensor_list) {
      hash = mix_value(hash, slot.kind, value);
    } else if (const auto* tensor = tensor_in(value)) {
      hash = mix_input(hash, *tensor, 0, reader, seen);
    } else if (!value.isTensor()) {
      hash = mix_inputs_inside(hash, value, reader, seen);
    }
  }
  signature.dispatch_path = reader.dispatch_path(info);
  const auto& path = signature.dispatch_path;
  signature.tells_results = info.results_follow && seen.all_plain() && !path.wrapped && !path.fake;
  signature.hash = hash;
  return signature;
}

DispatchPath dispatch_path_of(const OpInfo& info, c10::ArrayRef<const c10::IValue> inputs, ParameterReads* reads) {
  DispatchPathReader reader(reads);
  for (const auto& slot : info.slots) {
    using Kind = OpInfo::Slot::Kind;
    if (slot.kind == Kind::scalar || slot.kind == Kind::last_value || slot.position >= inputs.size()) continue;
    for_each_tensor(inputs[slot.position], [&](const at::TensorImpl& tensor, std::size_t) { reader.see(tensor); });
  }
  return reader.dispatch_path(info);
}

[[gnu::flatten]] std::uint64_t with_results(std::uint64_t inputs_hash, c10::ArrayRef<c10::IValue> outputs) {
  std::uint64_t hash = mix(inputs_hash, outputs.size());
  for (const auto& output : outputs) {
    if (const auto* tensor = tensor_in(output)) {
      hash = mix_result(hash, *tensor);
    } else if (!output.isTensor()) {
      hash = mix_results_inside(hash, output);
    }
  }
  return hash;
}

std::uint64_t without_results(std::uint64_t inputs_hash) {
  constexpr std::uint64_t kFollow = 1 << 16;  // more than results are
  return mix(inputs_hash, kFollow + static_cast<std::uint64_t>(c10::get_default_dtype_as_scalartype()));
}

ops::OpCall describe_inputs(const OpInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
  ops::OpCall call;
  call.name = info.name;
  call.overload = info.overload;
  call.trait = info.trait;
  Seen seen;
  call.arguments = info.arguments;
  for (const auto& slot : info.slots) {
    if (slot.position >= inputs.size()) break;
    auto& argument = call.arguments[slot.position];
    const auto& value = inputs[slot.position];
    if (slot.kind == OpInfo::Slot::Kind::scalar) {
      auto scalar = describe_scalar(value);
      argument.unknown = !scalar;
      if (scalar) argument.scalar = *std::move(scalar);
    } else if (slot.kind == OpInfo::Slot::Kind::last_value) {
      if (const auto known = last_value(value)) argument.scalar = *known;
    } else if (slot.kind == OpInfo::Slot::Kind::packed_weight) {
      for (const auto& tensor : unpacked(value)) {
        argument.tensors.push_back(describe(*tensor.unsafeGetTensorImpl(), nullptr));
      }
    } else {
      for_each_tensor(value, [&](const at::TensorImpl& tensor, std::size_t position) {
        argument.tensors.push_back(describe(tensor, &seen));
        argument.tensors.back().place = position;
      });
    }
  }
  return call;
}

void describe_results(const OpInfo& info, c10::ArrayRef<c10::IValue> outputs, ops::OpCall& call) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ops::Argument result;
    const auto& output = outputs[i];
    if (output.isList() || output.isGenericDict() || output.isTuple()) result.kind = ops::ArgumentKind::tensor_list;
    result.written = i < info.result_written.size() && info.result_written[i];
    for_each_tensor(output, [&](const at::TensorImpl& tensor, std::size_t) {
      result.tensors.push_back(describe(tensor, nullptr));
    });
    call.results.push_back(std::move(result));
  }
}

OpShapes shapes_of(const ops::OpCall& call) {
  OpShapes shapes;
  for (const auto& argument : call.arguments) {
    for (const auto& tensor : argument.tensors) {
      auto& sizes = shapes.tensors.emplace_back(tensor.sizes);
      for (auto& size : sizes) size = std::max(size, kUnknownSize);  // ragged, or not known
    }
  }
  return shapes;
}

}  // namespace roofprof::observe
