// Quantized layers: as many MACs as the float model has, in 8-bit integers (also where activations come as floats and
// are quantized on the way), and per output element a requantization of 1, a bias of 1, and what is fused in.
// Packed weights show as tensors: the observer unpacks them.

#include <algorithm>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- parts of the formulas

// Weight, then bias where there is one. Older overloads name the argument differently.
const std::vector<TensorDesc>& packed(const OpCall& call) {
  for (const char* name : {"packed_weight", "weight"}) {
    if (call.has_argument(name)) return call.tensors(name);
  }
  return call.tensors("W_prepack");
}

const TensorDesc& packed_weight(const OpCall& call) {
  const auto& tensors = packed(call);
  if (tensors.empty()) throw OutOfRange(call.name + ": the packed weight is absent");
  return tensors.front();
}

void add_layer(const OpCall& call, std::int64_t macs, std::int64_t others, bool bias, DType dtype, Work& work) {
  TensorDesc operand = call.tensor(std::size_t{0});
  operand.dtype = dtype;
  add_macs(work, macs, operand);
  add_operations(work, product({others + (bias ? 1 : 0), call.result().numel()}), dtype);
}

// ---- CountOperations: layers; the weight counts requantization and what is fused in

void packed_layer(const OpCall& call, std::int64_t others, Work& work) {
  const std::int64_t macs = saturating_multiply(call.result().numel(), taps(packed_weight(call)));
  add_layer(call, macs, others, packed(call).size() > 1, DType::int8, work);
}

void packed_transposed(const OpCall& call, std::int64_t others, Work& work) {
  const std::int64_t macs = saturating_multiply(call.tensor(std::size_t{0}).numel(), taps(packed_weight(call)));
  add_layer(call, macs, others, packed(call).size() > 1, DType::int8, work);
}

void packed_half(const OpCall& call, std::int64_t others, Work& work) {
  const std::int64_t macs = saturating_multiply(call.result().numel(), taps(packed_weight(call)));
  add_layer(call, macs, others, packed(call).size() > 1, DType::fp16, work);
}

// oneDNN takes its weight as a tensor: (in, out) for a linear, (out, in / groups, kernel...) for a convolution.
std::int64_t fused_by_onednn(const OpCall& call) {
  std::int64_t fused = 0;
  for (const char* name : {"post_op_name", "unary_post_op", "binary_post_op", "attr", "unary_attr", "binary_attr"}) {
    const std::string text = call.text(name);
    if (!text.empty() && text != "none") ++fused;
  }
  return fused;
}

void onednn_linear(const OpCall& call, std::int64_t others, Work& work) {
  const std::int64_t macs = saturating_multiply(call.result().numel(), call.tensor("qx").size(-1));
  add_layer(call, macs, others + fused_by_onednn(call), call.find_tensor("bias") != nullptr, DType::int8, work);
}

void onednn_convolution(const OpCall& call, std::int64_t others, Work& work) {
  const std::int64_t macs = saturating_multiply(call.result().numel(), taps(call.tensor("qw")));
  add_layer(call, macs, others + fused_by_onednn(call), call.find_tensor("bias") != nullptr, DType::int8, work);
}

void quantized_matmul(const OpCall& call, std::int64_t others, Work& work) {
  const std::int64_t length = call.tensor("qa").size(-1);
  add_layer(call, saturating_multiply(call.result().numel(), length), others, false, DType::int8, work);
}

// ---- recurrent layers, quantized dynamically: their packed cells cannot be read, but sizes follow from the states.
// The weight is the number of gates.

constexpr std::int64_t kLstmGates = 4;
// The same operations as in recurrent.cpp, biases included.
constexpr std::int64_t kLstmUnit = 30, kGruUnit = 23;

// Elements of the weight matrices of all layers and directions: gates x hidden x (input + hidden) for each.
std::int64_t recurrent_weights(const OpCall& call, std::int64_t gates) {
  const std::int64_t directions = call.boolean("bidirectional", false) ? 2 : 1;
  const std::int64_t hidden = call.tensors("hx").front().size(-1);
  const std::int64_t layers = call.integer("num_layers", 1);
  const std::int64_t first = call.tensor(std::size_t{0}).size(-1) + hidden;
  const std::int64_t further = product({layers - 1, directions * hidden + hidden});
  return product({directions, gates, hidden, saturating_add(first, further)});
}

