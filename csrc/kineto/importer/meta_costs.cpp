#include "kineto/importer/meta_costs.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "core/phrases.h"
#include "kineto/json_text.h"
#include "kineto/recorded_arguments.h"
#include "observe/costed_call.h"
#include "observe/operators/op_info.h"
#include "observe/operators/op_signature.h"

namespace roofprof::kineto {
namespace {

// Says why a call cannot be dispatched again.
struct NotReplayed : std::exception {
  explicit NotReplayed(std::string why) : text(std::move(why)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

// C++'s names of element types, as traces have them; "long long" is macOS's.
constexpr std::array<std::pair<std::string_view, c10::ScalarType>, 30> kElementTypes = {{
    {"float", c10::ScalarType::Float},
    {"double", c10::ScalarType::Double},
    {"c10::Half", c10::ScalarType::Half},
    {"at::Half", c10::ScalarType::Half},
    {"c10::BFloat16", c10::ScalarType::BFloat16},
    {"at::BFloat16", c10::ScalarType::BFloat16},
    {"long int", c10::ScalarType::Long},
    {"long", c10::ScalarType::Long},
    {"long long", c10::ScalarType::Long},
    {"int", c10::ScalarType::Int},
    {"short int", c10::ScalarType::Short},
    {"short", c10::ScalarType::Short},
    {"signed char", c10::ScalarType::Char},
    {"char", c10::ScalarType::Char},
    {"unsigned char", c10::ScalarType::Byte},
    {"bool", c10::ScalarType::Bool},
    {"unsigned short", c10::ScalarType::UInt16},
    {"short unsigned int", c10::ScalarType::UInt16},
    {"unsigned int", c10::ScalarType::UInt32},
    {"unsigned long", c10::ScalarType::UInt64},
    {"long unsigned int", c10::ScalarType::UInt64},
    {"unsigned long long", c10::ScalarType::UInt64},
    {"c10::complex<float>", c10::ScalarType::ComplexFloat},
    {"c10::complex<double>", c10::ScalarType::ComplexDouble},
    {"c10::complex<c10::Half>", c10::ScalarType::ComplexHalf},
    {"c10::Float8_e4m3fn", c10::ScalarType::Float8_e4m3fn},
    {"c10::Float8_e5m2", c10::ScalarType::Float8_e5m2},
    {"c10::Float8_e4m3fnuz", c10::ScalarType::Float8_e4m3fnuz},
    {"c10::Float8_e5m2fnuz", c10::ScalarType::Float8_e5m2fnuz},
    {"c10::Float8_e8m0fnu", c10::ScalarType::Float8_e8m0fnu},
}};

// A number that was given for a tensor ("x * 2") is recorded as a tensor of no dimensions of one of these types;
// real tensors of these types without dimensions are rare.
constexpr std::array<std::string_view, 5> kTypesOfNumbers = {"double", "long int", "long long", "bool",
                                                             "c10::complex<double>"};

bool is_number(const RecordedTensor& tensor, std::size_t position) {
  return position > 0 && tensor.sizes.empty() &&
         std::ranges::find(kTypesOfNumbers, std::string_view(tensor.type)) != kTypesOfNumbers.end();
}

c10::ScalarType element_type(const RecordedTensor& tensor) {
  const auto* const known = std::ranges::find(kElementTypes, std::string_view(tensor.type),
                                              &std::pair<std::string_view, c10::ScalarType>::first);
  if (known != kElementTypes.end()) return known->second;
  throw NotReplayed(tensor.type.empty() ? "the trace does not say the type of tensors in a list"
                                        : "it has a tensor of the type " + tensor.type + ", which is not known");
}

// Returns a tensor with a value, because Python's shape functions read it.
at::Tensor number_like(const RecordedTensor& tensor) {
  auto number = at::ones({}, element_type(tensor));
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

at::Tensor meta_tensor(const RecordedTensor& tensor) {
  const auto options = at::TensorOptions(element_type(tensor)).device(c10::kMeta);
  if (tensor.strides.empty()) return at::empty(tensor.sizes, options);
  return at::empty_strided(tensor.sizes, tensor.strides, options);
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || (end != text.data() + text.size() && std::string_view(end) != ".")) return std::nullopt;
  return number;
}

std::optional<bool> boolean_of(std::string_view text) {
  if (text == "True" || text == "true") return true;
  if (text == "False" || text == "false") return false;
  return std::nullopt;
}

// Checks numbers of enumerators, which torch looks up without a check.
template <class Enumerators>
std::optional<std::int64_t> enumerator(std::string_view text, Enumerators end) {
  const auto number = integer(text);
  return number && *number >= 0 && *number < static_cast<std::int64_t>(end) ? number : std::nullopt;
}

// Returns the text as a value of that type; empty if it does not have that type.
std::optional<c10::IValue> value_of(const std::string& text, const c10::Type& type);

template <class Item, class Read>
std::optional<c10::IValue> list_of(const std::string& text, Read read) {
  c10::List<Item> list;
  if (!text.starts_with('[')) {  // one number stands for a list of it
    const auto item = read(text);
    if (!item) return std::nullopt;
    list.push_back(*item);
    return c10::IValue(std::move(list));
  }
  JsonItems items(text);
  while (items.next()) {
    const auto item = read(items.value());
    if (!item) return std::nullopt;
    list.push_back(*item);
  }
  return c10::IValue(std::move(list));
}

std::optional<c10::IValue> as_value(const auto& known) {
  return known ? std::optional<c10::IValue>(*known) : std::nullopt;
}

std::optional<c10::IValue> value_of(const std::string& text, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      return value_of(text, *type.containedTypes().front());
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return as_value(integer(text));
    case c10::TypeKind::ScalarTypeType: {
      const auto element = enumerator(text, c10::ScalarType::NumOptions);
      // Quantized tensors need a quantizer, which traces do not have.
      if (element && c10::isQIntType(static_cast<c10::ScalarType>(*element))) return std::nullopt;
      return as_value(element);
    }
    case c10::TypeKind::LayoutType:
      return as_value(enumerator(text, c10::Layout::NumOptions));
    case c10::TypeKind::MemoryFormatType:
      return as_value(enumerator(text, c10::MemoryFormat::NumOptions));
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return as_value(number_of(text));
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      return as_value(boolean_of(text));
    case c10::TypeKind::NumberType:
      if (const auto whole = integer(text)) return c10::IValue(*whole);
      if (const auto yes = boolean_of(text)) return c10::IValue(*yes);
      return as_value(number_of(text));
    case c10::TypeKind::StringType:
      return c10::IValue(text);
    case c10::TypeKind::DeviceObjType:
      return c10::IValue(c10::Device(c10::kMeta));
    case c10::TypeKind::ListType:
      switch (type.containedTypes().front()->kind()) {
        case c10::TypeKind::IntType:
        case c10::TypeKind::SymIntType:
          return list_of<std::int64_t>(text, [](std::string_view item) { return integer(item); });
        case c10::TypeKind::FloatType:
        case c10::TypeKind::NumberType:
          return list_of<double>(text, number_of);
        case c10::TypeKind::BoolType:
          return list_of<bool>(text, boolean_of);
        default:
          return std::nullopt;
      }
    default:
      return std::nullopt;
  }
}

bool is_kind(const c10::Type& type, c10::TypeKind kind) {
  if (type.kind() == c10::TypeKind::OptionalType) return is_kind(*type.containedTypes().front(), kind);
  return type.kind() == kind;
}

bool is_tensor_list(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::OptionalType) return is_tensor_list(*type.containedTypes().front());
  return type.kind() == c10::TypeKind::ListType && type.containedTypes().front()->kind() == c10::TypeKind::TensorType;
}

// The result does not depend on it, nor does what is counted.
bool may_be_left_out(const c10::Type& type) {
  return is_kind(type, c10::TypeKind::NumberType) || is_kind(type, c10::TypeKind::FloatType) ||
         is_kind(type, c10::TypeKind::GeneratorType);
}

std::string lacks_values(const std::vector<std::string>& arguments) {
  return std::string("the trace does not have the ") +
         (arguments.size() == 1 ? "value of its argument " : "values of its arguments ") + listed(arguments) +
         " (torch before 2.0 does not record scalars)";
}

c10::IValue value_of(const c10::Argument& wanted, const RecordedArgument& recorded, std::size_t position,
                     bool was_given) {
  const auto& type = *wanted.real_type();
  switch (recorded.kind) {
    case RecordedArgument::Kind::tensor:
      if (!is_kind(type, c10::TypeKind::TensorType)) throw NotReplayed("another overload");
      if (is_number(recorded.tensors.front(), position)) return number_like(recorded.tensors.front());
      return meta_tensor(recorded.tensors.front());
    case RecordedArgument::Kind::tensor_list: {
      if (!is_tensor_list(type)) throw NotReplayed("another overload");
      if (recorded.tensors.empty()) throw NotReplayed("the trace does not have the sizes of the tensors in its list");
      c10::List<at::Tensor> list;
      for (const auto& tensor : recorded.tensors) list.push_back(meta_tensor(tensor));
      return list;
    }
    case RecordedArgument::Kind::other: {
      if (is_kind(type, c10::TypeKind::TensorType) || is_tensor_list(type)) throw NotReplayed("another overload");
      auto value = value_of(recorded.value, type);
      if (!value) throw NotReplayed("another overload");
      return std::move(*value);
    }
    case RecordedArgument::Kind::absent:
      break;
  }
  if (is_kind(type, c10::TypeKind::DeviceObjType)) return {c10::Device(c10::kMeta)};
  if (is_kind(type, c10::TypeKind::ClassType)) return {};  // a group of processes, for example
  if (was_given && !may_be_left_out(type)) {
    throw NotReplayed(lacks_values({wanted.name()}));
  }
  if (wanted.default_value()) return *wanted.default_value();
  if (type.kind() == c10::TypeKind::OptionalType) return {};
  if (type.kind() == c10::TypeKind::TensorType) return at::Tensor();
  if (is_kind(type, c10::TypeKind::NumberType)) return c10::IValue(std::int64_t{1});
  throw NotReplayed("the trace does not have the value of its argument " + wanted.name());
}

// A type's name in the trace shows that there was a value, which older traces leave out.
bool was_given(const RecordedCall& call, std::size_t position) {
  JsonItems types(call.types);
  for (std::size_t i = 0; types.next(); ++i) {
    if (i == position) return !unquoted(types.value()).empty();
  }
  return false;
}

// Operators whose arguments from `first` on are the same tensor if their sizes are equal, which traces do not say:
// torch takes the first one's path for self-attention alone, and its optimizers square gradients by the others.
struct SameTensors {
  std::string_view op;
  std::size_t first;
  std::size_t count;
};
constexpr std::array<SameTensors, 3> kSameTensors = {{
    {"aten::_native_multi_head_attention", 0, 3},
    {"aten::addcmul_", 1, 2},
    {"aten::_foreach_addcmul_", 1, 2},
}};

// `tensors_alone`: other arguments are None.
std::vector<c10::IValue> stack_of(const c10::FunctionSchema& schema, const RecordedCall& call,
                                  const std::vector<RecordedArgument>& recorded, bool tensors_alone) {
  const auto& wanted = schema.arguments();
  if (recorded.size() > wanted.size()) throw NotReplayed("another overload");
  std::vector<c10::IValue> stack;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool there = i < recorded.size();
    const auto& type = *wanted[i].real_type();
    if (tensors_alone && !is_kind(type, c10::TypeKind::TensorType) && !is_tensor_list(type)) {
      stack.emplace_back();
      continue;
    }
    stack.push_back(value_of(wanted[i], there ? recorded[i] : RecordedArgument{}, i, there && was_given(call, i)));
  }
  for (const auto& [op, first, count] : kSameTensors) {
    for (auto i = first + 1; call.op == op && i < first + count && i < recorded.size(); ++i) {
      if (recorded[i] == recorded[first]) stack[i] = stack[first];
    }
  }
  return stack;
}

struct Chosen {
  c10::OperatorHandle op;
  std::vector<c10::IValue> stack;
};

// Returns the first line of torch's message.
std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

// Throws NotReplayed if no overload takes the arguments.
Chosen choose(const std::vector<c10::OperatorName>& overloads, const RecordedCall& call) {
  const auto recorded = arguments_of(call);
  std::string why = "no overload takes the arguments that were recorded";
  for (const bool all : {true, false}) {  // those with just as many arguments first
    for (const auto& name : overloads) {
      const auto op = c10::Dispatcher::singleton().findSchema(name);
      if (!op || (op->schema().arguments().size() == recorded.size()) != all) continue;
      try {
        // A collective is not dispatched again, and torch changes its other arguments.
        return {*op, stack_of(op->schema(), call, recorded, observe::op_info(*op)->communicates)};
      } catch (const NotReplayed& problem) {
        if (problem.text != "another overload") why = problem.text;
      } catch (const std::exception& problem) {
        why = first_line(problem.what());
      }
    }
  }
  throw NotReplayed(why);
}

// Returns a value without a schema, by what its text looks like.
c10::IValue value_of(const std::string& text) {
  if (const auto whole = integer(text)) return *whole;
  if (const auto number = number_of(text)) return *number;
  if (const auto yes = boolean_of(text)) return *yes;
  return text.empty() ? c10::IValue() : c10::IValue(text);
}

// SGLang's profiler opens an op around Python functions, whose name ends with a number: "sglang_profiler::f_12".
std::string_view without_number(std::string_view op) {
  if (!op.starts_with("sglang_profiler::")) return op;
  const auto letters = op.find_last_not_of("0123456789");
  return letters == op.npos || op[letters] != '_' ? op : op.substr(0, letters);
}

// Returns the line of a call that is costed without a schema: one that names its arguments, that of Triton's kernels,
// or the user's; null: there is none.
const ops::OpCost* line_without_schema(const RecordedCall& call) {
  if (call.triton) return &ops::triton_cost();
  const auto* line = ops::find_cost(without_number(call.op));
  return line != nullptr && (line->own != nullptr || !line->arguments.empty()) ? line : nullptr;
}

// Returns the cost of a call without torch's schema. A user's function gets arguments without names. Results are not
// known.
ops::Costed cost_without_schema(const RecordedCall& call) {
  observe::OpInfo info;
  info.kind = observe::OpKind::counted;
  info.cost = line_without_schema(call);
  info.name = call.triton || info.cost->own != nullptr ? call.op : std::string(info.cost->op);
  std::vector<c10::IValue> stack;
  for (const auto& recorded : arguments_of(call)) {
    using Slot = observe::OpInfo::Slot;
    ops::Argument argument;
    auto kind = Slot::Kind::scalar;
    if (recorded.kind == RecordedArgument::Kind::tensor) {
      kind = Slot::Kind::tensor;
      stack.emplace_back(meta_tensor(recorded.tensors.front()));
    } else if (recorded.kind == RecordedArgument::Kind::tensor_list) {
      kind = Slot::Kind::tensor_list;
      c10::List<at::Tensor> list;
      for (const auto& tensor : recorded.tensors) list.push_back(meta_tensor(tensor));
      stack.emplace_back(std::move(list));
    } else {
      stack.push_back(value_of(recorded.value));
    }
    argument.kind = kind == Slot::Kind::tensor        ? ops::ArgumentKind::tensor
                    : kind == Slot::Kind::tensor_list ? ops::ArgumentKind::tensor_list
                                                      : ops::ArgumentKind::scalar;
    info.slots.push_back({static_cast<std::uint16_t>(info.arguments.size()), kind, false});
    info.arguments.push_back(std::move(argument));
  }
  auto described = observe::describe_inputs(info, c10::ArrayRef<const c10::IValue>(stack.data(), stack.size()));
  if (info.cost->own == nullptr) {
    ops::name_arguments(described, info.cost->arguments);
    for (const auto& [name, number] : call.facts) {
      auto& fact = described.arguments.emplace_back();
      fact.name = name;
      fact.kind = ops::ArgumentKind::scalar;
      fact.scalar = number;
    }
  }
  return observe::cost_of(info, described);
}

// Says why torch refused the call: if arguments were left out, they are the reason.
std::string why_refused(const c10::FunctionSchema& schema, const RecordedCall& call, std::string_view error) {
  const auto recorded = arguments_of(call);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < recorded.size() && i < schema.arguments().size(); ++i) {
    if (recorded[i].kind == RecordedArgument::Kind::absent && was_given(call, i)) {
      missing.push_back(schema.arguments()[i].name());
    }
  }
  return missing.empty() ? "torch does not run it without data: " + first_line(error) : lacks_values(missing);
}

