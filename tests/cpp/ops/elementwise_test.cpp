#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// On 2 x 3 floats: 6 elements, 24 bytes a tensor.
CostCase elementwise_unary(const char* op, std::int64_t flops) {
  return {Call(op, "(self fp32 2x3) -> fp32 2x3"), {.flops = flops, .read = 24, .write = 24}};
}

CostCase binary(const char* op, std::int64_t flops) {
  return {Call(op, "(self fp32 2x3, other fp32 2x3) -> fp32 2x3"), {.flops = flops, .read = 48, .write = 24}};
}

// Both complex64, 6 elements of 8 bytes.
CostCase complex_pair(const char* op, std::int64_t flops) {
  return {Call(op, "(self fp32 2x3 complex, other fp32 2x3 complex) -> fp32 2x3 complex"),
          {.flops = flops, .read = 96, .write = 48}};
}

CostCase clamped(const std::string& bounds, std::int64_t flops) {
  return {Call("aten::clamp(self fp32 2x3)").with(bounds).out(fp32, {2, 3}), {.flops = flops}};
}

// Lists: 4 x 5 and 10 floats, 30 elements, 120 bytes a list.
std::vector<TensorDesc> two_tensors() { return {tensor(fp32, {4, 5}), tensor(fp32, {10})}; }

// Two parameters, 30 elements; the step counters are one float each.
Call adam_call(const char* op, double weight_decay, bool amsgrad, bool maximize) {
  Call call(op);
  call.list("self", two_tensors()).written().with("(grads [fp32 4x5; fp32 10] written)");
  call.list("exp_avgs", two_tensors()).written().with("(exp_avg_sqs [fp32 4x5; fp32 10] written)");
  call.list("max_exp_avg_sqs", amsgrad ? two_tensors() : std::vector<TensorDesc>{}).written();
  call.list("state_steps", {tensor(fp32, {}), tensor(fp32, {})});
  return call.scalar("weight_decay", weight_decay).scalar("amsgrad", amsgrad).scalar("maximize", maximize);
}

Call sgd_call(double weight_decay, bool momentum, double dampening, bool nesterov, bool first) {
  Call call("aten::_fused_sgd_");
  call.list("self", two_tensors()).written().with("(grads [fp32 4x5; fp32 10] written)");
  call.list("momentum_buffer_list", momentum ? two_tensors() : std::vector<TensorDesc>{}).written();
  call.scalar("weight_decay", weight_decay).scalar("dampening", dampening).scalar("nesterov", nesterov);
  return call.scalar("maximize", false).scalar("is_first_step", first);
}

Call adagrad_call(double weight_decay, bool maximize) {
  Call call("aten::_fused_adagrad_");
  call.list("self", two_tensors()).written().with("(grads [fp32 4x5; fp32 10] written)");
  call.list("state_sums", two_tensors()).written().list("state_steps", {tensor(fp32, {}), tensor(fp32, {})});
  return call.scalar("weight_decay", weight_decay).scalar("maximize", maximize);
}

