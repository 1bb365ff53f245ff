#include "roofprof/op_call.h"

#include <algorithm>
#include <stdexcept>

#include "ops/registry.h"
#include "roofprof/work.h"

namespace roofprof::ops {

namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

[[noreturn]] void throw_wrong_type(const OpCall& call, std::string_view argument, const char* wanted) {
  throw std::logic_error(call.name + ": argument " + quoted(argument) + " is not " + wanted);
}

const TensorDesc& only_tensor(const OpCall& call, const Argument& argument, const std::string& what) {
  if (argument.tensors.size() != 1) {
    throw std::out_of_range(call.name + ": " + what + " holds " + std::to_string(argument.tensors.size()) +
                            " tensors, not one");
  }
  return argument.tensors.front();
}

std::int64_t elements_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const auto size : sizes) count = saturating_multiply(count, size);
  return count;
}

}  // namespace

bool lists_scalar(std::string_view declared, std::string_view name) {
  if (declared == "*") return true;
  while (!declared.empty()) {
    const auto comma = declared.find(',');
    std::string_view item = declared.substr(0, comma);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    if (item == name) return true;
    if (comma == std::string_view::npos) return false;
    declared.remove_prefix(comma + 1);
  }
  return false;
}

bool TensorDesc::is_known() const { return std::ranges::find(sizes, kUnknown) == sizes.end(); }

std::int64_t TensorDesc::numel() const {
  if (!is_nested()) return elements_of(sizes);
  std::int64_t count = 0;
  for (const auto& component : components) count = saturating_add(count, elements_of(component));
  return count;
}

std::int64_t TensorDesc::held_numel() const {
  if (is_sparse() || is_nested()) return stored_numel();
  std::int64_t count = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    // An expanded dimension of size 0 still makes the tensor empty.
    const bool held_once = i < expanded.size() && expanded[i] && sizes[i] > 0;
    count = saturating_multiply(count, held_once ? 1 : sizes[i]);
  }
  return count;
}

std::int64_t TensorDesc::stored_numel() const { return stored.value_or(numel()); }

std::int64_t TensorDesc::held_bytes() const {
  return saturating_add(saturating_multiply(held_numel(), item_bytes), index_bytes);
}

std::int64_t TensorDesc::size(int dim) const {
  const int index = dim < 0 ? dim + this->dim() : dim;
  if (index < 0 || index >= this->dim()) {
    throw std::out_of_range("dimension " + std::to_string(dim) + " of a tensor with " + std::to_string(this->dim()));
  }
  const std::int64_t size = sizes[static_cast<std::size_t>(index)];
  if (size == kRagged) throw std::out_of_range("dimension " + std::to_string(dim) + " is ragged: it has no one size");
  return size;
}

const TensorDesc& OpCall::tensor(std::size_t position) const {
  if (position >= arguments.size()) {
    throw std::out_of_range(name + ": no argument at position " + std::to_string(position));
  }
  return only_tensor(*this, arguments[position], "argument " + quoted(arguments[position].name));
}

const TensorDesc& OpCall::tensor(std::string_view argument) const {
  const Argument* found = find(argument);
  if (found == nullptr) throw std::out_of_range(name + ": no argument " + quoted(argument));
  return only_tensor(*this, *found, "argument " + quoted(argument));
}

const TensorDesc* OpCall::find_tensor(std::string_view argument) const {
  const Argument* found = find(argument);
  return found == nullptr || found->tensors.empty() ? nullptr : &found->tensors.front();
}

const std::vector<TensorDesc>& OpCall::tensors(std::string_view argument) const {
  const Argument* found = find(argument);
  if (found == nullptr) throw std::out_of_range(name + ": no argument " + quoted(argument));
  return found->tensors;
}

const TensorDesc& OpCall::result(std::size_t position) const {
  if (position >= results.size()) throw std::out_of_range(name + ": no result " + std::to_string(position));
  return only_tensor(*this, results[position], "result " + std::to_string(position));
}

bool OpCall::has_result(std::size_t position) const {
  return position < results.size() && !results[position].tensors.empty();
}

std::int64_t OpCall::integer(std::string_view argument, std::int64_t otherwise) const {
  const Scalar& scalar = declared(argument);
  if (std::holds_alternative<std::monostate>(scalar)) return otherwise;
  if (const auto* value = std::get_if<std::int64_t>(&scalar)) return *value;
  if (const auto* value = std::get_if<bool>(&scalar)) return *value ? 1 : 0;
  const auto* list = std::get_if<std::vector<std::int64_t>>(&scalar);
  if (list != nullptr && list->size() == 1) return list->front();
  throw_wrong_type(*this, argument, "an integer");
}

bool OpCall::boolean(std::string_view argument, bool otherwise) const {
  const Scalar& scalar = declared(argument);
  if (std::holds_alternative<std::monostate>(scalar)) return otherwise;
  if (const auto* value = std::get_if<bool>(&scalar)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&scalar)) return *value != 0;
  throw_wrong_type(*this, argument, "a boolean");
}

double OpCall::number(std::string_view argument, double otherwise) const {
  const Scalar& scalar = declared(argument);
  if (std::holds_alternative<std::monostate>(scalar)) return otherwise;
  if (const auto* value = std::get_if<double>(&scalar)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&scalar)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<bool>(&scalar)) return *value ? 1.0 : 0.0;
  throw_wrong_type(*this, argument, "a number");
}

std::vector<std::int64_t> OpCall::integers(std::string_view argument) const {
  const Scalar& scalar = declared(argument);
  if (std::holds_alternative<std::monostate>(scalar)) return {};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&scalar)) return *list;
  if (const auto* value = std::get_if<std::int64_t>(&scalar)) return {*value};
  throw_wrong_type(*this, argument, "a list of integers");
}

std::vector<double> OpCall::numbers(std::string_view argument) const {
  const Scalar& scalar = declared(argument);
  if (std::holds_alternative<std::monostate>(scalar)) return {};
  if (const auto* list = std::get_if<std::vector<double>>(&scalar)) return *list;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&scalar)) return {list->begin(), list->end()};
  return {number(argument, 0)};
}

std::string OpCall::text(std::string_view argument) const {
  const Scalar& scalar = declared(argument);
  if (std::holds_alternative<std::monostate>(scalar)) return {};
  if (const auto* value = std::get_if<std::string>(&scalar)) return *value;
  throw_wrong_type(*this, argument, "a string");
}

DType OpCall::compute_dtype() const {
  const TensorDesc* first = nullptr;
  for (const auto* list : {&arguments, &results}) {
    for (const auto& argument : *list) {
      for (const auto& tensor : argument.tensors) {
        if (first == nullptr) first = &tensor;
        if (is_floating(tensor.dtype)) return tensor.dtype;
      }
    }
    // Results decide only where the call takes no tensor: factories.
    if (first != nullptr) return first->dtype;
  }
  return DType::other;
}

const Argument* OpCall::find(std::string_view argument) const {
  for (const auto& candidate : arguments) {
    if (candidate.name == argument) return &candidate;
  }
  return nullptr;
}

const Scalar& OpCall::declared(std::string_view argument) const {
  static const Scalar kNone;
  if (!lists_scalar(declared_scalars, argument)) {
    throw std::logic_error(name + ": its cost reads '" + std::string(argument) + "', which its line does not declare");
  }
  const Argument* found = find(argument);
  return found == nullptr ? kNone : found->scalar;
}

}  // namespace roofprof::ops
