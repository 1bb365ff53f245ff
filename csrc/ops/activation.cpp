// Activation functions and dropout, with their gradients. The weight is operations per output element: one for each
// arithmetic operation, elementary function (exp, log, tanh, erf) and compare-and-select.

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// GELU has two formulas; `weight` is that of the erf form.
void gelu(const OpCall& call, std::int64_t weight, Work& work) {
  per_output(call, call.text("approximate") == "tanh" ? 9 : weight, work);
}

void gelu_backward(const OpCall& call, std::int64_t weight, Work& work) {
  per_output(call, call.text("approximate") == "tanh" ? 18 : weight, work);
}

// Alpha dropout and the like aside, a dropout that is switched off only copies.
void dropout(const OpCall& call, std::int64_t weight, Work& work) {
  if (call.boolean("train", true)) per_output(call, weight, work);
}

// Limited to eps and 1 - eps first, where eps is given.
void logit(const OpCall& call, std::int64_t weight, Work& work) {
  per_output(call, weight + (gives_number(call, "eps") ? 2 : 0), work);
}

constexpr OpCost kActivationCosts[] = {
    {"aten::relu", per_output, 1, nullptr, "", "max(x, 0)"},
    {"aten::relu6", per_output, 2, nullptr, "", "min(max(x, 0), 6)"},
    {"aten::threshold", per_output, 1, nullptr, "", "x > t ? x : value"},
    {"aten::threshold_backward", per_output, 1, nullptr, "", "x > t ? grad : 0; the gradient of relu too"},
    {"aten::hardtanh", per_output, 2, nullptr, "", "min(max(x, low), high)"},
    {"aten::hardtanh_backward", per_output, 2, nullptr, "", "x > low and x < high ? grad : 0"},
    {"aten::hardsigmoid", per_output, 4, nullptr, "", "min(max(x + 3, 0), 6) / 6"},
    {"aten::hardsigmoid_backward", per_output, 3, nullptr, "", "x > -3 and x < 3 ? grad / 6 : 0"},
    {"aten::hardswish", per_output, 5, nullptr, "", "x * min(max(x + 3, 0), 6) / 6"},
    {"aten::hardswish_backward", per_output, 5, nullptr, "", "x < -3 ? 0 : x > 3 ? grad : grad * (x / 3 + 1/2)"},
    // TorchScript's own, optimised for inference; MKLDNNClamp is hardtanh or relu6.
    {"prim::MKLDNNHardTanh prim::MKLDNNClamp", per_output, 2, nullptr, "", "min(max(x, low), high)"},
    {"prim::MKLDNNHardSigmoid", per_output, 4, nullptr, "", "min(max(x + 3, 0), 6) / 6"},
    {"prim::MKLDNNHardSwish", per_output, 5, nullptr, "", "x * min(max(x + 3, 0), 6) / 6"},
    {"aten::hardshrink", per_output, 2, nullptr, "", "x < -l or x > l ? x : 0"},
    {"aten::hardshrink_backward aten::softshrink_backward", per_output, 2, nullptr, "", "x < -l or x > l ? grad : 0"},
    {"aten::softshrink", per_output, 3, nullptr, "", "x > l ? x - l : x < -l ? x + l : 0"},
    {"aten::leaky_relu", per_output, 2, nullptr, "", "x > 0 ? x : slope * x"},
    {"aten::leaky_relu_backward", per_output, 2, nullptr, "", "x > 0 ? grad : slope * grad"},
    {"aten::_prelu_kernel", per_output, 2, nullptr, "", "x > 0 ? x : w * x"},
    {"aten::_prelu_kernel_backward", per_input, 4, nullptr, "", "x > 0 ? grad : w * grad; x > 0 ? 0 : x * grad"},
    {"aten::rrelu aten::rrelu_with_noise", per_output, 3, nullptr, "", "x > 0 ? x : x * noise, noise drawn"},
    {"aten::rrelu_with_noise_functional", per_output, 3, nullptr, "", "as rrelu_with_noise"},
    {"aten::rrelu_with_noise_backward", per_output, 1, nullptr, "", "grad * noise"},

    {"aten::sigmoid", per_output, 4, nullptr, "", "1 / (1 + exp(-x))"},
    {"aten::sigmoid_backward", per_output, 3, nullptr, "", "grad * (1 - y) * y"},
    {"aten::log_sigmoid_forward", per_output, 6, nullptr, "", "min(x, 0) - log1p(exp(-abs(x)))"},
    {"aten::log_sigmoid_backward", per_output, 6, nullptr, "", "grad * (x < 0 - sign(x) * z / (1 + z)), z kept"},
    {"aten::logit", logit, 3, nullptr, "eps", "log(x / (1 - x)); 2 more with eps"},
    {"aten::special_logit", logit, 3, nullptr, "eps", "as logit"},
    {"aten::logit_backward", per_output, 3, nullptr, "", "grad / (x * (1 - x))"},
    {"aten::tanh", per_output, 1, nullptr, "", "tanh(x)"},
    {"aten::tanh_backward", per_output, 3, nullptr, "", "grad * (1 - y * y)"},
    {"aten::silu", per_output, 5, nullptr, "", "x / (1 + exp(-x)), as x * sigmoid(x)"},
    {"aten::silu_backward", per_output, 9, nullptr, "", "grad * s * (1 + x * (1 - s)), s = sigmoid(x)"},
    {"aten::gelu", gelu, 5, nullptr, "approximate", "x / 2 * (1 + erf(x / sqrt(2))); 9 in the tanh form"},
    {"aten::gelu_backward", gelu_backward, 11, nullptr, "approximate", "grad * (cdf + x * pdf); 18 in the tanh form"},
    {"aten::elu", per_output, 4, nullptr, "", "x > 0 ? x : alpha * (exp(x) - 1)"},
    {"aten::elu_backward", per_output, 4, nullptr, "", "x > 0 ? grad : grad * alpha * exp(x)"},
    {"aten::celu", per_output, 5, nullptr, "", "x > 0 ? x : alpha * (exp(x / alpha) - 1)"},
    {"aten::selu", per_output, 5, nullptr, "", "scale * (x > 0 ? x : alpha * (exp(x) - 1))"},
    {"aten::softplus", per_output, 5, nullptr, "", "b * x > t ? x : log1p(exp(b * x)) / b"},
    {"aten::softplus_backward", per_output, 6, nullptr, "", "b * x > t ? grad : grad * z / (z + 1), z = exp(b * x)"},
    {"aten::mish", per_output, 4, nullptr, "", "x * tanh(log1p(exp(x)))"},
    {"aten::mish_backward", per_output, 13, nullptr, "", "grad * (t + x * s * (1 - t * t)), s 4 and t 3 apart"},
    {"aten::glu", per_output, 5, nullptr, "", "a * sigmoid(b)"},
    {"aten::glu_backward", per_output, 4, nullptr, "", "per pair: sigmoid(b) 4, then 1 for a and 3 for b"},

    {"aten::native_dropout", dropout, 3, nullptr, "train", "x * mask * scale, the mask (bool) drawn"},
    {"aten::native_dropout_backward aten::_masked_scale", per_output, 2, nullptr, "", "grad * mask * scale"},
    {"aten::_fused_dropout", per_output, 3, nullptr, "", "x * mask * scale, the mask drawn"},
};

}  // namespace

std::span<const OpCost> activation_costs() { return kActivationCosts; }

}  // namespace roofprof::ops
