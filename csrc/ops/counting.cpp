#include "ops/counting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/registry.h"
#include "roofprof/op_call.h"
#include "roofprof/work.h"

namespace roofprof::ops {

namespace {

std::int64_t elements(std::span<const TensorDesc> tensors) {
  std::int64_t count = 0;
  for (const auto& tensor : tensors) count = saturating_add(count, tensor.stored_numel());
  return count;
}

const Argument* first_with_tensors(const std::vector<Argument>& arguments, bool only_written = false) {
  for (const auto& argument : arguments) {
    if (!argument.tensors.empty() && (argument.written || !only_written)) return &argument;
  }
  return nullptr;
}

const Argument* sparse_beside(const OpCall& call, const Argument& output) {
  if (output.tensors.front().is_sparse()) return nullptr;
  for (const auto& argument : call.arguments) {
    if (argument.tensors.size() == 1 && argument.tensors.front().is_sparse()) return &argument;
  }
  return nullptr;
}

void add_per_element(const OpCall& call, std::int64_t weight, const Argument* argument, Work& work) {
  if (argument == nullptr) return;
  add_operations(work, saturating_multiply(weight, elements(argument->tensors)), call.compute_dtype());
}

// Overloads of out= forms have many names (out, Tensor_out, grad_input, values, ...). They differ from in-place forms
// in that the operator's name has no trailing "_" and a written argument is returned all the same.
bool is_out_form(const OpCall& call) {
  if (call.overload == "out" || call.overload.ends_with("_out")) return true;
  if (call.name.ends_with('_')) return false;
  for (const auto& result : call.results) {
    if (result.written) return true;
  }
  return false;
}

void write(Work& work, std::span<const TensorDesc> tensors) {
  for (const auto& tensor : tensors) work.write_bytes = saturating_add(work.write_bytes, tensor.held_bytes());
}

}  // namespace

void no_operations(const OpCall& /*call*/, std::int64_t /*weight*/, Work& /*work*/) {}

void per_output(const OpCall& call, std::int64_t weight, Work& work) {
  const Argument* output = first_with_tensors(call.results);
  // List operators in place (_foreach_add_) return nothing: their output is what they write.
  if (output == nullptr) output = first_with_tensors(call.arguments, /*only_written=*/true);
  // A dense result of a sparse operand (a dense tensor plus a sparse one) is touched where values are stored.
  const Argument* sparse = output == nullptr ? nullptr : sparse_beside(call, *output);
  add_per_element(call, weight, sparse != nullptr ? sparse : output, work);
}

void per_input(const OpCall& call, std::int64_t weight, Work& work) {
  add_per_element(call, weight, first_with_tensors(call.arguments), work);
}

void add_macs(Work& work, std::int64_t macs, const TensorDesc& operand) { add_causal_macs(work, macs, macs, operand); }

void add_causal_macs(Work& work, std::int64_t macs, std::int64_t causal, const TensorDesc& operand) {
  const std::int64_t real_macs = operand.is_complex ? 4 : 1;
  macs = saturating_multiply(macs, real_macs);
  work.macs = saturating_add(work.macs, macs);
  work.causal_macs = saturating_add(work.causal_macs, saturating_multiply(causal, real_macs));
  add_operations(work, saturating_multiply(2, macs), operand.dtype);
}

void add_operations(Work& work, std::int64_t operations, DType dtype) {
  work.operations_in(dtype) = saturating_add(work.operations_in(dtype), operations);
}

bool wants_gradient(const OpCall& call, std::size_t position) {
  const std::vector<std::int64_t> mask = call.integers("output_mask");
  return mask.empty() || mask.at(position) != 0;
}

std::int64_t blend_operations(const OpCall& call) {
  const double beta = call.number("beta", 1);
  const double alpha = call.number("alpha", 1);
  return (beta != 0 ? 1 : 0) + (beta != 0 && beta != 1 ? 1 : 0) + (alpha != 1 ? 1 : 0);
}

bool gives_number(const OpCall& call, std::string_view argument) {
  return !std::isnan(call.number(argument, std::numeric_limits<double>::quiet_NaN()));
}

std::int64_t causal_pairs(std::int64_t queries, std::int64_t keys) {
  const std::int64_t square = std::min(queries, keys);
  return saturating_add(product({square, square + 1}) / 2, product({queries, keys - square}));
}

std::int64_t ceil_log2(std::int64_t n) {
  return n <= 1 ? 0 : static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

std::int64_t product(std::span<const std::int64_t> factors) {
  std::int64_t result = 1;
  for (const auto factor : factors) result = saturating_multiply(result, factor);
  return result;
}

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  return product(std::span<const std::int64_t>(factors.begin(), factors.size()));
}

std::int64_t taps(const TensorDesc& weight) { return product(std::span<const std::int64_t>(weight.sizes).subspan(1)); }

void compulsory_bytes(const OpCall& call, Work& work) {
  const bool out_form = is_out_form(call);
  for (const auto& argument : call.arguments) {
    if (argument.written && out_form) continue;
    read(work, argument.tensors);
    if (!argument.written) continue;
    for (const auto& tensor : argument.tensors) {
      work.updated_bytes = saturating_add(work.updated_bytes, tensor.held_bytes());
    }
  }
  write_results(call, work);
}

void no_bytes(const OpCall& /*call*/, Work& /*work*/) {}

void overwriting_bytes(const OpCall& call, Work& work) {
  for (const auto& argument : call.arguments) {
    if (!argument.written) read(work, argument.tensors);
  }
  write_results(call, work);
}

void part_copied_bytes(const OpCall& call, Work& work) {
  write_results(call, work);
  work.read_bytes = std::min(call.tensor(std::size_t{0}).held_bytes(), work.write_bytes);
}

void read(Work& work, const TensorDesc* tensor) {
  if (tensor != nullptr) read(work, std::span<const TensorDesc>(tensor, 1));
}

void read(Work& work, std::span<const TensorDesc> tensors) {
  for (const auto& tensor : tensors) {
    if (!tensor.repeated) work.read_bytes = saturating_add(work.read_bytes, tensor.held_bytes());
  }
}

// An out= tensor may be given with any size: the results show how much was written. Such tensors are the last of the
// written arguments; others (running statistics) come before them.
void write_results(const OpCall& call, Work& work) {
  const bool out_form = is_out_form(call);
  const auto is_written = [](const Argument& argument) { return argument.written; };
  const auto returned = out_form ? std::ranges::count_if(call.results, is_written) : 0;
  auto kept = std::ranges::count_if(call.arguments, is_written) - returned;
  for (const auto& argument : call.arguments) {
    if (argument.written && kept-- > 0) write(work, argument.tensors);
  }
  for (const auto& result : call.results) {
    if (out_form || !result.written) write(work, result.tensors);
  }
}

namespace {

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

[[noreturn]] void throw_wrong_type(const OpCall& call, std::string_view argument, const char* wanted) {
  throw LogicError(call.name + ": argument " + in_quotes(argument) + " is not " + wanted);
}

const TensorDesc& only_tensor(const OpCall& call, const Argument& argument, const std::string& what) {
  if (argument.tensors.size() != 1) {
    throw OutOfRange(call.name + ": " + what + " holds " + std::to_string(argument.tensors.size()) +
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
    throw OutOfRange("dimension " + std::to_string(dim) + " of a tensor with " + std::to_string(this->dim()));
  }
  const std::int64_t size = sizes[static_cast<std::size_t>(index)];
  if (size == kRagged) throw OutOfRange("dimension " + std::to_string(dim) + " is ragged: it has no one size");
  return size;
}

const TensorDesc& OpCall::tensor(std::size_t position) const {
  if (position >= arguments.size()) {
    throw OutOfRange(name + ": no argument at position " + std::to_string(position));
  }
  return only_tensor(*this, arguments[position], "argument " + in_quotes(arguments[position].name));
}

const TensorDesc& OpCall::tensor(std::string_view argument) const {
  const Argument* found = find(argument);
  if (found == nullptr) throw OutOfRange(name + ": no argument " + in_quotes(argument));
  return only_tensor(*this, *found, "argument " + in_quotes(argument));
}

const TensorDesc* OpCall::find_tensor(std::string_view argument) const {
  const Argument* found = find(argument);
  return found == nullptr || found->tensors.empty() ? nullptr : &found->tensors.front();
}

const std::vector<TensorDesc>& OpCall::tensors(std::string_view argument) const {
  const Argument* found = find(argument);
  if (found == nullptr) throw OutOfRange(name + ": no argument " + in_quotes(argument));
  return found->tensors;
}

const TensorDesc& OpCall::result(std::size_t position) const {
  if (position >= results.size()) throw OutOfRange(name + ": no result " + std::to_string(position));
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
  bool by_result = false;
  for (const auto* list : {&arguments, &results}) {
    for (const auto& argument : *list) {
      for (const auto& tensor : argument.tensors) {
        if (first == nullptr) first = &tensor;
        if (!is_floating(tensor.dtype)) continue;
        if (tensor.item_bytes > 0) return tensor.dtype;
        by_result = true;  // a Python number, which changes the result's type and has none itself
      }
    }
    // Else results decide only where the call takes no tensor: factories.
    if (first != nullptr && !by_result) return first->dtype;
  }
  return first != nullptr ? first->dtype : DType::other;
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
    throw LogicError(name + ": its cost reads '" + std::string(argument) + "', which its line does not declare");
  }
  const bool of_tensor = argument.ends_with(kLastValue);
  const Argument* found = find(argument.substr(0, argument.size() - (of_tensor ? kLastValue.size() : 0)));
  return found == nullptr ? kNone : found->scalar;
}

}  // namespace roofprof::ops
