// Recurrent layers and cells. Every weight matrix (input, hidden, projection) is applied once per sequence and time
// step; what follows the products is counted per hidden unit and step:
//   LSTM  sum of two products per gate, 3 sigmoid (4 each), 1 tanh, c' = f * c + i * g, h' = o * tanh(c')    22
//   GRU   sum of two products for r and z, 2 sigmoid, n = tanh(x + r * h), h' = (1 - z) * n + z * h          17
//   RNN   sum of two products, tanh or relu                                                                   2
// and 2 more for each gate with biases. Dropout between layers is left out.

#include <algorithm>
#include <array>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

struct Kind {
  std::int64_t gates;
  std::int64_t forward;   // operations per hidden unit and step, without biases
  std::int64_t backward;  // the same for the gradient
};

// Ordered as the `mode` of cuDNN and oneDNN, which is also a line's weight.
constexpr std::array<Kind, 4> kKinds = {{{1, 2, 1}, {1, 2, 3}, {4, 22, 23}, {3, 17, 16}}};
constexpr std::int64_t kRelu = 0, kTanh = 1, kLstm = 2, kGru = 3;

const Kind& kind_of(std::int64_t mode) { return kKinds.at(static_cast<std::size_t>(mode)); }

std::int64_t forward_operations(const Kind& kind, bool biases) { return kind.forward + (biases ? 2 * kind.gates : 0); }

// Sequences times time steps; packed sequences hold just these rows.
std::int64_t steps(const TensorDesc& input) { return input.size(-1) == 0 ? 0 : input.numel() / input.size(-1); }

std::int64_t elements_of_matrices(std::span<const TensorDesc> weights) {
  std::int64_t elements = 0;
  for (const auto& weight : weights) {
    if (weight.dim() == 2) elements = saturating_add(elements, weight.numel());
  }
  return elements;
}

bool has_vectors(std::span<const TensorDesc> weights) {
  for (const auto& weight : weights) {
    if (weight.dim() == 1) return true;
  }
  return false;
}

// Hidden units of all layers and directions, from a state of (layers x directions, batch, hidden).
std::int64_t units(const TensorDesc& state) { return saturating_multiply(state.size(0), state.size(-1)); }

// ---- whole layers, ATen's own: lstm(input, hx, params, ...), data instead of input where packed

void layers(const OpCall& call, std::int64_t mode, Work& work) {
  const TensorDesc& input = call.tensor(0);
  const auto& weights = call.tensors("params");
  const std::int64_t count = steps(input);
  add_macs(work, saturating_multiply(count, elements_of_matrices(weights)), input);
  // The cell state comes last; with projections it is the one that has hidden_size.
  const std::int64_t each = forward_operations(kind_of(mode), has_vectors(weights));
  add_operations(work, product({each, count, units(call.tensors("hx").back())}), input.dtype);
}

// ---- one step: lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh)

void cell(const OpCall& call, std::int64_t mode, Work& work) {
  const TensorDesc& input = call.tensor("input");
  const TensorDesc& hidden = call.tensor("w_hh");
  const Kind& kind = kind_of(mode);
  const std::int64_t count = steps(input);
  add_macs(work, saturating_multiply(count, saturating_add(call.tensor("w_ih").numel(), hidden.numel())), input);
  const std::int64_t each = forward_operations(kind, call.find_tensor("b_ih") != nullptr);
  add_operations(work, product({each, count, hidden.size(0) / kind.gates}), input.dtype);
}

// Counts only what follows the products; weight is the mode.
void gates(const OpCall& call, std::int64_t mode, Work& work) {
  const TensorDesc& state = call.find_tensor("cx") != nullptr ? call.tensor("cx") : call.tensor("hx");
  const std::int64_t each = forward_operations(kind_of(mode), call.find_tensor("input_bias") != nullptr);
  add_operations(work, saturating_multiply(each, state.numel()), state.dtype);
}

void gates_backward(const OpCall& call, std::int64_t mode, Work& work) {
  const TensorDesc& state = call.find_tensor("cx") != nullptr ? call.tensor("cx") : call.tensor("grad_hy");
  add_operations(work, saturating_multiply(kind_of(mode).backward, state.numel()), state.dtype);
}

// ---- oneDNN: one layer in one direction; the weights are single arguments

void mkldnn_layer(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& input = call.tensor("input");
  const std::int64_t matrices = saturating_add(call.tensor("weight0").numel(), call.tensor("weight1").numel());
  const std::int64_t each = forward_operations(kind_of(call.integer("mode", kLstm)), call.boolean("has_biases", true));
  add_macs(work, saturating_multiply(steps(input), matrices), input);
  add_operations(work, product({each, steps(input), call.tensor("hx_").size(-1)}), input.dtype);
}

