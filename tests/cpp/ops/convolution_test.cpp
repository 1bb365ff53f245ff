#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

// 4 -> 6 channels in 2 groups, kernel 3 in every dimension, padding 1, batch 2, 5 positions along each dimension. Every
// output element takes 2 * 3^dims MACs.
Sizes convolution_sizes(std::int64_t batch, std::int64_t channels, int dims, std::int64_t extent) {
  Sizes result = {batch, channels};
  for (int i = 0; i < dims; ++i) result.push_back(extent);
  return result;
}

Call conv(std::string name, int dims, std::string input = "input") {
  return Call(std::move(name))
      .in(std::move(input), fp32, convolution_sizes(2, 4, dims, 5))
      .in("weight", fp32, convolution_sizes(6, 2, dims, 3))
      .in("bias", fp32, {6})
      .out(fp32, convolution_sizes(2, 6, dims, 5));
}

// 4 -> 6 channels in 2 groups, kernel 2, stride 2: every input element is spread over 3 * 2^dims outputs.
Call transposed(std::string name, int dims, std::string input = "input") {
  return Call(std::move(name))
      .in(std::move(input), fp32, convolution_sizes(2, 4, dims, 5))
      .in("weight", fp32, convolution_sizes(4, 3, dims, 2))
      .in("bias", fp32, {6})
      .out(fp32, convolution_sizes(2, 6, dims, 10));
}

// Outputs: 2*6*5^dims. Elements read: 2*4*5^dims + 6*2*3^dims + 6.
constexpr Expected kConv1d = {.macs = 60 * 6, .flops = 720 + 60, .read = 4 * (40 + 36 + 6), .write = 240};
constexpr Expected kConv2d = {.macs = 300 * 18, .flops = 10800 + 300, .read = 4 * (200 + 108 + 6), .write = 1200};
constexpr Expected kConv3d = {.macs = 1500 * 54, .flops = 162000 + 1500, .read = 4 * (1000 + 324 + 6), .write = 6000};
// Inputs: 2*4*5^dims. Outputs: 2*6*10^dims.
constexpr Expected kTransposed1d = {.macs = 40 * 6, .flops = 480 + 120, .read = 4 * (40 + 24 + 6), .write = 480};
constexpr Expected kTransposed2d = {.macs = 200 * 12, .flops = 4800 + 1200, .read = 4 * (200 + 48 + 6), .write = 4800};

// What is fused in counts one operation per output each.
Expected with_fused(Expected expected, std::int64_t operations, std::int64_t more_read = 0) {
  expected.flops += operations;
  *expected.read += more_read;
  return expected;
}

Call convolution_backward(Sizes mask) {
  return Call("aten::convolution_backward(grad_output fp32 2x6x5x5, input fp32 2x4x5x5, weight fp32 6x2x3x3)")
      .scalar("transposed", false)
      .scalar("output_mask", mask);
}

