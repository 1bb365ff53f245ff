#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// On 2 x 3 floats: 6 elements, 24 bytes a tensor.
CostCase unary(const char* op, std::int64_t flops) {
  return {Call(op).in("self", fp32, {2, 3}).out(fp32, {2, 3}), {.flops = flops, .read_bytes = 24, .write_bytes = 24}};
}

CostCase binary(const char* op, std::int64_t flops) {
  return {Call(op).in("self", fp32, {2, 3}).in("other", fp32, {2, 3}).out(fp32, {2, 3}),
          {.flops = flops, .read_bytes = 48, .write_bytes = 24}};
}

CostCase ternary(const char* op, std::int64_t flops) {
  return {Call(op).in("self", fp32, {2, 3}).in("tensor1", fp32, {2, 3}).in("tensor2", fp32, {2, 3}).out(fp32, {2, 3}),
          {.flops = flops, .read_bytes = 72, .write_bytes = 24}};
}

// Comparisons are done in floats, their result is one byte per element.
CostCase comparison(const char* op) {
  return {Call(op).in("self", fp32, {2, 3}).in("other", fp32, {2, 3}).out(boolean, {2, 3}),
          {.flops = 6, .read_bytes = 48, .write_bytes = 6}};
}

CostCase logical(const char* op) {
  return {Call(op).in("self", boolean, {2, 3}).in("other", boolean, {2, 3}).out(boolean, {2, 3}),
          {.int_ops = 6, .read_bytes = 12, .write_bytes = 6}};
}

// Both complex64, 6 elements of 8 bytes.
CostCase complex_pair(const char* op, std::int64_t flops) {
  return {Call(op).in("self", fp32, {2, 3}).complex().in("other", fp32, {2, 3}).complex().out(fp32, {2, 3}).complex(),
          {.flops = flops, .read_bytes = 96, .write_bytes = 48}};
}

CostCase bounded(const char* op, const Call& call, std::int64_t flops) {
  OpCall built = call;
  built.name = op;
  return {built, {.flops = flops, .read_bytes = 24, .write_bytes = 24}};
}

Call clamp_call() { return Call("").in("self", fp32, {2, 3}).out(fp32, {2, 3}); }

// Lists: 4 x 5 and 10 floats, 30 elements, 120 bytes a list.
std::vector<TensorDesc> two_tensors() { return {tensor(fp32, {4, 5}), tensor(fp32, {10})}; }

CostCase list_unary(const char* op, std::int64_t flops) {
  return {Call(op).list("self", two_tensors()).out_list(two_tensors()),
          {.flops = flops, .read_bytes = 120, .write_bytes = 120}};
}

CostCase list_binary(const char* op, std::int64_t flops) {
  return {Call(op).list("self", two_tensors()).list("other", two_tensors()).out_list(two_tensors()),
          {.flops = flops, .read_bytes = 240, .write_bytes = 120}};
}

// In place a list operator returns nothing.
CostCase list_update(const char* op, std::int64_t flops) {
  return {Call(op).list("self", two_tensors()).written().list("tensor1", two_tensors()).list("tensor2", two_tensors()),
          {.flops = flops, .read_bytes = 360, .write_bytes = 120}};
}

// Two parameters, 30 elements; the step counters are one float each.
Call adam_call(const char* op, double weight_decay, bool amsgrad, bool maximize) {
  Call call(op);
  call.list("self", two_tensors()).written().list("grads", two_tensors()).written();
  call.list("exp_avgs", two_tensors()).written().list("exp_avg_sqs", two_tensors()).written();
  call.list("max_exp_avg_sqs", amsgrad ? two_tensors() : std::vector<TensorDesc>{}).written();
  call.list("state_steps", {tensor(fp32, {}), tensor(fp32, {})});
  return call.scalar("weight_decay", weight_decay).scalar("amsgrad", amsgrad).scalar("maximize", maximize);
}

