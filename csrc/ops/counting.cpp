#include "ops/counting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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

// Overloads of out= forms have many names (out, Tensor_out, grad_input, values, ...). What tells them from in-place
// forms is that the operator's name has no trailing "_" and still a written argument is returned.
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

// An out= tensor may be given with any size: what came back tells how much was written. These are the last of the
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

}  // namespace roofprof::ops
