// Arithmetic, comparisons and elementary functions on whole tensors; the same on lists of tensors and in the fused
// steps of optimizers. Operators that torch tags as pointwise and that are not listed here cost one operation per
// element.

#include <algorithm>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- tensors

// A complex addition is two real ones.
void per_component(const OpCall& call, std::int64_t weight, Work& work) {
  per_output(call, call.has_result(0) && call.result(0).is_complex ? 2 * weight : weight, work);
}

// A sparse tensor added in place to a dense one (a step along a sparse gradient) touches only where it stores values.
void sum_bytes(const OpCall& call, Work& work) {
  const TensorDesc* self = call.find_tensor("self");
  const TensorDesc* other = call.find_tensor("other");
  const bool touches_some =
      self != nullptr && other != nullptr && call.arguments.front().written && other->is_sparse() && !self->is_sparse();
  if (!touches_some) return compulsory_bytes(call, work);
  work.write_bytes = product({std::min(other->stored_numel(), self->held_numel()), self->item_bytes});
  work.updated_bytes = work.write_bytes;
  work.read_bytes = saturating_add(work.write_bytes, other->held_bytes());
}

// Complex by complex: 4 multiplications and 2 additions; complex by real: 2 multiplications.
void multiply(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc* other = call.find_tensor("other");
  const bool complex_pair = call.tensor(0).is_complex && other != nullptr && other->is_complex;
  if (complex_pair) return per_output(call, 6 * weight, work);
  per_component(call, weight, work);
}

// Counts a division. By a complex number it takes a product with its conjugate 6, its squared magnitude 3, two
// divisions.
void divide(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc* other = call.find_tensor("other");
  if (other != nullptr && other->is_complex) return per_output(call, 11 * weight, work);
  per_component(call, weight, work);
}

// A quotient that is rounded (rounding_mode) is one more operation.
void divide_and_round(const OpCall& call, std::int64_t weight, Work& work) {
  divide(call, call.text("rounding_mode").empty() ? weight : 2 * weight, work);
}

// round(decimals=): scaled before and after.
void round_to_decimals(const OpCall& call, std::int64_t weight, Work& work) {
  per_output(call, call.integer("decimals", 0) == 0 ? weight : 3 * weight, work);
}

// A real number is its own conjugate, and comes back as the same tensor.
void conjugate(const OpCall& call, std::int64_t weight, Work& work) {
  if (call.tensor(0).is_complex) per_output(call, weight, work);
}

void conjugate_bytes(const OpCall& call, Work& work) {
  if (call.tensor(0).is_complex) compulsory_bytes(call, work);
}

// The logarithms of gamma at p values, which are made and added up, and a constant.
void multivariate_log_gamma(const OpCall& call, std::int64_t weight, Work& work) {
  per_output(call, saturating_multiply(weight, call.integer("p", 1)) + 1, work);
}

// Counts one comparison for each bound that is given, as a number or as a tensor.
void clamp(const OpCall& call, std::int64_t weight, Work& work) {
  std::int64_t bounds = 0;
  for (const char* bound : {"min", "max"}) {
    if (call.find_tensor(bound) != nullptr || gives_number(call, bound)) ++bounds;
  }
  per_output(call, bounds * weight, work);
}

// where(condition) alone is another operator: it lists the positions of what is not zero.
void where(const OpCall& call, std::int64_t weight, Work& work) {
  if (call.arguments.size() == 1) return per_input(call, weight, work);
  per_output(call, weight, work);
}

// max(x, y) compares two tensors, max(x) and max(x, dim) look for the largest element.
void pairwise_or_reduce(const OpCall& call, std::int64_t weight, Work& work) {
  if (call.find_tensor("other") != nullptr) return per_output(call, weight, work);
  per_input(call, weight, work);
}

// ---- lists of tensors

// Squares (powers, magnitudes) and their sum, then one root per tensor.
void list_norm(const OpCall& call, std::int64_t weight, Work& work) {
  per_input(call, weight, work);
  add_operations(work, static_cast<std::int64_t>(call.tensors("self").size()), call.compute_dtype());
}