const std::vector<CostCase> kTensorCases = together({
    {
        // Broadcast: what is held is read once, the result is computed whole.
        {Call("aten::add(self fp32 4x2x3, other fp32 3) -> fp32 4x2x3"), {.flops = 24, .read = 96 + 12, .write = 96}},
        // x + x: one tensor.
        {Call("aten::add(self fp32 2x3, other fp32 2x3 repeated) -> fp32 2x3"), {.flops = 6, .read = 24, .write = 24}},
        // In place reads both; out= writes only.
        {Call("aten::add_(self fp32 2x3 written, other fp32 2x3) -> fp32 2x3 written"),
         {.flops = 6, .read = 48, .write = 24}},
        {Call("aten::add.out(self fp32 2x3, other fp32 2x3, out fp32 2x3 written) -> fp32 2x3 written"),
         {.flops = 6, .read = 48, .write = 24}},
        {Call("aten::add(self int64 2x3, other int64 2x3) -> int64 2x3"), {.int_ops = 6, .read = 96, .write = 48}},
        {Call("aten::mul(self fp32 2x3 complex, other fp32 2x3) -> fp32 2x3 complex"), {.flops = 12}},
        // A Python number is no tensor.
        {Call("aten::mul(self bf16 2x3, other=0.5) -> bf16 2x3"), {.flops = 6}},
        {Call("aten::div(self fp32 2x3, rounding_mode=floor) -> fp32 2x3"), {.flops = 12}},
        {Call("aten::round(self fp32 2x3, decimals=3) -> fp32 2x3"), {.flops = 18}},
        {Call("aten::round(self fp32 2x3, decimals=0) -> fp32 2x3"), {.flops = 6}},
        {Call("aten::conj_physical(self fp32 2x3 complex) -> fp32 2x3 complex"), {.flops = 6, .read = 48, .write = 48}},
        {Call("aten::conj_physical(self fp32 2x3) -> fp32 2x3"), {}},
        {Call("aten::_conj_physical(self fp32 2x3 complex) -> fp32 2x3 complex"), {.flops = 6}},
        {Call("aten::polar(abs fp32 2x3, angle fp32 2x3) -> fp32 2x3 complex"), {.flops = 24}},

        {Call("aten::mvlgamma(self fp32 2x3, p=5) -> fp32 2x3"), {.flops = 6 * 16}},

        // Whether all are equal is one answer, not a tensor.
        {Call("aten::equal(self fp32 2x3, other fp32 2x3)"), {.flops = 6}},
        // Comparisons are done in floats, their result is one byte per element.
        {Call("aten::eq(self fp32 2x3, other fp32 2x3) -> boolean 2x3"), {.flops = 6}},
        {Call("aten::logical_not(self boolean 2x3) -> boolean 2x3"), {.int_ops = 6}},
        {Call("aten::bitwise_not(self boolean 2x3) -> boolean 2x3"), {.int_ops = 6}},
        {Call("aten::max(self fp32 2x3, dim=1) -> fp32 2, int64 2"), {.flops = 6}},
        {Call("aten::min(self fp32 2x3) -> fp32"), {.flops = 6}},
        clamped("(min=0, max=1.5)", 12),
        clamped("(min=0.5, max none)", 6),
        {Call("aten::clamp(self fp32 2x3, min fp32 2x3, max fp32 2x3) -> fp32 2x3"), {.flops = 12}},
        {Call("aten::where(condition boolean 2x3, self fp32 2x3, other fp32) -> fp32 2x3"), {.flops = 6}},
        // Positions of 4 true elements.
        {Call("aten::where(condition boolean 2x3) -> [int64 4; int64 4]"), {.int_ops = 6}},
        complex_pair("aten::add", 12),
        complex_pair("aten::mul", 36),
        complex_pair("aten::div", 66),
        binary("aten::ldexp", 12),
        binary("aten::_dirichlet_grad", 6),
        binary("aten::linalg_cross", 18),
        binary("aten::special_xlogy", 18),
        binary("aten::logaddexp", 36),
        binary("aten::logaddexp2", 42),
        elementwise_unary("aten::special_log_ndtr", 42),
        elementwise_unary("aten::sinc", 24),
        elementwise_unary("aten::nan_to_num", 18),
    },
    each([](const char* op) { return binary(op, 6); },
         {"aten::add", "aten::sub", "aten::rsub", "aten::mul", "aten::div", "aten::remainder", "aten::copysign",
          "aten::gcd", "aten::__irshift__", "aten::_standard_gamma_grad", "aten::max", "aten::min"}),
    each([](const char* op) { return elementwise_unary(op, 6); },
         {"aten::neg", "aten::sign", "aten::sgn", "aten::floor", "aten::ceil", "aten::round", "aten::rsqrt",
          "aten::pow"}),
    each([](const char* op) { return binary(op, 6); },
         {"aten::logical_and", "aten::logical_or", "aten::bitwise_and", "aten::bitwise_or"}),
});

