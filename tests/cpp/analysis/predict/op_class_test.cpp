#include "analysis/predict/op_class.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "analysis/predict/plain_device.h"

namespace roofprof {
namespace {

TEST(SizedShapes, LeaveOutWhatHasNoKnownNumberOfElements) {
  const auto sized = [](std::string_view shapes) { return sized_shapes(testing::bucket_named("aten::add", shapes)); };
  EXPECT_EQ(sized("scalar, 2x3, 2x*x4, 2x0x4"), (std::vector<Shape>{{2, 3}, {2, 0, 4}}));
  EXPECT_TRUE(sized("other shapes").empty());
  EXPECT_EQ(elements_of({2, 3, 4}), 24);
  EXPECT_EQ(elements_of({}), 1);
  EXPECT_EQ(elements_of({kSaturated, 2}), kSaturated);
}

struct Case {
  std::string_view op;
  std::string_view shapes;
  std::string_view expected;
};

constexpr Case kCases[] = {
    // Convolutions go by their weights. 32 groups of four channels are ResNeXt's.
    {"aten::conv2d", "1x3x224x224, 64x3x7x7", "conv_stem"},
    {"aten::conv2d", "1x64x56x56, 64x64x3x3, 64", "conv_spatial"},
    {"aten::conv2d", "1x64x56x56, 256x64x1x1", "conv_pointwise"},
    {"aten::conv2d", "1x64x56x56, 64x1x3x3", "conv_depthwise"},
    {"aten::conv2d", "1x128x56x56, 128x4x3x3", "conv_grouped"},
    {"aten::conv1d", "1x64x100, 64x64x3", "conv_spatial"},
    {"aten::conv3d", "1x64x8x8x8, 128x64x1x1x1", "conv_pointwise"},
    {"aten::cudnn_convolution", "1x64x56x56, 64x64x3x3", "conv_spatial"},
    // Which it is cannot be told: what most are.
    {"aten::conv2d", "other shapes", "conv_spatial"},
    // A transposed convolution's weight is in x out x k x k: channels that become fewer are no groups.
    {"aten::conv_transpose2d", "1x64x8x8, 64x32x2x2", "conv_spatial"},
    {"aten::conv_transpose2d", "1x64x8x8, 64x1x2x2", "conv_spatial"},
    // Operands of the backward: gradient, input, weight.
    {"aten::convolution_backward", "8x128x28x28, 8x64x56x56, 128x64x3x3", "conv_spatial"},
    {"aten::convolution_backward", "8x64x56x56, 8x64x56x56, 64x1x3x3", "conv_depthwise"},
    {"aten::linear", "8x512, 1000x512, 1000", "linear"},
    {"aten::linear_backward", "8x512, 8x1000, 1000x512", "linear"},
    {"aten::addmm", "768, 128x512, 512x768", "linear"},
    {"aten::matmul", "8x16x64, 8x64x16", "batched_matmul"},
    // Attention is fused in four dimensions.
    {"aten::scaled_dot_product_attention", "2x4x16x8, 2x4x16x8, 2x4x16x8", "attention"},
    {"aten::scaled_dot_product_attention", "2x3x4x16x8, 2x3x4x16x8, 2x3x4x16x8", "unfused_attention"},
    {"aten::_scaled_dot_product_flash_attention", "2x4x16x8, 2x4x16x8, 2x4x16x8", "attention"},
    // The rest go by name and family.
    {"aten::batch_norm", "1x64x56x56, 64, 64, 64, 64", "elementwise"},
    {"aten::native_layer_norm", "1x16x64, 64, 64", "row_norm"},
    {"aten::group_norm", "", "row_norm"},
    {"aten::relu_", "", "elementwise"},
    {"aten::_fused_rms_norm", "", "row_norm"},
    {"aten::mkldnn_linear", "8x512, 1000x512", "linear"},
    {"torchvision::nms", "", "other"},
    {"aten::_", "", "other"},
    {"aten::_softmax", "", "softmax"},
    {"aten::sum", "", "reduction"},
    {"aten::max_pool2d", "", "pooling"},
    {"aten::adaptive_avg_pool2d", "", "reduction"},
    {"aten::cat", "", "concatenation"},
    {"aten::embedding", "", "copy"},
    {"aten::upsample_bilinear2d", "", "interpolation"},
    {"aten::upsample_nearest2d", "", "copy"},
    {"mylib::own", "", "other"},
    {"", "", "other"},
};

TEST(ClassOf, IsByNameAndShapes) {
  for (const auto& tested : kCases) {
    const auto bucket = testing::bucket_named(tested.op, tested.shapes);
    const auto of = class_of(bucket, sized_shapes(bucket));
    EXPECT_EQ(kOpClassNames.at(static_cast<std::size_t>(of)), tested.expected) << tested.op << " " << tested.shapes;
  }
}

TEST(OpClasses, TensorCoresComputeNeitherDepthwiseNorUnfused) {
  for (const auto op : {OpClass::linear, OpClass::attention, OpClass::conv_pointwise, OpClass::conv_grouped}) {
    EXPECT_TRUE(is_contraction(op));
  }
  for (const auto op : {OpClass::unfused_attention, OpClass::conv_depthwise, OpClass::elementwise, OpClass::other}) {
    EXPECT_FALSE(is_contraction(op));
  }
  EXPECT_TRUE(is_convolution(OpClass::conv_depthwise));
  EXPECT_FALSE(is_convolution(OpClass::linear));
}

}  // namespace
}  // namespace roofprof