std::vector<CostCase> convolution_cases() {
  return {
      {conv("aten::conv1d", 1), kConv1d},
      {conv("aten::conv2d", 2), kConv2d},
      {conv("aten::conv3d", 3), kConv3d},
      // Without bias, depthwise, without a batch.
      {Call("aten::conv2d(input bf16 2x4x5x5, weight bf16 4x1x3x3, bias none) -> bf16 2x4x5x5"),
       {.macs = 200 * 9, .flops = 3600}},
      {Call("aten::conv2d(input fp32 4x5x5, weight fp32 6x4x3x3, bias none) -> fp32 6x5x5"),
       {.macs = 150 * 36, .flops = 10800}},
      {transposed("aten::conv_transpose1d", 1), kTransposed1d},
      {Call("aten::conv_transpose1d(input fp32 4x5, weight fp32 4x6x2, bias none) -> fp32 6x10"),
       {.macs = 20 * 12, .flops = 480}},
      // Time 7, batch 2, 4 -> 6 channels, kernel 3.
      {Call("aten::conv_tbc(self fp32 7x2x4, weight fp32 3x4x6, bias fp32 6) -> fp32 5x2x6"),
       {.macs = 60 * 12, .flops = 1440 + 60}},

      {conv("aten::convolution", 2).scalar("transposed", false), kConv2d},
      {transposed("aten::convolution", 2).scalar("transposed", true), kTransposed2d},
      {conv("aten::cudnn_convolution_relu", 2, "self"), with_fused(kConv2d, 300)},
      {conv("aten::cudnn_convolution_add_relu", 2, "self").in("z", fp32, {2, 6, 5, 5}), with_fused(kConv2d, 600, 1200)},
      // Grouped weights come as (groups, Cout/groups, Cin/groups, kernel).
      {Call("mkldnn::_convolution_pointwise(X fp32 2x4x5x5, W fp32 2x3x2x3x3, B fp32 6) -> fp32 2x6x5x5"),
       with_fused(kConv2d, 300)},
      {Call("mkldnn::_convolution_pointwise_.binary(other fp32 2x6x5x5 written, X fp32 2x4x5x5, W fp32 2x3x2x3x3, B "
            "fp32 6) -> fp32 2x6x5x5 written"),
       with_fused(kConv2d, 300, 1200)},
      {Call("mkldnn::_convolution_transpose_pointwise(X fp32 2x4x5x5, W fp32 2x2x3x2x2, B fp32 6) -> fp32 2x6x10x10"),
       with_fused(kTransposed2d, 1200)},

      // Grouped: each gradient has the forward's 5,400 MACs, no more. Elements: gradient 300, input 200, weight 108.
      {convolution_backward({1, 1, 1}).with("-> fp32 2x4x5x5, fp32 6x2x3x3, fp32 6"),
       {.macs = 10800, .flops = 21600 + 300, .read = 4 * 608, .write = 4 * (200 + 108 + 6)}},
      {convolution_backward({1, 0, 0}).with("-> fp32 2x4x5x5, none, none"),
       {.macs = 5400, .flops = 10800, .read = 4 * (300 + 108), .write = 4 * 200}},
      {convolution_backward({0, 1, 0}).with("-> none, fp32 6x2x3x3, none"),
       {.macs = 5400, .flops = 10800, .read = 4 * (300 + 200), .write = 4 * 108}},
      {convolution_backward({0, 0, 1}).with("-> none, none, fp32 6"), {.flops = 300, .read = 4 * 300, .write = 4 * 6}},
      {Call("aten::convolution_backward(grad_output fp32 2x6x10x10, input fp32 2x4x5x5, weight fp32 4x3x2x2, "
            "transposed=true, output_mask=[1,1,0]) -> fp32 2x4x5x5, fp32 4x3x2x2, none"),
       {.macs = 4800, .flops = 9600, .read = 4 * (1200 + 200 + 48), .write = 4 * (200 + 48)}},
      {Call("aten::_slow_conv2d_backward.output_mask(grad_output fp32 2x6x5x5, self fp32 2x4x5x5, weight fp32 6x4x3x3, "
            "output_mask=[1,1,1]) -> fp32 2x4x5x5, fp32 6x4x3x3, fp32 6"),
       {.macs = 21600, .flops = 43200 + 300, .read = 4 * (300 + 200 + 216), .write = 4 * (200 + 216 + 6)}},
      {Call("aten::conv_tbc_backward(self fp32 5x2x6, input fp32 7x2x4, weight fp32 3x4x6, bias fp32 6) -> fp32 7x2x4, "
            "fp32 3x4x6, fp32 6"),
       {.macs = 1440, .flops = 2880 + 60, .read = 4 * (60 + 56 + 72 + 6), .write = 4 * (56 + 72 + 6)}},
  };
}

TEST(Convolution, Costs) { check_family(convolution_costs(), convolution_cases()); }

Work conv2d(DType dtype, Sizes input, Sizes weight, Sizes output) {
  return *cost_of(
      Call("aten::conv2d").in("input", dtype, input).in("weight", dtype, weight).none("bias").out(dtype, output));
}

// PyProf's published rows for ResNet-50, batch 64, fp16.
TEST(Convolution, PublishedRowsOfResNet50) {
  const Work narrow = conv2d(fp16, {64, 64, 56, 56}, {64, 64, 1, 1}, {64, 64, 56, 56});
  EXPECT_EQ(narrow.flops(), 1'644'167'168);
  EXPECT_EQ(narrow.bytes(), 51'388'416);
  const Work wide = conv2d(fp16, {64, 64, 56, 56}, {256, 64, 1, 1}, {64, 256, 56, 56});
  EXPECT_EQ(wide.flops(), 6'576'668'672);
  EXPECT_EQ(wide.bytes(), 128'483'328);
}

// torchstat's row for 3 -> 48, kernel 6, stride 2, padding 2, bias: its MAdd is 2 x MACs, without the bias.
TEST(Convolution, PublishedRowOfTorchstat) {
  const Work work =
      *cost_of(Call("aten::conv2d(input fp32 1x3x384x1280, weight fp32 48x3x6x6, bias fp32 48) -> fp32 1x48x192x640"));
  EXPECT_EQ(2 * work.macs, 1'274'019'840);
  EXPECT_EQ(work.flops(), 1'274'019'840 + 5'898'240);
  EXPECT_EQ(work.read_bytes, 5'919'168);
  EXPECT_EQ(work.write_bytes, 23'592'960);
}

}  // namespace
}  // namespace roofprof::ops::testing
