#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// 5 steps of 2 sequences with 4 features into 8 hidden units: one layer and direction.
constexpr std::int64_t kSteps = 5 * 2;

std::vector<TensorDesc> weights(std::int64_t gates, bool biases) {
  std::vector<TensorDesc> list = {tensor(fp32, {gates * 8, 4}), tensor(fp32, {gates * 8, 8})};
  if (biases) list.insert(list.end(), 2, tensor(fp32, {gates * 8}));
  return list;
}

// Bytes: input 160, state 64, weights; output 320, state 64.
CostCase gru_or_rnn(const char* op, std::int64_t gates, std::int64_t each) {
  const std::int64_t parameters = gates * 8 * (4 + 8 + 2);
  return {Call(op)
              .overload("input")
              .with("(input fp32 5x2x4, hx fp32 1x2x8)")
              .list("params", weights(gates, true))
              .with("-> fp32 5x2x8, fp32 1x2x8"),
          {.macs = kSteps * gates * 8 * (4 + 8),
           .flops = 2 * kSteps * gates * 8 * (4 + 8) + each * kSteps * 8,
           .read = 160 + 64 + parameters * 4,
           .write = 320 + 64}};
}

// One step of 2 sequences. LSTM cells have two states.
CostCase cell(const char* op, std::int64_t gates, std::int64_t states, std::int64_t each) {
  const std::int64_t parameters = gates * 8 * (4 + 8 + 2);
  Call call(op);
  call.in("input", fp32, {2, 4});
  call.list("hx", std::vector<TensorDesc>(static_cast<std::size_t>(states), tensor(fp32, {2, 8})));
  call.in("w_ih", fp32, {gates * 8, 4}).in("w_hh", fp32, {gates * 8, 8});
  call.in("b_ih", fp32, {gates * 8}).in("b_hh", fp32, {gates * 8});
  for (std::int64_t i = 0; i < states; ++i) call.out(fp32, {2, 8});
  return {call,
          {.macs = 2 * gates * 8 * (4 + 8),
           .flops = 2 * 2 * gates * 8 * (4 + 8) + each * 2 * 8,
           .read = 32 + states * 64 + parameters * 4,
           .write = states * 64}};
}

CostCase cudnn(int mode, std::int64_t gates, std::int64_t each) {
  const std::int64_t parameters = gates * 8 * (4 + 8 + 2);
  return {Call("aten::_cudnn_rnn(input fp32 5x2x4)")
              .list("weight", weights(gates, true))
              .in("weight_buf", fp32, {parameters})
              .with("(hx fp32 1x2x8, cx none)")
              .scalar("mode", mode)
              .with("-> fp32 5x2x8, fp32 1x2x8, fp32 0, uint8 1000")
              .out(fp32, {parameters}),
          {.macs = kSteps * gates * 8 * (4 + 8),
           .flops = 2 * kSteps * gates * 8 * (4 + 8) + each * kSteps * 8,
           .read = 160 + 64 + parameters * 4,
           .write = 320 + 64 + 1000}};
}