const std::vector<CostCase> kListCases = {
    {Call("aten::_foreach_max(self [fp32 4x5; fp32 10]) -> [fp32; fp32]"), {.flops = 30}},
    // A root for each of the two.
    {Call("aten::_foreach_norm(self [fp32 4x5; fp32 10]) -> [fp32; fp32]"), {.flops = 60 + 2}},
    {Call("aten::_foreach_powsum(self [fp32 4x5; fp32 10]) -> [fp32; fp32]"), {.flops = 60}},
    {Call("aten::_foreach_zero_(self [fp32 4x5; fp32 10] written)"), {.write = 120}},
    {Call("aten::_amp_foreach_non_finite_check_and_unscale_(self [fp32 4x5; fp32 10] written, found_inf fp32 written, "
          "inv_scale fp32)"),
     {.flops = 60}},
    {Call("aten::_amp_update_scale_(self fp32 written, growth_tracker int32 written, found_inf fp32) -> fp32 written"),
     {.flops = 2}},
    {Call("aten::_foreach_add(self [fp32 4x5; fp32 10], other [fp32 4x5; fp32 10]) -> [fp32 4x5; fp32 10]"),
     {.flops = 30}},
    // In place a list operator returns nothing.
    {Call("aten::_foreach_lerp_(self [fp32 4x5; fp32 10] written, tensor1 [fp32 4x5; fp32 10], tensor2 [fp32 4x5; fp32 "
          "10])"),
     {.flops = 90}},
    {Call("aten::_foreach_clone(self [fp32 4x5; fp32 10]) -> [fp32 4x5; fp32 10]"), {.read = 120, .write = 120}},
    {Call("aten::_foreach_rsqrt(self [fp32 4x5; fp32 10]) -> [fp32 4x5; fp32 10]"), {.flops = 30}},
};

const std::vector<CostCase> kStepCases = {
    // Parameters, gradients and two moments are read, all but the gradients written.
    {adam_call("aten::_fused_adam_", 0.0, false, false), {.flops = 30 * 13, .read = 4 * 120 + 8, .write = 3 * 120}},
    {adam_call("aten::_fused_adam_", 0.01, true, true),
     {.flops = 30 * (13 + 2 + 1 + 1), .read = 5 * 120 + 8, .write = 4 * 120}},
    {adam_call("aten::_fused_adamw_", 0.01, false, false),
     {.flops = 30 * (13 + 1), .read = 4 * 120 + 8, .write = 3 * 120}},
    // With a gradient scaler the gradients are unscaled in place.
    {adam_call("aten::_fused_adamw_", 0.0, false, false).in("grad_scale", fp32, {}),
     {.flops = 30 * (13 + 1), .read = 4 * 120 + 8 + 4, .write = 4 * 120}},
    {sgd_call(0.0, false, 0.0, false, true), {.flops = 30 * 2, .read = 240, .write = 120}},
    // buf = m * buf + g
    {sgd_call(0.0, true, 0.0, false, false), {.flops = 30 * 4, .read = 360, .write = 240}},
    // The first step writes the buffer without reading it.
    {sgd_call(0.0, true, 0.0, false, true), {.flops = 30 * 2, .read = 240, .write = 240}},
    // g + d * x, buf = m * buf + (1 - dampening) * g, g + m * buf, x - lr * g
    {sgd_call(1e-4, true, 0.1, true, false), {.flops = 30 * (2 + 3 + 2 + 2), .read = 360, .write = 240}},
    {adagrad_call(0.0, false), {.flops = 30 * 7, .read = 360 + 8, .write = 240}},
    {adagrad_call(0.1, true), {.flops = 30 * (7 + 2 + 1), .read = 360 + 8, .write = 240}},
};

TEST(Elementwise, CostsAreAsWrittenOut) {
  check_family(elementwise_costs(), together({kTensorCases, kListCases, kStepCases}));
}

}  // namespace
}  // namespace roofprof::ops