// Gradients of inputs and of weights: the forward's MACs twice.
void mkldnn_layer_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& input = call.tensor("input");
  const std::int64_t matrices = saturating_add(call.tensor("weight1").numel(), call.tensor("weight2").numel());
  const std::int64_t each = kind_of(call.integer("mode", kLstm)).backward;
  add_macs(work, product({2, steps(input), matrices}), input);
  add_operations(work, product({each, steps(input), call.tensor("hx_").size(-1)}), input.dtype);
}

// ---- cuDNN: all layers and directions

const TensorDesc& cell_state(const OpCall& call) {
  return call.find_tensor("cx") != nullptr ? call.tensor("cx") : call.tensor("hx");
}

void cudnn_layers(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& input = call.tensor("input");
  const auto& weights = call.tensors("weight");
  const std::int64_t each = forward_operations(kind_of(call.integer("mode", kLstm)), has_vectors(weights));
  add_macs(work, saturating_multiply(steps(input), elements_of_matrices(weights)), input);
  add_operations(work, product({each, steps(input), units(cell_state(call))}), input.dtype);
}

void cudnn_layers_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& input = call.tensor("input");
  const std::int64_t each = kind_of(call.integer("mode", kLstm)).backward;
  add_macs(work, product({2, steps(input), elements_of_matrices(call.tensors("weight"))}), input);
  add_operations(work, product({each, steps(input), units(cell_state(call))}), input.dtype);
}

// weight_buf holds the same numbers as the weights, which are views of it: it counts neither as argument nor as result.
void cudnn_bytes(const OpCall& call, Work& work) {
  for (const auto& argument : call.arguments) {
    if (argument.name != "weight_buf") read(work, argument.tensors);
  }
  constexpr std::size_t kResults = 4;
  for (std::size_t i = 0; i < std::min(kResults, call.results.size()); ++i) {
    for (const auto& tensor : call.results[i].tensors) {
      work.write_bytes = saturating_add(work.write_bytes, tensor.held_bytes());
    }
  }
}

constexpr std::string_view kLayersBackward = "2 x the forward's MACs; per unit and step LSTM 23, GRU 16, RNN 3 or 1";

constexpr OpCost kRecurrentCosts[] = {
    {"aten::lstm", layers, kLstm, nullptr, "", "MACs = steps x weight matrices; 22 per unit, 30 with biases"},
    {"aten::gru", layers, kGru, nullptr, "", "MACs = steps x weight matrices; 17 per unit, 23 with biases"},
    {"aten::rnn_tanh", layers, kTanh, nullptr, "", "MACs = steps x weight matrices; 2 per unit, 4 with biases"},
    {"aten::rnn_relu", layers, kRelu, nullptr, "", "MACs = steps x weight matrices; 2 per unit, 4 with biases"},
    {"aten::lstm_cell", cell, kLstm, nullptr, "", "as lstm, one step"},
    {"aten::gru_cell", cell, kGru, nullptr, "", "as gru, one step"},
    {"aten::rnn_tanh_cell", cell, kTanh, nullptr, "", "as rnn_tanh, one step"},
    {"aten::rnn_relu_cell", cell, kRelu, nullptr, "", "as rnn_relu, one step"},

    {"aten::mkldnn_rnn_layer", mkldnn_layer, 0, nullptr, "mode,has_biases", "as lstm, one layer in one direction"},
    {"aten::mkldnn_rnn_layer_backward", mkldnn_layer_backward, 0, nullptr, "mode", kLayersBackward},
    {"aten::_cudnn_rnn", cudnn_layers, 0, cudnn_bytes, "mode", "as lstm, gru, rnn_tanh, rnn_relu"},
    {"aten::_cudnn_rnn_backward", cudnn_layers_backward, 0, cudnn_bytes, "mode", kLayersBackward},

    {"aten::_thnn_fused_lstm_cell", gates, kLstm, nullptr, "", "22 per unit, 30 with biases; the products come before"},
    {"aten::_thnn_fused_lstm_cell_backward_impl", gates_backward, kLstm, nullptr, "", "23 per unit"},
    {"aten::_thnn_fused_gru_cell", gates, kGru, nullptr, "", "17 per unit, 23 with biases; the products come before"},
    {"aten::_thnn_fused_gru_cell_backward", gates_backward, kGru, nullptr, "", "16 per unit"},
};

}  // namespace

std::span<const OpCost> recurrent_costs() { return kRecurrentCosts; }

}  // namespace roofprof::ops
