#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

// 4 rows, 16 features to 8; weight 8 x 16 in bytes, a float bias.
Call quantized_linear(const char* op, DType input, DType output, bool bias = true) {
  std::vector<TensorDesc> packed = {tensor(int8, {8, 16})};
  if (bias) packed.push_back(tensor(fp32, {8}));
  return Call(op).in("X", input, {4, 16}).list("W_prepack", packed).out(output, {4, 8});
}

Expected of_linear(std::int64_t others, std::int64_t input_bytes, std::int64_t output_bytes) {
  return {.macs = 512, .int_ops = 1024 + others * 32, .read = 64 * input_bytes + 128 + 32, .write = 32 * output_bytes};
}

Call half(const char* op) { return Call(op, "(X fp32 4x16, W_prepack [fp32 8x16; fp32 8]) -> fp32 4x8"); }

// 6 channels to 4 in 2 groups, 3 x 3, 5 x 5 positions: 100 outputs of 27 MACs; weight 108 bytes, no bias.
CostCase convolution(const char* op, const char* weight, std::int64_t others) {
  return {Call(op, "(qx uint8 1x6x7x7)").list(weight, {tensor(int8, {4, 3, 3, 3})}).out(uint8, {1, 4, 5, 5}),
          {.macs = 2700, .int_ops = 5400 + others * 100, .read = 294 + 108, .write = 100}};
}

Call with_options(Call call, const char* fused) {
  call.scalar("post_op_name", fused).scalar("attr", "none");
  return call.none("unary_post_op").with("(binary_post_op none, unary_attr none, binary_attr none)");
}

CostCase per_element(const char* op, std::int64_t each) {
  return {Call(op, "(qa uint8 4x8) -> uint8 4x8"), {.int_ops = each * 32, .read = 32, .write = 32}};
}

CostCase quantize(const char* op, std::int64_t each) {
  return {Call(op, "(self fp32 4x8) -> int8 4x8"), {.flops = each * 32, .read = 128, .write = 32}};
}

// The mask says, in a byte each, what was clamped.
CostCase fake(const char* op, std::int64_t each) {
  return {Call(op, "(self fp32 4x8) -> fp32 4x8, boolean 4x8"), {.flops = each * 32, .read = 128, .write = 128 + 32}};
}

// 5 steps of 2 sequences, 4 features to 8 in two directions and two layers: the second takes 16.
CostCase recurrent(const char* op, std::int64_t gates, std::int64_t states, std::int64_t each) {
  const std::int64_t weights = 2 * gates * 8 * ((4 + 8) + (16 + 8));
  return {Call(op, "(input fp32 5x2x4)")
              .list("hx", std::vector<TensorDesc>(static_cast<std::size_t>(states), tensor(fp32, {4, 2, 8})))
              .with("(num_layers=2, bidirectional=true) -> fp32 5x2x16"),
          {.macs = 10 * weights,
           .flops = each * 10 * 32,
           .int_ops = 20 * weights,
           .read = 160 + states * 256 + weights,
           .write = 640}};
}

// 12 indices into 100 rows of 16, in 4 bags where there are any: 192 elements. A row has 16 or 8 bytes, and its scale
// and offset in 8 or 4.
CostCase quantized_lookup(const char* op, std::int64_t each, std::int64_t row) {
  return {Call(op, "(weight [uint8 100x16], indices int64 12) -> fp32 12x16"),
          {.flops = each * 192, .read = 12 * row + 96, .write = 768}};
}

CostCase bags(const char* op, std::int64_t row, bool weights) {
  Call call = Call(op, "(weight [uint8 100x16], indices int64 12, offsets int64 4)");
  if (weights) call = call.in("per_sample_weights", fp32, {12});
  return {call.out(fp32, {4, 16}),
          {.flops = (weights ? 4 : 3) * 192, .read = 12 * row + 96 + 32 + (weights ? 48 : 0), .write = 256}};
}