Call sgd_call(double weight_decay, bool momentum, double dampening, bool nesterov, bool first) {
  Call call("aten::_fused_sgd_");
  call.list("self", two_tensors()).written().list("grads", two_tensors()).written();
  call.list("momentum_buffer_list", momentum ? two_tensors() : std::vector<TensorDesc>{}).written();
  call.scalar("weight_decay", weight_decay).scalar("dampening", dampening).scalar("nesterov", nesterov);
  return call.scalar("maximize", false).scalar("is_first_step", first);
}

Call adagrad_call(double weight_decay, bool maximize) {
  Call call("aten::_fused_adagrad_");
  call.list("self", two_tensors()).written().list("grads", two_tensors()).written();
  call.list("state_sums", two_tensors()).written().list("state_steps", {tensor(fp32, {}), tensor(fp32, {})});
  return call.scalar("weight_decay", weight_decay).scalar("maximize", maximize);
}

const std::vector<CostCase> kTensorCases = {
    binary("aten::add", 6),
    // Broadcast: what is held is read once, the result is computed whole.
    {Call("aten::add").in("self", fp32, {4, 2, 3}).in("other", fp32, {3}).out(fp32, {4, 2, 3}),
     {.flops = 24, .read_bytes = 96 + 12, .write_bytes = 96}},
    // x + x: one tensor.
    {Call("aten::add").in("self", fp32, {2, 3}).in("other", fp32, {2, 3}).repeated().out(fp32, {2, 3}),
     {.flops = 6, .read_bytes = 24, .write_bytes = 24}},
    // In place reads both; out= writes only.
    {Call("aten::add_").in("self", fp32, {2, 3}).written().in("other", fp32, {2, 3}).out(fp32, {2, 3}).written(),
     {.flops = 6, .read_bytes = 48, .write_bytes = 24}},
    {Call("aten::add")
         .overload("out")
         .in("self", fp32, {2, 3})
         .in("other", fp32, {2, 3})
         .in("out", fp32, {2, 3})
         .written()
         .out(fp32, {2, 3})
         .written(),
     {.flops = 6, .read_bytes = 48, .write_bytes = 24}},
    {Call("aten::add").in("self", int64, {2, 3}).in("other", int64, {2, 3}).out(int64, {2, 3}),
     {.int_ops = 6, .read_bytes = 96, .write_bytes = 48}},
    complex_pair("aten::add", 12),
    binary("aten::sub", 6),
    binary("aten::rsub", 6),
    binary("aten::mul", 6),
    unary("prim::MKLDNNScalarMul", 6),
    complex_pair("aten::mul", 36),
    {Call("aten::mul").in("self", fp32, {2, 3}).complex().in("other", fp32, {2, 3}).out(fp32, {2, 3}).complex(),
     {.flops = 12, .read_bytes = 48 + 24, .write_bytes = 48}},
    // A Python number is no tensor.
    {Call("aten::mul").in("self", bf16, {2, 3}).scalar("other", 0.5).out(bf16, {2, 3}),
     {.flops = 6, .read_bytes = 12, .write_bytes = 12}},
    binary("aten::div", 6),
    complex_pair("aten::div", 66),
    {Call("aten::div").in("self", fp32, {2, 3}).scalar("rounding_mode", "floor").out(fp32, {2, 3}),
     {.flops = 12, .read_bytes = 24, .write_bytes = 24}},
    binary("aten::floor_divide", 12),
    binary("aten::remainder", 6),
    unary("aten::neg", 6),
    unary("aten::abs", 6),
    unary("aten::sign", 6),
    unary("aten::sgn", 6),
    unary("aten::floor", 6),
    unary("aten::ceil", 6),
    unary("aten::round", 6),
    {Call("aten::round").in("self", fp32, {2, 3}).scalar("decimals", 3).out(fp32, {2, 3}),
     {.flops = 18, .read_bytes = 24, .write_bytes = 24}},
    {Call("aten::round").in("self", fp32, {2, 3}).scalar("decimals", 0).out(fp32, {2, 3}),
     {.flops = 6, .read_bytes = 24, .write_bytes = 24}},
    unary("aten::frac", 12),
    unary("aten::reciprocal", 6),
    unary("aten::square", 6),
    binary("aten::copysign", 6),
    binary("aten::heaviside", 12),
    binary("aten::gcd", 6),
    binary("aten::lcm", 6),
    binary("aten::__irshift__", 6),
    binary("aten::_add_relu", 12),
    binary("aten::_standard_gamma_grad", 6),
    ternary("aten::_dirichlet_grad", 6),
    {Call("aten::conj_physical").in("self", fp32, {2, 3}).complex().out(fp32, {2, 3}).complex(),
     {.flops = 6, .read_bytes = 48, .write_bytes = 48}},
    {Call("aten::conj_physical").in("self", fp32, {2, 3}).out(fp32, {2, 3}), {}},
    {Call("aten::_conj_physical").in("self", fp32, {2, 3}).complex().out(fp32, {2, 3}).complex(),
     {.flops = 6, .read_bytes = 48, .write_bytes = 48}},
    ternary("aten::addcmul", 18),
    ternary("aten::addcdiv", 18),
    ternary("aten::lerp", 18),
    binary("aten::linalg_cross", 18),
    {Call("aten::polar").in("abs", fp32, {2, 3}).in("angle", fp32, {2, 3}).out(fp32, {2, 3}).complex(),
     {.flops = 24, .read_bytes = 48, .write_bytes = 48}},

    unary("aten::sqrt", 6),
    unary("aten::rsqrt", 6),
    unary("aten::pow", 6),
    unary("aten::exp", 6),
    unary("aten::log", 6),
    unary("aten::log2", 6),
    unary("aten::sin", 6),
    unary("aten::cos", 6),
    unary("aten::erf", 6),
    binary("aten::ldexp", 12),
    binary("aten::xlogy", 18),
    binary("aten::special_xlogy", 18),
    binary("aten::special_xlog1py", 18),
    unary("aten::special_entr", 30),
    unary("aten::special_log_ndtr", 42),
    binary("aten::logaddexp", 36),
    binary("aten::logaddexp2", 42),
    unary("aten::sinc", 24),
    unary("aten::special_sinc", 24),
    {Call("aten::mvlgamma").in("self", fp32, {2, 3}).scalar("p", 5).out(fp32, {2, 3}),
     {.flops = 6 * 16, .read_bytes = 24, .write_bytes = 24}},
    {Call("aten::special_multigammaln").in("self", fp32, {2, 3}).scalar("p", 1).out(fp32, {2, 3}),
     {.flops = 6 * 4, .read_bytes = 24, .write_bytes = 24}},

    comparison("aten::eq"),
    comparison("aten::ne"),
    comparison("aten::lt"),
    comparison("aten::le"),
    comparison("aten::gt"),
    comparison("aten::ge"),
    // Whether all are equal is one answer, not a tensor.
    {Call("aten::equal").in("self", fp32, {2, 3}).in("other", fp32, {2, 3}),
     {.flops = 6, .read_bytes = 48, .write_bytes = 0}},
    {Call("aten::isfinite").in("self", fp32, {2, 3}).out(boolean, {2, 3}),
     {.flops = 18, .read_bytes = 24, .write_bytes = 6}},
    {Call("aten::isinf").in("self", fp32, {2, 3}).out(boolean, {2, 3}),
     {.flops = 12, .read_bytes = 24, .write_bytes = 6}},
    logical("aten::logical_and"),
    logical("aten::logical_or"),
    {Call("aten::logical_not").in("self", boolean, {2, 3}).out(boolean, {2, 3}),
     {.int_ops = 6, .read_bytes = 6, .write_bytes = 6}},
    logical("aten::bitwise_and"),
    logical("aten::bitwise_or"),
    {Call("aten::bitwise_not").in("self", boolean, {2, 3}).out(boolean, {2, 3}),
     {.int_ops = 6, .read_bytes = 6, .write_bytes = 6}},
    binary("aten::maximum", 6),
    binary("aten::minimum", 6),
    binary("aten::max", 6),
    {Call("aten::max").in("self", fp32, {2, 3}).scalar("dim", 1).out(fp32, {2}).out(int64, {2}),
     {.flops = 6, .read_bytes = 24, .write_bytes = 8 + 16}},
    binary("aten::min", 6),
    {Call("aten::min").in("self", fp32, {2, 3}).out(fp32, {}), {.flops = 6, .read_bytes = 24, .write_bytes = 4}},
    bounded("aten::clamp", clamp_call().scalar("min", 0).scalar("max", 1.5), 12),
    bounded("aten::clamp", clamp_call().scalar("min", 0.5).none("max"), 6),
    unary("aten::clamp_min", 6),
    unary("aten::clamp_max", 6),
    bounded("aten::clip", clamp_call().none("min").scalar("max", 6), 6),
    bounded("aten::clip", clamp_call().scalar("min", -1).scalar("max", 1), 12),
    {Call("aten::clamp").in("self", fp32, {2, 3}).in("min", fp32, {2, 3}).in("max", fp32, {2, 3}).out(fp32, {2, 3}),
     {.flops = 12, .read_bytes = 72, .write_bytes = 24}},
    {Call("aten::where")
         .in("condition", boolean, {2, 3})
         .in("self", fp32, {2, 3})
         .in("other", fp32, {})
         .out(fp32, {2, 3}),
     {.flops = 6, .read_bytes = 6 + 24 + 4, .write_bytes = 24}},
    // Positions of 4 true elements.
    {Call("aten::where").in("condition", boolean, {2, 3}).out_list({tensor(int64, {4}), tensor(int64, {4})}),
     {.int_ops = 6, .read_bytes = 6, .write_bytes = 64}},
    unary("aten::nan_to_num", 18),
};

