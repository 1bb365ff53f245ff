#include "observe/op_info.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/profile_data.h"

namespace roofprof::observe {
namespace {

bool names_scalar(std::string_view declared, std::string_view name) {
  while (!declared.empty()) {
    const auto comma = declared.find(',');
    auto item = declared.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    if (item == name) return true;
    if (comma == std::string_view::npos) break;
    declared.remove_prefix(comma + 1);
  }
  return false;
}

bool is_tensor_list(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::ListType) {
    const auto& element = *type.containedTypes().front();
    return element.kind() == c10::TypeKind::TensorType || element.kind() == c10::TypeKind::OptionalType;
  }
  return type.kind() == c10::TypeKind::OptionalType && is_tensor_list(*type.containedTypes().front());
}

bool is_tensor(const c10::Type& type) {
  return type.kind() == c10::TypeKind::TensorType ||
         (type.kind() == c10::TypeKind::OptionalType && is_tensor(*type.containedTypes().front()));
}

void describe_arguments(const c10::FunctionSchema& schema, OpInfo& info) {
  std::uint16_t position = 0;
  for (const auto& argument : schema.arguments()) {
    const auto& type = *argument.real_type();
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    info.argument_names.push_back(argument.name());
    if (is_tensor(type)) {
      info.slots.push_back({position, OpInfo::Slot::Kind::tensor, written});
    } else if (is_tensor_list(type)) {
      info.slots.push_back({position, OpInfo::Slot::Kind::tensor_list, written});
    } else if (info.cost != nullptr && names_scalar(info.cost->scalars, argument.name())) {
      info.slots.push_back({position, OpInfo::Slot::Kind::scalar, false});
    }
    ++position;
  }
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

std::unique_ptr<OpInfo> describe(const c10::FunctionSchema& schema, const c10::OperatorHandle& op) {
  auto info = std::make_unique<OpInfo>();
  info->name = schema.name();
  info->overload = schema.overload_name();
  info->cost = ops::find_cost(info->name);
  const bool composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  // reshape, contiguous and to may return a view or a copy: what they dispatch tells which.
  if (returns_view(schema) && !composite) {
    info->trait = ops::Trait::view;
  } else if (op.hasTag(at::Tag::pointwise)) {
    info->trait = ops::Trait::pointwise;
  } else if (op.hasTag(at::Tag::reduction)) {
    info->trait = ops::Trait::reduction;
  }
  info->composite_explicit = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
  if (info->cost != nullptr || info->trait == ops::Trait::pointwise || info->trait == ops::Trait::reduction) {
    info->kind = OpKind::counted;
  } else if (info->trait == ops::Trait::view) {
    info->kind = OpKind::view;
  } else {
    info->kind = composite ? OpKind::transparent : OpKind::unknown;
  }
  describe_arguments(schema, *info);
  for (const auto& result : schema.returns()) {
    info->result_written.push_back(result.alias_info() != nullptr && result.alias_info()->isWrite());
  }
  return info;
}

// All operators met so far, by the address of their schema's name, which is stable and distinct for each overload.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const char*, std::unique_ptr<OpInfo>> by_name;
  // An operator that was removed from the dispatcher may leave its address to another: the old one is kept, unused.
  std::vector<std::unique_ptr<OpInfo>> retired;
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

OpInfo* resolve(const at::RecordFunction& fn) {
  const auto name = fn.operator_name();
  if (!name) return is_compiled_code(fn.name()) ? compiled_region() : nullptr;
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  auto& entry = all.by_name[fn.name()];
  if (entry && entry->name == name->name && entry->overload == name->overload_name) return entry.get();
  if (entry) all.retired.push_back(std::move(entry));
  const auto handle = c10::Dispatcher::singleton().findSchema(*name);
  if (!handle) return nullptr;
  entry = describe(handle->schema(), *handle);
  return entry.get();
}

struct CacheLine {
  const char* name = nullptr;
  OpInfo* info = nullptr;
};
constexpr std::size_t kCacheLines = 1024;

}  // namespace

OpInfo* op_info(const at::RecordFunction& fn) {
  thread_local std::array<CacheLine, kCacheLines> cache;
  const char* name = fn.name();
  const auto address = reinterpret_cast<std::uintptr_t>(name);
  auto& line = cache[((address >> 4) ^ (address >> 14)) % kCacheLines];
  // The text is compared as well: ranges that are no ops carry names in memory that is used again.
  if (line.name == name && std::strcmp(line.info->name.c_str(), name) == 0) return line.info;
  OpInfo* info = resolve(fn);
  if (info != nullptr && info->kind != OpKind::region) line = {name, info};
  return info;
}

OpInfo* compiled_region() {
  static auto* instance = [] {
    auto* info = new OpInfo;
    info->name = kCompiledRegion;
    info->kind = OpKind::region;
    return info;
  }();
  return instance;
}

bool is_compiled_backward(const char* node) { return std::strcmp(node, "CompiledFunctionBackward") == 0; }

}  // namespace roofprof::observe