const std::vector<CostCase> kQuantizedCases = {
    quantized_lookup("quantized::embedding_byte", 2, 24),
    quantized_lookup("quantized::embedding_4bit", 2, 12),
    bags("quantized::embedding_bag_byte", 24, false),
    bags("quantized::embedding_bag_byte", 24, true),
    bags("quantized::embedding_bag_4bit", 12, false),
    // No row is read twice.
    {Call("quantized::embedding_byte(weight [uint8 5x16], indices int64 12) -> fp32 12x16"),
     {.flops = 384, .read = 5 * 24 + 96, .write = 768}},

    {quantized_linear("quantized::linear", uint8, uint8), of_linear(2, 1, 1)},
    {quantized_linear("quantized::linear", uint8, uint8, false), {.macs = 512, .int_ops = 1024 + 32}},
    {quantized_linear("quantized::linear_relu", uint8, uint8), of_linear(3, 1, 1)},
    {quantized_linear("quantized::linear_leaky_relu", uint8, uint8), of_linear(4, 1, 1)},
    {quantized_linear("quantized::linear_tanh", uint8, uint8), of_linear(3, 1, 1)},
    // Weights of two bytes each.
    {half("quantized::linear_dynamic_fp16"), {.macs = 512, .flops = 1024 + 32, .read = 256 + 256 + 32, .write = 128}},
    {half("quantized::linear_relu_dynamic_fp16"),
     {.macs = 512, .flops = 1024 + 64, .read = 256 + 256 + 32, .write = 128}},

    convolution("quantized::conv2d", "packed_weight", 1),
    convolution("quantized::conv2d", "weight", 1),
    convolution("quantized::conv2d_relu", "packed_weight", 2),
    {Call("quantized::conv2d_add_relu(qx uint8 1x6x7x7, qaccum uint8 1x4x5x5, packed_weight [int8 4x3x3x3]) -> uint8 "
          "1x4x5x5"),
     {.macs = 2700, .int_ops = 5400 + 300}},
    // 4 channels to 6 in 2 groups, 3 x 3: each of 100 inputs meets 27 weights.
    {Call("quantized::conv_transpose2d(qx uint8 1x4x5x5, packed_weight [int8 4x3x3x3]) -> uint8 1x6x7x7"),
     {.macs = 2700, .int_ops = 5400 + 294}},

    {with_options(
         Call("onednn::qlinear_pointwise(qx uint8 4x16, qw int8 16x8, w_scale fp32 8, bias none) -> uint8 4x8"),
         "none"),
     {.macs = 512, .int_ops = 1056}},
    {with_options(Call("onednn::qconv_pointwise(qx uint8 1x6x7x7, qw int8 4x3x3x3, bias fp32 4) -> uint8 1x4x5x5"),
                  "relu"),
     {.macs = 2700, .int_ops = 5400 + 300}},
    {Call("quantized::matmul(qa uint8 4x16, qb uint8 16x8) -> uint8 4x8"), {.macs = 512, .int_ops = 1056}},
    recurrent("aten::quantized_lstm", 4, 2, 30),
    recurrent("aten::quantized_gru", 3, 1, 23),

    per_element("quantized::add", 2),
    per_element("quantized::add_relu", 3),
    per_element("quantized::cat", 1),
    per_element("quantized::relu6", 2),
    per_element("quantized::sigmoid", 5),
    per_element("quantized::hardswish", 6),
    per_element("quantized::batch_norm1d", 3),

    quantize("aten::quantize_per_tensor", 2),
    quantize("aten::quantize_per_tensor_dynamic", 4),
    {Call("aten::dequantize(self uint8 4x8) -> fp32 4x8"), {.int_ops = 64}},
    {Call("aten::int_repr(self int8 4x8) -> uint8 4x8"), {.read = 32, .write = 32}},
    fake("aten::fake_quantize_per_tensor_affine_cachemask", 6),
    fake("aten::_fused_moving_avg_obs_fq_helper", 8),
};

TEST(Quantized, Costs) { check_family(quantized_costs(), kQuantizedCases); }

}  // namespace
}  // namespace roofprof::ops::testing
