#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// y = f(x) on 2 x 3 floats: 6 elements, 24 bytes in, 24 bytes out.
CostCase unary(const char* op, std::int64_t flops) {
  return {Call(op).in("self", fp32, {2, 3}).out(fp32, {2, 3}), {.flops = flops, .read_bytes = 24, .write_bytes = 24}};
}

// dx = f(dy, x) on 2 x 3 floats: two tensors in, one out.
CostCase gradient(const char* op, std::int64_t flops) {
  return {Call(op).in("grad_output", fp32, {2, 3}).in("self", fp32, {2, 3}).out(fp32, {2, 3}),
          {.flops = flops, .read_bytes = 48, .write_bytes = 24}};
}

CostCase gelu(const char* form, std::int64_t flops) {
  return {Call("aten::gelu").in("self", fp32, {2, 3}).scalar("approximate", form).out(fp32, {2, 3}),
          {.flops = flops, .read_bytes = 24, .write_bytes = 24}};
}

CostCase gelu_gradient(const char* form, std::int64_t flops) {
  return {Call("aten::gelu_backward")
              .in("grad_output", fp32, {2, 3})
              .in("self", fp32, {2, 3})
              .scalar("approximate", form)
              .out(fp32, {2, 3}),
          {.flops = flops, .read_bytes = 48, .write_bytes = 24}};
}

// A dropout's mask is one byte per element.
CostCase dropout(bool train, std::int64_t flops) {
  return {Call("aten::native_dropout")
              .in("input", fp32, {2, 3})
              .scalar("train", train)
              .out(fp32, {2, 3})
              .out(boolean, {2, 3}),
          {.flops = flops, .read_bytes = 24, .write_bytes = 24 + 6}};
}

const std::vector<CostCase> kCases = {
    // PyProf's published row: ReLU on 64 x 64 x 112 x 112 halves.
    {Call("aten::relu").in("self", fp16, {64, 64, 112, 112}).out(fp16, {64, 64, 112, 112}),
     {.flops = 51'380'224, .read_bytes = 205'520'896 / 2, .write_bytes = 205'520'896 / 2}},
    // In place: the old value is read, the result is the argument and is written once.
    {Call("aten::relu_").in("self", fp32, {2, 3}).written().out(fp32, {2, 3}).written(),
     {.flops = 6, .read_bytes = 24, .write_bytes = 24}},
    // Quantised models run it on integers.
    {Call("aten::relu").in("self", int8, {2, 3}).out(int8, {2, 3}), {.int_ops = 6, .read_bytes = 6, .write_bytes = 6}},
    unary("aten::relu6", 12),
    unary("aten::threshold", 6),
    gradient("aten::threshold_backward", 6),
    unary("aten::hardtanh", 12),
    gradient("aten::hardtanh_backward", 12),
    unary("aten::hardsigmoid", 24),
    unary("prim::MKLDNNHardTanh", 12),
    unary("prim::MKLDNNClamp", 12),
    unary("prim::MKLDNNHardSigmoid", 24),
    unary("prim::MKLDNNHardSwish", 30),
    gradient("aten::hardsigmoid_backward", 18),
    unary("aten::hardswish", 30),
    gradient("aten::hardswish_backward", 30),
    unary("aten::hardshrink", 12),
    gradient("aten::hardshrink_backward", 12),
    unary("aten::softshrink", 18),
    gradient("aten::softshrink_backward", 12),
    unary("aten::leaky_relu", 12),
    gradient("aten::leaky_relu_backward", 12),
    // The weight comes expanded to the input's shape; one value per column is held.
    {Call("aten::_prelu_kernel")
         .in("self", fp32, {2, 3})
         .in("weight", fp32, {2, 3})
         .expanded({true, false})
         .out(fp32, {2, 3}),
     {.flops = 12, .read_bytes = 24 + 12, .write_bytes = 24}},
    {Call("aten::_prelu_kernel_backward")
         .in("grad_output", fp32, {2, 3})
         .in("self", fp32, {2, 3})
         .in("weight", fp32, {2, 3})
         .expanded({true, false})
         .out(fp32, {2, 3})
         .out(fp32, {2, 3}),
     {.flops = 24, .read_bytes = 48 + 12, .write_bytes = 48}},
    unary("aten::rrelu", 18),
    unary("aten::rrelu_with_noise", 18),
    unary("aten::rrelu_with_noise_functional", 18),
    gradient("aten::rrelu_with_noise_backward", 6),

    unary("aten::sigmoid", 24),
    gradient("aten::sigmoid_backward", 18),
    unary("aten::log_sigmoid_forward", 36),
    gradient("aten::log_sigmoid_backward", 36),
    unary("aten::logit", 18),
    {Call("aten::logit").in("self", fp32, {2, 3}).scalar("eps", 0.1).out(fp32, {2, 3}),
     {.flops = 30, .read_bytes = 24, .write_bytes = 24}},
    unary("aten::special_logit", 18),
    {Call("aten::special_logit").in("self", fp32, {2, 3}).scalar("eps", 0.1).out(fp32, {2, 3}),
     {.flops = 30, .read_bytes = 24, .write_bytes = 24}},
    gradient("aten::logit_backward", 18),
    unary("aten::tanh", 6),
    gradient("aten::tanh_backward", 18),
    unary("aten::silu", 30),
    gradient("aten::silu_backward", 54),
    gelu("none", 30),
    gelu("tanh", 54),
    gelu_gradient("none", 66),
    gelu_gradient("tanh", 108),
    unary("aten::elu", 24),
    gradient("aten::elu_backward", 24),
    unary("aten::celu", 30),
    unary("aten::selu", 30),
    unary("aten::softplus", 30),
    gradient("aten::softplus_backward", 36),
    unary("aten::mish", 24),
    gradient("aten::mish_backward", 78),
    // One half of the input gates the other.
    {Call("aten::glu").in("self", fp32, {2, 6}).out(fp32, {2, 3}), {.flops = 30, .read_bytes = 48, .write_bytes = 24}},
    {Call("aten::glu_backward").in("grad_output", fp32, {2, 3}).in("self", fp32, {2, 6}).out(fp32, {2, 6}),
     {.flops = 48, .read_bytes = 24 + 48, .write_bytes = 48}},

    dropout(true, 18),
    dropout(false, 0),
    {Call("aten::native_dropout_backward")
         .in("grad_output", fp32, {2, 3})
         .in("mask", boolean, {2, 3})
         .out(fp32, {2, 3}),
     {.flops = 12, .read_bytes = 24 + 6, .write_bytes = 24}},
    {Call("aten::_fused_dropout").in("self", fp32, {2, 3}).out(fp32, {2, 3}).out(uint8, {2, 3}),
     {.flops = 18, .read_bytes = 24, .write_bytes = 24 + 6}},
    {Call("aten::_masked_scale").in("self", fp32, {2, 3}).in("mask", uint8, {2, 3}).out(fp32, {2, 3}),
     {.flops = 12, .read_bytes = 24 + 6, .write_bytes = 24}},
};

TEST(Activation, CostsAreAsWrittenOut) { check_family(activation_costs(), kCases); }

}  // namespace
}  // namespace roofprof::ops
