#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// y = f(x) on 2 x 3 floats: 6 elements, 24 bytes in, 24 bytes out.
CostCase activation_unary(const char* op, std::int64_t flops) {
  return {Call(op, "(self fp32 2x3) -> fp32 2x3"), {.flops = flops, .read = 24, .write = 24}};
}

// dx = f(dy, x) on 2 x 3 floats: two tensors in, one out.
CostCase gradient(const char* op, std::int64_t flops) {
  return {Call(op, "(grad_output fp32 2x3, self fp32 2x3) -> fp32 2x3"), {.flops = flops, .read = 48, .write = 24}};
}

CostCase gelu(const char* form, std::int64_t flops) {
  return {Call("aten::gelu(self fp32 2x3)").scalar("approximate", form).out(fp32, {2, 3}), {.flops = flops}};
}

CostCase gelu_gradient(const char* form, std::int64_t flops) {
  return {
      Call("aten::gelu_backward(grad_output fp32 2x3, self fp32 2x3)").scalar("approximate", form).out(fp32, {2, 3}),
      {.flops = flops}};
}

// A dropout's mask is one byte per element.
CostCase dropout(bool train, std::int64_t flops) {
  return {Call("aten::native_dropout(input fp32 2x3)").scalar("train", train).with("-> fp32 2x3, boolean 2x3"),
          {.flops = flops}};
}

const std::vector<CostCase> kActivationCases = {
    // PyProf's published row: ReLU on 64 x 64 x 112 x 112 halves.
    {Call("aten::relu(self fp16 64x64x112x112) -> fp16 64x64x112x112"), {.flops = 51'380'224}},
    // In place: the old value is read, the result is the argument and is written once.
    {Call("aten::relu_(self fp32 2x3 written) -> fp32 2x3 written"), {.flops = 6}},
    // Quantised models run it on integers.
    {Call("aten::relu(self int8 2x3) -> int8 2x3"), {.int_ops = 6}},
    // The weight comes expanded to the input's shape; one value per column is held.
    {Call("aten::_prelu_kernel(self fp32 2x3, weight fp32 2x3 expanded 10) -> fp32 2x3"), {.flops = 12}},
    {Call("aten::_prelu_kernel_backward(grad_output fp32 2x3, self fp32 2x3, weight fp32 2x3 expanded 10) -> fp32 2x3, "
          "fp32 2x3"),
     {.flops = 24}},

    {Call("aten::logit(self fp32 2x3, eps=0.1) -> fp32 2x3"), {.flops = 30}},
    // One half of the input gates the other.
    {Call("aten::glu(self fp32 2x6) -> fp32 2x3"), {.flops = 30}},
    {Call("aten::glu_backward(grad_output fp32 2x3, self fp32 2x6) -> fp32 2x6"), {.flops = 48}},

    dropout(true, 18),
    dropout(false, 0),
    {Call("aten::native_dropout_backward(grad_output fp32 2x3, mask boolean 2x3) -> fp32 2x3"), {.flops = 12}},
    {Call("aten::_fused_dropout(self fp32 2x3) -> fp32 2x3, uint8 2x3"), {.flops = 18}},
    activation_unary("aten::softshrink", 18),
    activation_unary("aten::rrelu", 18),
    activation_unary("aten::logit", 18),
    activation_unary("aten::silu", 30),
    activation_unary("aten::softplus", 30),
    gelu("none", 30),
    gelu("tanh", 54),
    gradient("aten::threshold_backward", 6),
    gradient("aten::hardswish_backward", 30),
    gradient("aten::sigmoid_backward", 18),
    gradient("aten::log_sigmoid_backward", 36),
    gradient("aten::softplus_backward", 36),
    gradient("aten::silu_backward", 54),
    gradient("aten::mish_backward", 78),
    gelu_gradient("none", 66),
    gelu_gradient("tanh", 108),
};

TEST(Activation, CostsAreAsWrittenOut) { check_family(activation_costs(), kActivationCases); }

}  // namespace
}  // namespace roofprof::ops
