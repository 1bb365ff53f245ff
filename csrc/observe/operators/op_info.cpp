#include "observe/operators/op_info.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "core/collective_kinds.h"
#include "core/forks.h"
#include "core/profile.h"
#include "observe/operators/known_address.h"
#include "observe/operators/tensor_format.h"

namespace roofprof::observe {
namespace {

// Returns whether the type is a list, a dict or a tuple with tensors.
bool is_tensor_list(const c10::Type& type) {
  const auto holds = [](const c10::TypePtr& item) {
    return item->kind() == c10::TypeKind::TensorType || is_tensor_list(*item);
  };
  switch (type.kind()) {
    case c10::TypeKind::ListType: {
      const auto& element = type.containedTypes().front();
      return element->kind() == c10::TypeKind::OptionalType || holds(element);
    }
    case c10::TypeKind::DictType:
    case c10::TypeKind::TupleType:
      return std::ranges::any_of(type.containedTypes(), holds);
    case c10::TypeKind::OptionalType:
      return is_tensor_list(*type.containedTypes().front());
    default:
      return false;
  }
}

bool is_tensor(const c10::Type& type) {
  return type.kind() == c10::TypeKind::TensorType ||
         (type.kind() == c10::TypeKind::OptionalType && is_tensor(*type.containedTypes().front()));
}

bool is_dtype(const c10::Type& type) {
  return type.kind() == c10::TypeKind::ScalarTypeType ||
         (type.kind() == c10::TypeKind::OptionalType && is_dtype(*type.containedTypes().front()));
}

ops::ArgumentKind kind_of(const c10::Type& type) {
  if (is_tensor(type)) return ops::ArgumentKind::tensor;
  if (is_tensor_list(type)) return ops::ArgumentKind::tensor_list;
  return is_dtype(type) ? ops::ArgumentKind::dtype : ops::ArgumentKind::scalar;
}

void describe_arguments(const c10::FunctionSchema& schema, OpInfo& info) {
  std::uint16_t position = 0;
  for (const auto& argument : schema.arguments()) {
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    const auto kind = kind_of(*argument.real_type());
    info.arguments.push_back({argument.name(), {}, {}, written, kind, argument.kwarg_only()});
    if (kind == ops::ArgumentKind::tensor) {
      info.slots.push_back({position, OpInfo::Slot::Kind::tensor, written});
      const bool reads_value = info.cost != nullptr && info.cost->own == nullptr &&
                               ops::lists_scalar(info.cost->scalars, argument.name() + std::string(ops::kLastValue));
      if (reads_value) info.slots.push_back({position, OpInfo::Slot::Kind::last_value, false});
    } else if (kind == ops::ArgumentKind::tensor_list) {
      info.slots.push_back({position, OpInfo::Slot::Kind::tensor_list, written});
    } else if (info.cost != nullptr && ops::lists_scalar(info.cost->scalars, argument.name())) {
      info.slots.push_back({position, OpInfo::Slot::Kind::scalar, false});
    } else if (info.cost != nullptr && is_packed_weight(*argument.real_type())) {
      info.slots.push_back({position, OpInfo::Slot::Kind::packed_weight, false});
    }
    ++position;
  }
}

bool handles_tensors(const c10::FunctionSchema& schema) {
  const auto holds_tensors = [](const auto& value) {
    return is_tensor(*value.type()) || is_tensor_list(*value.type());
  };
  return std::ranges::any_of(schema.arguments(), holds_tensors) || std::ranges::any_of(schema.returns(), holds_tensors);
}

bool returns_view(const c10::FunctionSchema& schema) {
  bool aliases = false;
  for (const auto& result : schema.returns()) {
    if (result.alias_info() == nullptr) continue;
    if (result.alias_info()->isWrite()) return false;
    aliases = true;
  }
  return aliases;
}

// Returns the keys whose kernels dispatch the operator again. Autocast does so for the operators that have an autocast
// kernel, and lets the rest fall through. Python's and functorch's kernels dispatch every operator again.
c10::DispatchKeySet wrapping_keys(const c10::OperatorHandle& op) {
  c10::DispatchKeySet keys({c10::DispatchKey::Python, c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                            c10::DispatchKey::FuncTorchDynamicLayerBackMode, c10::DispatchKey::FuncTorchBatched,
                            c10::DispatchKey::FuncTorchVmapMode, c10::DispatchKey::FuncTorchGradWrapper,
                            c10::DispatchKey::Functionalize, c10::DispatchKey::Batched});
  for (const auto key : c10::autocast_dispatch_keyset) {
    if (op.hasKernelForDispatchKey(key)) keys = keys.add(key);
  }
  return keys;
}

// Ops that show nothing but where memory comes from and goes to.
constexpr std::array<std::string_view, 7> kFreshOps = {
    "aten::lift_fresh",     "aten::empty",     "aten::empty_like",       "aten::empty_strided",
    "aten::empty_permuted", "aten::new_empty", "aten::new_empty_strided"};
// Torch's own operators dispatch all that they do, or are costed; those of quantized, mkldnn and the like do not.
constexpr std::array<std::string_view, 31> kOwnNamespaces = {
    "aten",        "prims",    "prim",          "torch_nn",         "c10d",           "c10d_functional",
    "coor",        "export",   "_dtensor",      "_c10d_functional", "debug_mode_ops", "_c10d_functional_autograd",
    "debugprims",  "dist",     "flex_gemm",     "flex_lib",         "fsdp",           "higher_order",
    "inductor",    "mempool",  "_native",       "inductor_prims",   "_native_aot",    "_inductor_test",
    "onnx",        "profiler", "onnx_symbolic", "rngprims",         "streams",        "symm_mem",
    "quantization"};

constexpr std::string_view kReadOutOp = "aten::resolve_neg";  // part of Tensor.numpy(), hardly used elsewhere

Evidence evidence_of(const OpInfo& info) {
  if (std::ranges::find(kFreshOps, info.name) != kFreshOps.end()) {
    return kFreshMemory | (info.name == kFreshOps.front() ? kBroughtIn : kBufferMade);  // lift_fresh makes none
  }
  if (info.name == kReadOutOp) return kReadOut;
  return info.kind == OpKind::view ? kViewMade : Evidence{0};
}

// Products whose results have the sizes that their tensors say.
constexpr std::array<std::string_view, 7> kProducts = {"aten::mm",    "aten::bmm",   "aten::mv",     "aten::dot",
                                                       "aten::addmm", "aten::addmv", "aten::baddbmm"};
// The result is like the first tensor, whatever the other arguments are.
constexpr std::array<std::string_view, 4> kLikeFirst = {"aten::batch_norm", "aten::instance_norm", "aten::layer_norm",
                                                        "aten::group_norm"};
// Arguments that change neither the sizes nor the dtypes of a result of the above and of pointwise operators. A scalar
// operand may change the dtype, and is none of these.
constexpr std::array<std::string_view, 3> kFactors = {"alpha", "beta", "approximate"};

// Returns whether the sizes and dtypes of the tensors that it takes, and torch's default dtype, say what its results
// are, as long as all tensors are plain.
bool results_follow(const c10::FunctionSchema& schema, const c10::OperatorHandle& op) {
  const auto is_in = [](const auto& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  const auto& arguments = schema.arguments();
  const auto& results = schema.returns();
  const auto is_written = [](const c10::Argument& value) {
    return value.alias_info() != nullptr && value.alias_info()->isWrite();
  };
  const auto is_one_tensor = [](const c10::Argument& value) { return is_tensor(*value.type()); };
  // Tensors for results (out=) may get other sizes.
  const auto is_out = [&](const c10::Argument& argument) { return argument.kwarg_only() && is_written(argument); };
  if (!schema.name().starts_with("aten::") || results.empty() || std::ranges::any_of(arguments, is_out)) return false;
  if (!std::ranges::all_of(results, is_one_tensor) || op.hasTag(at::Tag::dynamic_output_shape)) return false;
  if (is_in(kLikeFirst, schema.name())) return true;
  const bool pointwise = op.hasTag(at::Tag::pointwise);
  if (!pointwise && !is_in(kProducts, schema.name())) return false;
  const bool in_place = pointwise && std::ranges::all_of(results, is_written);
  return std::ranges::all_of(arguments, [&](const c10::Argument& argument) {
    return is_one_tensor(argument) || is_in(kFactors, argument.name()) ||
           (in_place && !is_tensor_list(*argument.type()));
  });
}

// Adds the dispatcher's facts about the operator.
void describe_kernels(const c10::FunctionSchema& schema, const c10::OperatorHandle& op, OpInfo& info) {
  info.composite_implicit = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  info.composite_explicit = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
  // reshape, contiguous and to may return a view or a copy: what they dispatch tells which.
  if (returns_view(schema) && !info.composite_implicit) {
    info.trait = ops::Trait::view;
  } else if (op.hasTag(at::Tag::view_copy)) {
    info.trait = ops::Trait::view_copy;
  } else if (op.hasTag(at::Tag::pointwise)) {
    info.trait = ops::Trait::pointwise;
  } else if (op.hasTag(at::Tag::reduction)) {
    info.trait = ops::Trait::reduction;
  }
  info.wrapped_by = wrapping_keys(op);
  info.results_follow = results_follow(schema, op);
}

// `op`: null for TorchScript's own operators, which are not dispatched.
std::unique_ptr<OpInfo> describe(const c10::FunctionSchema& schema, const c10::OperatorHandle* op) {
  auto info = std::make_unique<OpInfo>();
  info->name = schema.name();
  info->overload = schema.overload_name();
  info->cost = ops::find_cost(info->name, info->overload);
  if (op != nullptr) describe_kernels(schema, *op, *info);
  info->of_extension = is_of_extension(info->name);
  const bool is_view = info->trait == ops::Trait::view;
  if (info->cost != nullptr || (info->trait != ops::Trait::none && !is_view)) {
    info->kind = OpKind::counted;
  } else if (is_view) {
    info->kind = OpKind::view;
  } else {
    // An extension's function that is registered as composite may call other operators, or be a kernel itself.
    const bool may_compute = !info->composite_implicit || (info->of_extension && handles_tensors(schema));
    info->kind = may_compute ? OpKind::unknown : OpKind::transparent;
  }
  info->collective = collective_of(info->name).has_value();
  info->communicates = is_communication(info->name);
  info->ends_norm = info->name == "aten::batch_norm" || info->name == "aten::instance_norm";
  info->evidence = evidence_of(*info);
  describe_arguments(schema, *info);
  for (const auto& result : schema.returns()) {
    info->result_written.push_back(result.alias_info() != nullptr && result.alias_info()->isWrite());
  }
  return info;
}

// All operators met so far, by the address of their schema's name, which is stable and distinct for each overload.
struct Registry {
  ForkMutex mutex{ForkMutex::Nesting::outer};  // costs are looked up under it
  std::unordered_map<const char*, std::unique_ptr<OpInfo>> by_name;
  // An operator that was removed from the dispatcher may leave its address to another, and its cost may be replaced:
  // the old ones are kept, because buckets and other threads still point to them.
  std::vector<std::unique_ptr<OpInfo>> retired;
  std::map<std::pair<Unobserved, std::string>, std::unique_ptr<OpInfo>> named;
  std::map<std::string, std::unique_ptr<OpInfo>, std::less<>> fused;
  std::set<std::string, std::less<>> without_graph;  // names of ranges around compiled frames
};

Registry& registry() {
  static auto* instance = new Registry;  // outlives every thread that may still look something up
  return *instance;
}

// torch names the range around a compiled frame "Torch-Compiled Region: 0/1".
bool is_compiled_code(const char* range) {
  constexpr std::string_view kRange = "Torch-Compiled Region";
  return std::strncmp(range, kRange.data(), kRange.size()) == 0;
}

bool has_graph(std::string_view range) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  return !all.without_graph.contains(range);
}

// Names with numbers in them would grow without end.
constexpr std::size_t kMaxNamed = 4096;
constexpr std::string_view kOtherNames = "(other names)";

// The prefixes of the names that TorchScript's executor gives to its own kernels, and to those of oneDNN.
constexpr std::array<std::string_view, 2> kFusedPrefixes = {"fused_", "LlgaPartition_"};

// Returns the operator of a kernel that TorchScript's executor fused from several ops, "fused_tanh_mul_add": what it
// does is not known here.
OpInfo* fused_kernel(std::string_view name) {
  const bool fused = std::ranges::any_of(kFusedPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
  if (!fused || !torch::jit::in_torchscript_runtime()) return nullptr;
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  auto found = all.fused.find(name);
  if (found == all.fused.end()) {
    found = all.fused.try_emplace(std::string(all.fused.size() < kMaxNamed ? name : kOtherNames)).first;
  }
  if (!found->second) {
    found->second = std::make_unique<OpInfo>();
    found->second->name = found->first;
  }
  return found->second.get();
}

// `address`: of the name in its schema.
OpInfo* resolve(const c10::OperatorName& name, const char* address) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  auto& entry = all.by_name[address];
  if (entry && entry->name == name.name && entry->overload == name.overload_name &&
      entry->cost == ops::find_cost(name.name, name.overload_name)) {
    return entry.get();
  }
  if (entry) all.retired.push_back(std::move(entry));
  if (const auto handle = c10::Dispatcher::singleton().findSchema(name)) {
    entry = describe(handle->schema(), &*handle);
  } else if (const auto script = torch::jit::findOperatorFor(name)) {
    entry = describe(script->schema(), nullptr);
  } else {
    return nullptr;
  }
  return entry.get();
}

OpInfo* resolve(const at::RecordFunction& fn) {
  if (const auto name = fn.operator_name()) return resolve(*name, fn.name());
  if (is_compiled_code(fn.name())) return has_graph(fn.name()) ? compiled_region() : nullptr;
  return fused_kernel(fn.name());
}

OpInfo* compiled_code(std::string_view name) {
  auto* info = new OpInfo;
  info->name = name;
  info->kind = OpKind::compiled;
  return info;
}

struct CacheLine {
  const char* name = nullptr;
  OpInfo* info = nullptr;
};
constexpr std::size_t kCacheLines = 1024;

struct Cache {
  std::array<CacheLine, kCacheLines> lines;
  std::uint64_t generation = 0;  // of the costs that were known when its lines were looked up
};

}  // namespace

std::uint32_t next_op_number() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

OpInfo* op_info(const at::RecordFunction& fn) {
  thread_local Cache of_thread;
  auto& cache = known_address(of_thread);
  if (const auto generation = ops::cost_generation(); cache.generation != generation) cache = {{}, generation};
  const char* name = fn.name();
  const auto address = reinterpret_cast<std::uintptr_t>(name);
  auto& line = cache.lines[((address >> 4) ^ (address >> 14)) % kCacheLines];
  // The text is compared as well: the names of ranges that do not stand for ops lie in memory that is used again.
  if (line.name == name && std::strcmp(line.info->name.c_str(), name) == 0) return line.info;
  OpInfo* info = resolve(fn);
  if (info != nullptr && info->kind != OpKind::compiled) line = {name, info};
  return info;
}

OpInfo* op_info(const c10::OperatorHandle& op) { return resolve(op.operator_name(), op.schema().name().c_str()); }

OpInfo* named_op(std::string_view name, Unobserved unobserved) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  std::pair<Unobserved, std::string> key{unobserved, name};
  auto found = all.named.find(key);
  if (found == all.named.end()) {
    if (all.named.size() >= kMaxNamed) key.second = kOtherNames;
    found = all.named.try_emplace(std::move(key)).first;
  }
  if (!found->second) {
    found->second = std::make_unique<OpInfo>();
    found->second->name = found->first.second;
    found->second->kind = OpKind::counted;
    found->second->unobserved = unobserved;
  }
  return found->second.get();
}

bool is_of_extension(std::string_view name) {
  const auto own = name.substr(0, name.find("::"));
  return std::ranges::find(kOwnNamespaces, own) == kOwnNamespaces.end();
}

OpInfo* compiled_region() {
  static auto* instance = compiled_code(kCompiledRegion);
  return instance;
}

void tell_compiled_range(std::string_view name, bool has_graph) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  if (has_graph) {
    const auto known = all.without_graph.find(name);
    if (known != all.without_graph.end()) all.without_graph.erase(known);
  } else if (all.without_graph.size() < kMaxNamed) {
    all.without_graph.emplace(name);
  }
}

OpInfo* compiled_package() {
  static auto* instance = compiled_code(kCompiledPackage);
  return instance;
}

bool runs_package(const char* range) {
  constexpr std::array<std::string_view, 3> kRanges = {"AOTIModelContainerRunner::run",
                                                       "AOTIModelContainerRunner::boxed_run",
                                                       "AOTIModelContainerRunner::run_const_fold"};
  return std::ranges::find(kRanges, std::string_view(range)) != kRanges.end();
}

bool is_compiled_backward(const char* node) { return std::strcmp(node, "CompiledFunctionBackward") == 0; }

}  // namespace roofprof::observe