bool returns_tensors(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return is_kind(*result.type(), c10::TypeKind::TensorType) || is_tensor_list(*result.type());
  });
}

// Returns whether the first overload is a view, or moves and computes nothing.
bool is_free(const std::vector<c10::OperatorName>& overloads) {
  const auto op = overloads.empty() ? std::nullopt : c10::Dispatcher::singleton().findSchema(overloads.front());
  if (!op) return false;
  const auto& info = *observe::op_info(*op);
  return info.kind == observe::OpKind::view || (info.cost != nullptr && ops::is_free(*info.cost));
}

// Drops warnings. Meta kernels warn of their arguments, which here do not come from the user's code.
struct Silence final : c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

const observe::OpClass& class_in(const c10::OperatorHandle& op) { return *observe::op_info(op); }

}  // namespace

MetaCosts::MetaCosts() {
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) overloads_[name.name].push_back(name);
  for (auto& [op, names] : overloads_) {
    std::ranges::sort(names, {}, [](const c10::OperatorName& name) { return name.overload_name; });
  }
}

MetaCosts::~MetaCosts() = default;

const std::vector<c10::OperatorName>& MetaCosts::overloads_of(const std::string& op) { return overloads_[op]; }

bool MetaCosts::needs_no_schema(const RecordedCall& call) {
  if (overloads_of(call.op).empty()) return true;
  const auto* line = line_without_schema(call);
  return line != nullptr && line->own == nullptr;
}