// ---- fused optimizer steps

// Operations per parameter, without those that the options ask for: the gradient negated (maximize) or unscaled.
std::int64_t gradient_options(const OpCall& call) {
  return (call.boolean("maximize", false) ? 1 : 0) + (call.find_tensor("grad_scale") != nullptr ? 1 : 0);
}

// `weight` is for what weight decay costs: into the gradient 2 (Adam), onto the parameter 1 (AdamW).
void adam(const OpCall& call, std::int64_t weight, Work& work) {
  const std::int64_t decay = call.number("weight_decay", 0) != 0 ? weight : 0;
  const std::int64_t largest = call.boolean("amsgrad", false) ? 1 : 0;
  per_input(call, 13 + decay + largest + gradient_options(call), work);
}

void sgd(const OpCall& call, std::int64_t weight, Work& work) {
  std::int64_t each = weight + gradient_options(call);
  if (call.number("weight_decay", 0) != 0) each += 2;
  // Momentum by its buffers, not by its value: schedules change the value from step to step.
  if (!call.tensors("momentum_buffer_list").empty()) {
    if (!call.boolean("is_first_step", false)) each += call.number("dampening", 0) != 0 ? 3 : 2;
    if (call.boolean("nesterov", false)) each += 2;
  }
  per_input(call, each, work);
}

void adagrad(const OpCall& call, std::int64_t weight, Work& work) {
  per_input(call, weight + (call.number("weight_decay", 0) != 0 ? 2 : 0) + gradient_options(call), work);
}

// The schema says that gradients are written; they are only where they are unscaled. The first step of momentum writes
// the buffer without reading it.
void step_bytes(const OpCall& call, Work& work) {
  const bool unscaled = call.find_tensor("grad_scale") != nullptr;
  for (const auto& argument : call.arguments) {
    const bool fresh = argument.name == "momentum_buffer_list" && call.boolean("is_first_step", false);
    if (!fresh) read(work, argument.tensors);
    if (!argument.written || (argument.name == "grads" && !unscaled)) continue;
    for (const auto& tensor : argument.tensors)
      work.write_bytes = saturating_add(work.write_bytes, tensor.held_bytes());
  }
}

constexpr std::string_view kSgdOptions = "weight_decay,dampening,nesterov,maximize,is_first_step";