void recurrent(const OpCall& call, std::int64_t gates, Work& work) {
  TensorDesc input = call.tensor(std::size_t{0});
  const std::int64_t steps = input.size(-1) == 0 ? 0 : input.numel() / input.size(-1);
  const TensorDesc& state = call.tensors("hx").front();
  const std::int64_t units = saturating_multiply(state.size(0), state.size(-1));
  const std::int64_t each = gates == kLstmGates ? kLstmUnit : kGruUnit;
  add_operations(work, product({each, steps, units}), input.dtype);
  input.dtype = DType::int8;
  add_macs(work, saturating_multiply(steps, recurrent_weights(call, gates)), input);
}

// ---- embeddings: rows in 8 or 4 bits, each with its scale and offset. Elements are dequantized (2) and, in bags,
// added up (1); a weight of a sample costs 1 more.

std::int64_t gathered_rows(const OpCall& call) {
  return saturating_multiply(call.tensor("indices").numel(), call.result().size(-1));
}

void embedding(const OpCall& call, std::int64_t weight, Work& work) {
  const std::int64_t scaled = call.find_tensor("per_sample_weights") != nullptr ? 1 : 0;
  add_operations(work, saturating_multiply(weight + scaled, gathered_rows(call)), call.result().dtype);
}

// ---- CountBytes

// Each index reads a row, none twice. Scale and offset are floats behind rows of bytes, halves behind those of 4 bits.
template <std::int64_t bits>
void embedding_bytes(const OpCall& call, Work& work) {
  constexpr std::int64_t kScaleAndOffset = bits == 8 ? 8 : 4, kPerByte = 8 / bits;
  const std::int64_t row = (call.result().size(-1) + kPerByte - 1) / kPerByte + kScaleAndOffset;
  const TensorDesc& table = call.tensors("weight").at(0);
  work.read_bytes = saturating_multiply(std::min(call.tensor("indices").numel(), table.size(0)), row);
  for (const char* name : {"indices", "offsets", "per_sample_weights", "compressed_indices_mapping"}) {
    read(work, call.find_tensor(name));
  }
  write_results(call, work);
}

// Packed in half precision; unpacking gives floats.
void half_bytes(const OpCall& call, Work& work) {
  compulsory_bytes(call, work);
  const TensorDesc& weight = packed_weight(call);
  constexpr std::int64_t kHalf = 2;
  work.read_bytes -= product({weight.numel(), weight.item_bytes - kHalf});
}

// Adds one byte for each weight, which no argument shows.
template <std::int64_t gates>
void recurrent_bytes(const OpCall& call, Work& work) {
  compulsory_bytes(call, work);
  work.read_bytes = saturating_add(work.read_bytes, recurrent_weights(call, gates));
}

constexpr const char* kLayer = "MACs in int8, as the float layer; per output requantize 1, bias 1, relu or add 1";
constexpr const char* kHalf = "MACs in fp16, as the float layer; bias 1, relu 1 per output";
constexpr const char* kQuantizedFused =
    "MACs in int8, as the float layer; per output requantize 1, bias 1, each fused op 1";
constexpr std::string_view kFusable = "post_op_name,unary_post_op,binary_post_op,attr,unary_attr,binary_attr";
constexpr const char* kRequantized = "as in floats + requantize 1";
constexpr const char* kRecurrent = "MACs in int8: steps x weights; per unit as lstm and gru with biases";
constexpr const char* kEmbedding = "2 per element read: scale and offset";
constexpr const char* kEmbeddingBag = "3 per element read: scale, offset, sum; 1 more with weights of samples";
constexpr const char* kQuestion = "a question";