const std::vector<CostCase> kRecurrentCases = {
    // Two layers in two directions, without biases: the second layer takes 16 features.
    {Call("aten::lstm.input(input fp32 5x2x4, hx [fp32 4x2x8; fp32 4x2x8], params [fp32 32x4; fp32 32x8; fp32 32x4; "
          "fp32 32x8; fp32 32x16; fp32 32x8; fp32 32x16; fp32 32x8]) -> fp32 5x2x16, fp32 4x2x8, fp32 4x2x8"),
     {.macs = kSteps * 32 * 2 * ((4 + 8) + (16 + 8)),
      .flops = 2 * kSteps * 32 * 2 * ((4 + 8) + (16 + 8)) + 22 * kSteps * 4 * 8}},
    // Packed: 8 rows are left of the 5 x 2. With biases 8 more for each unit.
    {Call("aten::lstm.data(data fp32 8x4, batch_sizes int64 5, hx [fp32 1x2x8; fp32 1x2x8])")
         .list("params", weights(4, true))
         .with("-> fp32 8x8, fp32 1x2x8, fp32 1x2x8"),
     {.macs = 8 * 32 * 12, .flops = 2 * 8 * 32 * 12 + 30 * 8 * 8}},
    // Projected to 3 outputs: the hidden state is 3 wide, the cell state 8.
    {Call("aten::lstm.input(input fp32 5x2x4, hx [fp32 1x2x3; fp32 1x2x8], params [fp32 32x4; fp32 32x3; fp32 3x8]) -> "
          "fp32 5x2x3, fp32 1x2x3, fp32 1x2x8"),
     {.macs = kSteps * (32 * 4 + 32 * 3 + 3 * 8), .flops = 2 * kSteps * (32 * 4 + 32 * 3 + 3 * 8) + 22 * kSteps * 8}},
    gru_or_rnn("aten::gru", 3, 17 + 6),
    gru_or_rnn("aten::rnn_tanh", 1, 2 + 2),
    gru_or_rnn("aten::rnn_relu", 1, 2 + 2),
    cell("aten::lstm_cell", 4, 2, 22 + 8),
    cell("aten::gru_cell", 3, 1, 17 + 6),
    cell("aten::rnn_tanh_cell", 1, 1, 2 + 2),
    cell("aten::rnn_relu_cell", 1, 1, 2 + 2),

    {Call("aten::mkldnn_rnn_layer(input fp32 5x2x4, weight0 fp32 32x4, weight1 fp32 32x8, weight2 fp32 32, weight3 "
          "fp32 32, hx_ fp32 2x8, cx_ fp32 2x8, mode=2, has_biases=true) -> fp32 5x2x8, fp32 2x8, fp32 2x8, fp32 0"),
     {.macs = kSteps * 32 * 12, .flops = 2 * kSteps * 32 * 12 + 30 * kSteps * 8}},
    // Gradients of inputs and of weights.
    {Call("aten::mkldnn_rnn_layer_backward(input fp32 5x2x4, weight1 fp32 32x4, weight2 fp32 32x8, hx_ fp32 2x8, "
          "grad_output fp32 5x2x8, mode=2) -> fp32 5x2x4, fp32 32x4, fp32 32x8"),
     {.macs = 2 * kSteps * 32 * 12, .flops = 4 * kSteps * 32 * 12 + 23 * kSteps * 8}},
    cudnn(0, 1, 2 + 2),
    cudnn(1, 1, 2 + 2),
    cudnn(3, 3, 17 + 6),
    {Call("aten::_cudnn_rnn_backward(input fp32 5x2x4)")
         .list("weight", weights(4, false))
         .with("(weight_buf fp32 384, hx fp32 1x2x8, cx fp32 1x2x8, output fp32 5x2x8, grad_output fp32 5x2x8, mode=2, "
               "reserve uint8 1000) -> fp32 5x2x4, fp32 1x2x8, fp32 1x2x8")
         .out_list(weights(4, false)),
     {.macs = 2 * kSteps * 32 * 12,
      .flops = 4 * kSteps * 32 * 12 + 23 * kSteps * 8,
      .read = 160 + 384 * 4 + 128 + 640 + 1000,
      .write = 160 + 128 + 384 * 4}},

    {Call("aten::_thnn_fused_lstm_cell(input_gates fp32 2x32, hidden_gates fp32 2x32, cx fp32 2x8, input_bias fp32 32, "
          "hidden_bias fp32 32) -> fp32 2x8, fp32 2x8, fp32 2x32"),
     {.flops = 30 * 16}},
    {Call("aten::_thnn_fused_lstm_cell_backward_impl(grad_hy fp32 2x8, grad_cy none, cx fp32 2x8, cy fp32 2x8, "
          "workspace fp32 2x32) -> fp32 2x32, fp32 2x8"),
     {.flops = 23 * 16}},
    {Call("aten::_thnn_fused_gru_cell(input_gates fp32 2x24, hidden_gates fp32 2x24, hx fp32 2x8, input_bias none, "
          "hidden_bias none) -> fp32 2x8, fp32 2x40"),
     {.flops = 17 * 16}},
    {Call("aten::_thnn_fused_gru_cell_backward(grad_hy fp32 2x8, workspace fp32 2x40) -> fp32 2x24, fp32 2x24, fp32 "
          "2x8"),
     {.flops = 16 * 16}},
};

TEST(Recurrent, CostsAreAsWrittenOut) { check_family(recurrent_costs(), kRecurrentCases); }

}  // namespace
}  // namespace roofprof::ops