const std::vector<CostCase> kListCases = {
    list_binary("aten::_foreach_add", 30),
    list_binary("aten::_foreach_sub", 30),
    list_binary("aten::_foreach_mul", 30),
    list_binary("aten::_foreach_div", 30),
    list_update("aten::_foreach_addcmul_", 90),
    list_update("aten::_foreach_addcdiv_", 90),
    list_update("aten::_foreach_lerp_", 90),
    list_unary("aten::_foreach_neg", 30),
    list_unary("aten::_foreach_abs", 30),
    list_unary("aten::_foreach_sign", 30),
    list_unary("aten::_foreach_reciprocal", 30),
    list_unary("aten::_foreach_sqrt", 30),
    list_unary("aten::_foreach_rsqrt", 30),
    list_unary("aten::_foreach_pow", 30),
    list_unary("aten::_foreach_exp", 30),
    list_unary("aten::_foreach_log", 30),
    list_unary("aten::_foreach_tanh", 30),
    list_unary("aten::_foreach_acos", 30),
    list_unary("aten::_foreach_asin", 30),
    list_unary("aten::_foreach_atan", 30),
    list_unary("aten::_foreach_ceil", 30),
    list_unary("aten::_foreach_cos", 30),
    list_unary("aten::_foreach_cosh", 30),
    list_unary("aten::_foreach_erf", 30),
    list_unary("aten::_foreach_erfc", 30),
    list_unary("aten::_foreach_expm1", 30),
    list_unary("aten::_foreach_floor", 30),
    list_unary("aten::_foreach_frac", 30),
    list_unary("aten::_foreach_lgamma", 30),
    list_unary("aten::_foreach_log10", 30),
    list_unary("aten::_foreach_log1p", 30),
    list_unary("aten::_foreach_log2", 30),
    list_unary("aten::_foreach_round", 30),
    list_unary("aten::_foreach_sin", 30),
    list_unary("aten::_foreach_sinh", 30),
    list_unary("aten::_foreach_tan", 30),
    list_unary("aten::_foreach_trunc", 30),
    list_unary("aten::_foreach_sigmoid", 120),
    list_binary("aten::_foreach_maximum", 30),
    list_binary("aten::_foreach_minimum", 30),
    list_binary("aten::_foreach_clamp_max", 30),
    list_binary("aten::_foreach_clamp_min", 30),
    {Call("aten::_foreach_max").list("self", two_tensors()).out_list({tensor(fp32, {}), tensor(fp32, {})}),
     {.flops = 30, .read_bytes = 120, .write_bytes = 8}},
    // A root for each of the two.
    {Call("aten::_foreach_norm").list("self", two_tensors()).out_list({tensor(fp32, {}), tensor(fp32, {})}),
     {.flops = 60 + 2, .read_bytes = 120, .write_bytes = 8}},
    {Call("aten::_foreach_powsum").list("self", two_tensors()).out_list({tensor(fp32, {}), tensor(fp32, {})}),
     {.flops = 60, .read_bytes = 120, .write_bytes = 8}},
    {Call("aten::_foreach_zero_").list("self", two_tensors()).written(), {.write_bytes = 120}},
    {Call("aten::_foreach_copy_").list("self", two_tensors()).written().list("src", two_tensors()),
     {.read_bytes = 120, .write_bytes = 120}},
    list_unary("aten::_foreach_clone", 0),
    {Call("aten::_amp_foreach_non_finite_check_and_unscale_")
         .list("self", two_tensors())
         .written()
         .in("found_inf", fp32, {})
         .written()
         .in("inv_scale", fp32, {}),
     {.flops = 60, .read_bytes = 120 + 8, .write_bytes = 120 + 4}},
    {Call("aten::_amp_update_scale_")
         .in("self", fp32, {})
         .written()
         .in("growth_tracker", int32, {})
         .written()
         .in("found_inf", fp32, {})
         .out(fp32, {})
         .written(),
     {.flops = 2, .read_bytes = 12, .write_bytes = 8}},
};