constexpr OpCost kElementwiseCosts[] = {
    // Arithmetic. alpha is not looked at: it changes with every step of a learning-rate schedule.
    {"aten::add", per_component, 1, sum_bytes, "", "x + y; a complex one is 2"},
    {"aten::sub", per_component, 1, sum_bytes, "", "x - y; a complex one is 2"},
    {"aten::rsub", per_component, 1, nullptr, "", "y - x; a complex one is 2"},
    {"aten::mul", multiply, 1, nullptr, "", "x * y; two complex numbers 6, complex by real 2"},
    {"prim::MKLDNNScalarMul", per_output, 1, nullptr, "", "x * y"},  // TorchScript's own
    {"aten::div", divide_and_round, 1, nullptr, "rounding_mode", "x / y, 1 more if rounded; by a complex number 11"},
    {"aten::floor_divide", per_output, 2, nullptr, "", "floor(x / y)"},
    {"aten::remainder", per_output, 1, nullptr, "", "x mod y"},
    {"aten::neg", per_component, 1, nullptr, "", "-x"},
    {"aten::abs", per_output, 1, nullptr, "", "abs(x)"},
    {"aten::sign", per_output, 1, nullptr, "", "-1, 0 or 1"},
    {"aten::sgn", per_output, 1, nullptr, "", "-1, 0 or 1; of a complex number its direction"},
    {"aten::floor", per_output, 1, nullptr, "", "rounded down"},
    {"aten::ceil", per_output, 1, nullptr, "", "rounded up"},
    {"aten::round", round_to_decimals, 1, nullptr, "decimals", "rounded to nearest; to decimals 3"},
    {"aten::frac", per_output, 2, nullptr, "", "x - trunc(x)"},
    {"aten::reciprocal", per_output, 1, nullptr, "", "1 / x"},
    {"aten::square", per_output, 1, nullptr, "", "x * x"},
    {"aten::addcmul", per_output, 3, nullptr, "", "x + value * y * z"},
    {"aten::addcdiv", per_output, 3, nullptr, "", "x + value * y / z"},
    {"aten::lerp", per_output, 3, nullptr, "", "x + weight * (y - x)"},
    {"aten::linalg_cross", per_output, 3, nullptr, "", "two products and their difference"},
    {"aten::copysign", per_output, 1, nullptr, "", "x with the sign of y"},
    {"aten::heaviside", per_output, 2, nullptr, "", "x < 0 ? 0 : x > 0 ? 1 : value"},
    {"aten::gcd aten::lcm", per_output, 1, nullptr, "", "one function of two integers"},
    {"aten::__irshift__", per_output, 1, nullptr, "", "x >> y"},
    {"aten::conj_physical", conjugate, 1, conjugate_bytes, "", "the imaginary part negated; real numbers nothing"},
    {"aten::_conj_physical", per_output, 1, nullptr, "", "the imaginary part negated"},
    {"aten::_add_relu", per_output, 2, nullptr, "", "max(x + y, 0)"},
    {"aten::polar", per_output, 4, nullptr, "", "r * cos(a), r * sin(a)"},

    // Elementary functions, one operation each.
    {"aten::sqrt", per_output, 1, nullptr, "", "sqrt(x)"},
    {"aten::rsqrt", per_output, 1, nullptr, "", "1 / sqrt(x), one function"},
    {"aten::pow", per_output, 1, nullptr, "", "x ^ y, one function"},
    {"aten::exp", per_output, 1, nullptr, "", "exp(x)"},
    {"aten::log", per_output, 1, nullptr, "", "log(x)"},
    {"aten::log2", per_output, 1, nullptr, "", "log2(x)"},
    {"aten::sin", per_output, 1, nullptr, "", "sin(x)"},
    {"aten::cos", per_output, 1, nullptr, "", "cos(x)"},
    {"aten::erf", per_output, 1, nullptr, "", "erf(x)"},
    {"aten::_standard_gamma_grad", per_output, 1, nullptr, "", "one function of x and the sample"},
    {"aten::_dirichlet_grad", per_output, 1, nullptr, "", "one function of x, concentration and their total"},
    {"aten::ldexp", per_output, 2, nullptr, "", "x * 2 ^ y"},
    {"aten::xlogy", per_output, 3, nullptr, "", "x == 0 ? 0 : x * log(y)"},
    {"aten::special_xlogy", per_output, 3, nullptr, "", "as xlogy"},
    {"aten::special_xlog1py", per_output, 3, nullptr, "", "x == 0 ? 0 : x * log1p(y)"},
    {"aten::special_entr", per_output, 5, nullptr, "", "x > 0 ? -x * log(x) : x == 0 ? 0 : -inf"},
    {"aten::special_log_ndtr", per_output, 7, nullptr, "", "x < -1 ? log(erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2)"},
    {"aten::logaddexp", per_output, 6, nullptr, "", "max(x, y) + log1p(exp(-abs(x - y)))"},
    {"aten::logaddexp2", per_output, 7, nullptr, "", "max(x, y) + log1p(exp2(-abs(x - y))) / ln(2)"},
    {"aten::sinc", per_output, 4, nullptr, "", "x == 0 ? 1 : sin(pi * x) / (pi * x)"},
    {"aten::special_sinc", per_output, 4, nullptr, "", "as sinc"},
    {"aten::mvlgamma", multivariate_log_gamma, 3, nullptr, "p", "3 p + 1: sum of lgamma(x + (1 - j) / 2), j to p"},
    {"aten::special_multigammaln", multivariate_log_gamma, 3, nullptr, "p", "as mvlgamma"},

    // Comparisons and selections.
    {"aten::eq", per_output, 1, nullptr, "", "x == y"},
    {"aten::ne", per_output, 1, nullptr, "", "x != y"},
    {"aten::lt", per_output, 1, nullptr, "", "x < y"},
    {"aten::le", per_output, 1, nullptr, "", "x <= y"},
    {"aten::gt", per_output, 1, nullptr, "", "x > y"},
    {"aten::ge", per_output, 1, nullptr, "", "x >= y"},
    {"aten::equal", per_input, 1, nullptr, "", "x == y everywhere"},
    {"aten::isfinite", per_output, 3, nullptr, "", "x == x and abs(x) != inf"},
    {"aten::isinf", per_output, 2, nullptr, "", "abs(x) == inf"},
    {"aten::logical_and", per_output, 1, nullptr, "", "x and y"},
    {"aten::logical_or", per_output, 1, nullptr, "", "x or y"},
    {"aten::logical_not", per_output, 1, nullptr, "", "not x"},
    {"aten::bitwise_and", per_output, 1, nullptr, "", "x & y"},
    {"aten::bitwise_or", per_output, 1, nullptr, "", "x | y"},
    {"aten::bitwise_not", per_output, 1, nullptr, "", "~x"},
    {"aten::maximum", per_output, 1, nullptr, "", "max(x, y)"},
    {"aten::minimum", per_output, 1, nullptr, "", "min(x, y)"},
    {"aten::max", pairwise_or_reduce, 1, nullptr, "", "1 per element of max(x, y), or per input element"},
    {"aten::min", pairwise_or_reduce, 1, nullptr, "", "1 per element of min(x, y), or per input element"},
    {"aten::clamp aten::clip", clamp, 1, nullptr, "min,max", "1 for each bound that is given"},
    {"aten::clamp_min", per_output, 1, nullptr, "", "max(x, bound)"},
    {"aten::clamp_max", per_output, 1, nullptr, "", "min(x, bound)"},
    {"aten::where", where, 1, nullptr, "", "c ? x : y; alone 1 per element of the condition"},
    {"aten::nan_to_num", per_output, 3, nullptr, "", "nan, +inf and -inf each compared"},

    // Lists of tensors: every tensor of the list, once.
    {"aten::_foreach_add", per_output, 1, nullptr, "", "x + y"},
    {"aten::_foreach_sub", per_output, 1, nullptr, "", "x - y"},
    {"aten::_foreach_mul", per_output, 1, nullptr, "", "x * y"},
    {"aten::_foreach_div", per_output, 1, nullptr, "", "x / y"},
    {"aten::_foreach_addcmul", per_output, 3, nullptr, "", "x + value * y * z"},
    {"aten::_foreach_addcdiv", per_output, 3, nullptr, "", "x + value * y / z"},
    {"aten::_foreach_lerp", per_output, 3, nullptr, "", "x + weight * (y - x)"},
    {"aten::_foreach_neg", per_output, 1, nullptr, "", "-x"},
    {"aten::_foreach_abs", per_output, 1, nullptr, "", "abs(x)"},
    {"aten::_foreach_sign", per_output, 1, nullptr, "", "sign(x)"},
    {"aten::_foreach_reciprocal", per_output, 1, nullptr, "", "1 / x"},
    {"aten::_foreach_sqrt", per_output, 1, nullptr, "", "sqrt(x)"},
    {"aten::_foreach_rsqrt", per_output, 1, nullptr, "", "1 / sqrt(x), one function"},
    {"aten::_foreach_pow", per_output, 1, nullptr, "", "x ^ y, one function"},
    {"aten::_foreach_exp", per_output, 1, nullptr, "", "exp(x)"},
    {"aten::_foreach_log", per_output, 1, nullptr, "", "log(x)"},
    {"aten::_foreach_tanh", per_output, 1, nullptr, "", "tanh(x)"},
    {"aten::_foreach_acos", per_output, 1, nullptr, "", "acos(x)"},
    {"aten::_foreach_asin", per_output, 1, nullptr, "", "asin(x)"},
    {"aten::_foreach_atan", per_output, 1, nullptr, "", "atan(x)"},
    {"aten::_foreach_ceil", per_output, 1, nullptr, "", "ceil(x)"},
    {"aten::_foreach_cos", per_output, 1, nullptr, "", "cos(x)"},
    {"aten::_foreach_cosh", per_output, 1, nullptr, "", "cosh(x)"},
    {"aten::_foreach_erf", per_output, 1, nullptr, "", "erf(x)"},
    {"aten::_foreach_erfc", per_output, 1, nullptr, "", "erfc(x)"},
    {"aten::_foreach_expm1", per_output, 1, nullptr, "", "expm1(x)"},
    {"aten::_foreach_floor", per_output, 1, nullptr, "", "floor(x)"},
    {"aten::_foreach_frac", per_output, 1, nullptr, "", "frac(x)"},
    {"aten::_foreach_lgamma", per_output, 1, nullptr, "", "lgamma(x)"},
    {"aten::_foreach_log10", per_output, 1, nullptr, "", "log10(x)"},
    {"aten::_foreach_log1p", per_output, 1, nullptr, "", "log1p(x)"},
    {"aten::_foreach_log2", per_output, 1, nullptr, "", "log2(x)"},
    {"aten::_foreach_round", per_output, 1, nullptr, "", "round(x)"},
    {"aten::_foreach_sin", per_output, 1, nullptr, "", "sin(x)"},
    {"aten::_foreach_sinh", per_output, 1, nullptr, "", "sinh(x)"},
    {"aten::_foreach_tan", per_output, 1, nullptr, "", "tan(x)"},
    {"aten::_foreach_trunc", per_output, 1, nullptr, "", "trunc(x)"},
    {"aten::_foreach_sigmoid", per_output, 4, nullptr, "", "1 / (1 + exp(-x))"},
    {"aten::_foreach_maximum aten::_foreach_clamp_min", per_output, 1, nullptr, "", "max(x, y)"},
    {"aten::_foreach_minimum aten::_foreach_clamp_max", per_output, 1, nullptr, "", "min(x, y)"},
    {"aten::_foreach_max", per_input, 1, nullptr, "", "1 comparison per element"},
    {"aten::_foreach_norm", list_norm, 2, nullptr, "", "a power and an addition per element, a root per tensor"},
    {"aten::_foreach_powsum", per_input, 2, nullptr, "", "a power and an addition per element"},
    {"aten::_foreach_zero", no_operations, 0, overwriting_bytes, "", "written only"},
    {"aten::_foreach_copy", no_operations, 0, overwriting_bytes, "", "copied"},
    {"aten::_foreach_clone", no_operations, 0, nullptr, "", "copied"},
    {"aten::_amp_foreach_non_finite_check_and_unscale", per_input, 2, nullptr, "", "is x finite, x * scale"},
    {"aten::_amp_update_scale", per_input, 2, nullptr, "", "a comparison and a multiplication"},

    // Fused optimizer steps.
    {"aten::_fused_adam_", adam, 2, step_bytes, "weight_decay,amsgrad,maximize", "13: moments 3 + 4, root 3, update 3"},
    {"aten::_fused_adamw_", adam, 1, step_bytes, "weight_decay,amsgrad,maximize", "13: as adam; decay 1 for 2"},
    {"aten::_fused_sgd_", sgd, 2, step_bytes, kSgdOptions, "x - lr * g"},
    {"aten::_fused_adagrad_", adagrad, 7, step_bytes, "weight_decay,maximize", "7: sum 2, update 5; decay 2"},
};

}  // namespace

std::span<const OpCost> elementwise_costs() { return kElementwiseCosts; }

}  // namespace roofprof::ops