observe::OpClass MetaCosts::class_of(const RecordedCall& call) {
  if (needs_no_schema(call)) {
    observe::OpClass unknown;
    unknown.of_extension = true;
    if (line_without_schema(call) != nullptr) unknown.kind = observe::OpKind::counted;
    return unknown;
  }
  const auto& overloads = overloads_of(call.op);
  if (call.described) {
    try {
      return class_in(choose(overloads, call).op);
    } catch (const std::exception&) {  // the first one is as good as any
    }
  }
  const auto op = c10::Dispatcher::singleton().findSchema(overloads.front());
  return op ? class_in(*op) : observe::OpClass{};
}

ops::Costed MetaCosts::cost_of(const RecordedCall& call) {
  ops::Costed result;
  const auto& overloads = overloads_of(call.op);
  if (!call.described) return result;
  const at::RecordFunctionGuard unobserved(false);
  const c10::NoGradGuard no_grad;
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard silent(&silence);
  try {
    if (needs_no_schema(call)) return cost_without_schema(call);
    auto [op, stack] = choose(overloads, call);
    const auto& info = *observe::op_info(op);
    if (info.kind == observe::OpKind::view) return observe::cost_of(info, {});
    auto described = observe::describe_inputs(info, c10::ArrayRef<const c10::IValue>(stack.data(), stack.size()));
    // A collective's peers are not here, and it returns its arguments.
    if (!info.communicates && returns_tensors(op.schema())) {
      try {
        op.callBoxed(&stack);
      } catch (const std::exception& error) {
        throw NotReplayed(why_refused(op.schema(), call, error.what()));
      }
      observe::describe_results(info, stack, described);
    }
    return observe::cost_of(info, described);
  } catch (const std::exception& error) {
    result.failure = first_line(error.what());
  }
  if (is_free(overloads)) {  // whatever its arguments are
    result.costed = true;
    result.failure.clear();
  }
  return result;
}

// Traces leave out texts.
std::string MetaCosts::assumed(const RecordedCall& call) {
  std::string names;
  try {
    const auto op = choose(overloads_of(call.op), call).op;
    const auto& info = *observe::op_info(op);
    const auto recorded = arguments_of(call);
    for (std::size_t i = 0; i < op.schema().arguments().size() && i < recorded.size(); ++i) {
      const auto& wanted = op.schema().arguments()[i];
      const bool read = info.cost != nullptr && ops::lists_scalar(info.cost->scalars, wanted.name());
      if (!read || recorded[i].kind != RecordedArgument::Kind::absent) continue;
      if (!is_kind(*wanted.real_type(), c10::TypeKind::StringType)) continue;
      if (!names.empty()) names += ", ";
      names += wanted.name();
    }
  } catch (const std::exception&) {  // it has no cost
    names.clear();
  }
  return names;
}

}  // namespace roofprof::kineto