const std::vector<CostCase> kStepCases = {
    // Parameters, gradients and two moments are read, all but the gradients written.
    {adam_call("aten::_fused_adam_", 0.0, false, false),
     {.flops = 30 * 13, .read_bytes = 4 * 120 + 8, .write_bytes = 3 * 120}},
    {adam_call("aten::_fused_adam_", 0.01, true, true),
     {.flops = 30 * (13 + 2 + 1 + 1), .read_bytes = 5 * 120 + 8, .write_bytes = 4 * 120}},
    {adam_call("aten::_fused_adamw_", 0.01, false, false),
     {.flops = 30 * (13 + 1), .read_bytes = 4 * 120 + 8, .write_bytes = 3 * 120}},
    // With a gradient scaler the gradients are unscaled in place.
    {adam_call("aten::_fused_adamw_", 0.0, false, false).in("grad_scale", fp32, {}),
     {.flops = 30 * (13 + 1), .read_bytes = 4 * 120 + 8 + 4, .write_bytes = 4 * 120}},
    {sgd_call(0.0, false, 0.0, false, true), {.flops = 30 * 2, .read_bytes = 240, .write_bytes = 120}},
    // buf = m * buf + g
    {sgd_call(0.0, true, 0.0, false, false), {.flops = 30 * 4, .read_bytes = 360, .write_bytes = 240}},
    // The first step writes the buffer without reading it.
    {sgd_call(0.0, true, 0.0, false, true), {.flops = 30 * 2, .read_bytes = 240, .write_bytes = 240}},
    // g + d * x, buf = m * buf + (1 - dampening) * g, g + m * buf, x - lr * g
    {sgd_call(1e-4, true, 0.1, true, false), {.flops = 30 * (2 + 3 + 2 + 2), .read_bytes = 360, .write_bytes = 240}},
    {adagrad_call(0.0, false), {.flops = 30 * 7, .read_bytes = 360 + 8, .write_bytes = 240}},
    {adagrad_call(0.1, true), {.flops = 30 * (7 + 2 + 1), .read_bytes = 360 + 8, .write_bytes = 240}},
};

TEST(Elementwise, CostsAreAsWrittenOut) {
  expect_costs(kTensorCases);
  expect_costs(kListCases);
  expect_costs(kStepCases);
}

TEST(Elementwise, EveryLineHasACaseAndEveryCaseALine) {
  std::vector<CostCase> all = kTensorCases;
  all.insert(all.end(), kListCases.begin(), kListCases.end());
  all.insert(all.end(), kStepCases.begin(), kStepCases.end());
  expect_same_ops(elementwise_costs(), all);
}

}  // namespace
}  // namespace roofprof::ops