constexpr OpCost kQuantizedCosts[] = {
    {"quantized::linear quantized::linear_dynamic quantized::linear_with_input_q_dq_qweight_dq_output_fp32 "
     "quantized::conv1d quantized::conv2d quantized::conv3d quantized::conv1d_dynamic quantized::conv2d_dynamic "
     "quantized::conv3d_dynamic",
     packed_layer, 1, nullptr, "", kLayer},
    {"quantized::linear_relu quantized::linear_relu_dynamic "
     "quantized::linear_with_input_q_dq_qweight_dq_relu_output_fp32 quantized::conv1d_relu quantized::conv2d_relu "
     "quantized::conv3d_relu quantized::conv2d_add",
     packed_layer, 2, nullptr, "", kLayer},
    {"quantized::linear_leaky_relu", packed_layer, 3, nullptr, "", "quantized::linear + leaky relu 2"},
    {"quantized::linear_tanh", packed_layer, 2, nullptr, "", "quantized::linear + tanh 1"},
    {"quantized::linear_dynamic_fp16", packed_half, 0, half_bytes, "", kHalf},
    {"quantized::linear_relu_dynamic_fp16", packed_half, 1, half_bytes, "", kHalf},
    {"quantized::conv2d_add_relu", packed_layer, 3, nullptr, "", kLayer},
    {"quantized::conv_transpose1d quantized::conv_transpose2d quantized::conv_transpose3d", packed_transposed, 1,
     nullptr, "", kLayer},
    {"onednn::qlinear_pointwise", onednn_linear, 1, nullptr, kFusable, kQuantizedFused},
    {"onednn::qconv_pointwise onednn::qconv1d_pointwise onednn::qconv2d_pointwise onednn::qconv3d_pointwise",
     onednn_convolution, 1, nullptr, kFusable, kQuantizedFused},
    {"quantized::matmul", quantized_matmul, 1, nullptr, "", "MACs in int8; requantize 1 per output"},
    {"aten::quantized_lstm", recurrent, 4, recurrent_bytes<4>, "num_layers,bidirectional", kRecurrent},
    {"aten::quantized_gru", recurrent, 3, recurrent_bytes<3>, "num_layers,bidirectional", kRecurrent},

    {"quantized::embedding_byte", embedding, 2, embedding_bytes<8>, "", kEmbedding},
    {"quantized::embedding_4bit", embedding, 2, embedding_bytes<4>, "", kEmbedding},
    {"quantized::embedding_bag_byte quantized::embedding_bag_byte_rowwise_offsets", embedding, 3, embedding_bytes<8>,
     "", kEmbeddingBag},
    {"quantized::embedding_bag_4bit quantized::embedding_bag_4bit_rowwise_offsets", embedding, 3, embedding_bytes<4>,
     "", kEmbeddingBag},

    {"quantized::add quantized::add_scalar quantized::mul quantized::mul_scalar quantized::cat_relu", per_output, 2,
     nullptr, "", kRequantized},
    {"quantized::add_relu quantized::mul_relu quantized::leaky_relu", per_output, 3, nullptr, "", kRequantized},
    {"quantized::cat", per_output, 1, nullptr, "", kRequantized},
    {"quantized::relu6", per_output, 2, nullptr, "", "two comparisons"},
    {"quantized::sigmoid", per_output, 5, nullptr, "", kRequantized},
    {"quantized::hardswish", per_output, 6, nullptr, "", kRequantized},
    {"quantized::batch_norm1d quantized::batch_norm2d quantized::batch_norm3d", per_output, 3, nullptr, "",
     "scale and shift, requantize 1"},

    {"aten::quantize_per_tensor aten::quantize_per_channel", per_output, 2, nullptr, "", "x / scale + zero point"},
    {"aten::quantize_per_tensor_dynamic", per_output, 4, nullptr, "", "min, max, x / scale + zero point"},
    {"aten::dequantize", per_output, 2, nullptr, "", "(q - zero point) * scale"},
    {"aten::int_repr aten::_make_per_tensor_quantized_tensor aten::_make_per_channel_quantized_tensor", no_operations,
     0, nullptr, "", "copied"},
    {"aten::fake_quantize_per_tensor_affine_cachemask aten::fake_quantize_per_channel_affine_cachemask "
     "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
     per_output, 6, nullptr, "", "quantize 2, clamp 2, back 2"},
    {"aten::_fused_moving_avg_obs_fq_helper", per_output, 8, nullptr, "", "min, max, quantize 2, clamp 2, back 2"},
    {"aten::_empty_affine_quantized aten::_empty_per_channel_affine_quantized aten::empty_quantized", no_operations, 0,
     no_bytes, "", "memory allocated"},
    {"aten::q_scale aten::q_zero_point aten::q_per_channel_scales aten::q_per_channel_zero_points "
     "aten::q_per_channel_axis aten::qscheme",
     no_operations, 0, no_bytes, "", kQuestion},
};

}  // namespace

std::span<const OpCost> quantized_costs() { return kQuantizedCosts; }

}  // namespace roofprof::ops
