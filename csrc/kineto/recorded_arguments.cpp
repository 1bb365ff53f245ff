#include "kineto/recorded_arguments.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kineto/json_text.h"

namespace roofprof::kineto {

namespace {

constexpr std::array<ElementType, 19> kElements = {{
    {"Float", "float", DType::fp32, 4},
    {"Double", "double", DType::fp64, 8},
    {"Half", "c10::Half", DType::fp16, 2},
    {"BFloat16", "c10::BFloat16", DType::bf16, 2},
    {"Float8_e4m3fn", "c10::Float8_e4m3fn", DType::fp8, 1},
    {"Float8_e5m2", "c10::Float8_e5m2", DType::fp8, 1},
    {"Float8_e4m3fnuz", "c10::Float8_e4m3fnuz", DType::fp8, 1},
    {"Float8_e5m2fnuz", "c10::Float8_e5m2fnuz", DType::fp8, 1},
    {"Long", "long int", DType::int64, 8},
    {"Long", "long", DType::int64, 8},
    {"Long", "long long", DType::int64, 8},
    {"Int", "int", DType::int32, 4},
    {"Short", "short int", DType::int16, 2},
    {"Char", "signed char", DType::int8, 1},
    {"Char", "char", DType::int8, 1},
    {"Byte", "unsigned char", DType::uint8, 1},
    {"Bool", "bool", DType::boolean, 1},
    {"ComplexFloat", "c10::complex<float>", DType::fp32, 8},
    {"ComplexDouble", "c10::complex<double>", DType::fp64, 16},
}};

}  // namespace

const ElementType* element_of(std::string_view name) {
  const auto* found =
      std::ranges::find_if(kElements, [&](const ElementType& type) { return type.name == name || type.cpp == name; });
  return found == kElements.end() ? nullptr : found;
}

namespace {

// The types of arguments that are not tensors.
constexpr std::array<std::string_view, 12> kNoTensors = {"",       "Scalar", "ScalarList", "GenericList",
                                                         "Int",    "Bool",   "Double",     "Device",
                                                         "String", "None",   "Generator",  "Object"};
constexpr std::string_view kTensorList = "TensorList";

std::vector<std::string_view> items_of(std::string_view list) {
  std::vector<std::string_view> result;
  JsonItems items(list);
  while (items.next()) result.push_back(items.value());
  return result;
}

// Returns the numbers of a list; empty if it has anything but numbers from 0 on.
std::optional<std::vector<std::int64_t>> numbers_of(std::string_view list) {
  std::vector<std::int64_t> result;
  JsonItems items(list);
  while (items.next()) {
    const auto number = integer(items.value());
    if (!number || *number < 0) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

std::optional<RecordedTensor> tensor_of(std::string_view sizes, std::string_view strides, std::string type) {
  auto numbers = numbers_of(sizes);
  if (!numbers) return std::nullopt;
  auto steps = numbers_of(strides);
  if (!steps || (!steps->empty() && steps->size() != numbers->size())) return std::nullopt;
  return RecordedTensor{std::move(type), std::move(*numbers), std::move(*steps)};
}

bool is_list_of_lists(std::string_view sizes) {
  const auto items = items_of(sizes);
  return !items.empty() && items.front().starts_with('[');
}

}  // namespace

std::vector<RecordedArgument> arguments_of(const RecordedCall& call) {
  const auto sizes = items_of(call.sizes);
  const auto types = items_of(call.types);
  const auto strides = items_of(call.strides);
  const auto scalars = items_of(call.scalars);
  const auto at = [](const std::vector<std::string_view>& values, std::size_t i) {
    return i < values.size() ? values[i] : std::string_view{};
  };
  std::vector<RecordedArgument> arguments(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    auto& argument = arguments[i];
    const auto type = unquoted(types[i]);
    if (type == kTensorList || is_list_of_lists(at(sizes, i))) {
      argument.kind = RecordedArgument::Kind::tensor_list;
      const auto all_strides = items_of(at(strides, i));
      std::size_t place = 0;
      for (const auto one : items_of(at(sizes, i))) {
        auto tensor = tensor_of(one, at(all_strides, place++), call.list_type);
        if (!tensor) {
          argument = {};
          break;
        }
        argument.tensors.push_back(std::move(*tensor));
      }
    } else if (std::ranges::find(kNoTensors, type) == kNoTensors.end()) {
      auto tensor = tensor_of(at(sizes, i), at(strides, i), std::string(type));
      if (!tensor) continue;
      argument.kind = RecordedArgument::Kind::tensor;
      argument.tensors.push_back(std::move(*tensor));
    } else if (auto value = decoded(at(scalars, i)); !value.empty()) {
      argument.kind = RecordedArgument::Kind::other;
      argument.value = std::move(value);
    }
  }
  return arguments;
}

namespace {

// The number of ops before and after the list's that are searched.
constexpr std::ptrdiff_t kNearbyOps = 64;

bool is_floating_type(std::string_view type) {
  return type == "float" || type == "double" || type == "c10::BFloat16" || type == "c10::Half";
}

}  // namespace

void find_list_types(Trace& trace) {
  std::map<std::string, std::int64_t> floating;
  std::vector<std::vector<RecordedTensor>> tensors(trace.calls.size());
  std::vector<std::set<std::vector<std::int64_t>>> lists(trace.calls.size());
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    for (auto& argument : arguments_of(trace.calls[i])) {
      for (auto& tensor : argument.tensors) {
        if (argument.kind == RecordedArgument::Kind::tensor_list) {
          lists[i].insert(tensor.sizes);
        } else {
          if (is_floating_type(tensor.type)) ++floating[tensor.type];
          tensors[i].push_back(std::move(tensor));
        }
      }
    }
  }
  const auto most = std::ranges::max_element(floating, {}, [](const auto& count) { return count.second; });
  const auto usual = most == floating.end() ? std::string() : most->first;
  std::map<std::uint32_t, std::vector<std::int32_t>> calls_by_thread;
  for (const auto& event : trace.host) {
    if (event.kind == HostKind::op) calls_by_thread[event.thread].push_back(event.call);
  }
  const auto type_in = [&](std::int32_t call, const std::set<std::vector<std::int64_t>>& sizes) {
    for (const auto& tensor : tensors[static_cast<std::size_t>(call)]) {
      if (sizes.contains(tensor.sizes)) return tensor.type;
    }
    return std::string();
  };
  for (const auto& [thread, calls] : calls_by_thread) {
    for (std::ptrdiff_t i = 0; i < std::ssize(calls); ++i) {
      const auto index = static_cast<std::size_t>(calls[static_cast<std::size_t>(i)]);
      auto& call = trace.calls[index];
      if (lists[index].empty() || !call.list_type.empty()) continue;
      for (std::ptrdiff_t far = 1; far <= kNearbyOps && call.list_type.empty(); ++far) {
        for (const auto other : {i - far, i + far}) {
          if (other < 0 || other >= std::ssize(calls) || !call.list_type.empty()) continue;
          call.list_type = type_in(calls[static_cast<std::size_t>(other)], lists[index]);
        }
      }
      if (call.list_type.empty()) call.list_type = usual;
    }
  }
}

}  // namespace roofprof::kineto
