#include "analysis/predict/op_class.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "analysis/predict/plain_device.h"

namespace roofprof {
namespace {

// By its name, so that a failure can be read.
std::string_view class_named(std::string_view op, std::string_view shapes = "") {
  const auto bucket = testing::bucket_named(op, shapes);
  return kOpClassNames.at(static_cast<std::size_t>(class_of(bucket, sized_shapes(bucket))));
}

TEST(SizedShapes, LeaveOutWhatHasNoKnownNumberOfElements) {
  const auto sized = [](std::string_view shapes) { return sized_shapes(testing::bucket_named("aten::add", shapes)); };
  EXPECT_EQ(sized("scalar, 2x3, 2x*x4, 2x0x4"), (std::vector<Shape>{{2, 3}, {2, 0, 4}}));
  EXPECT_TRUE(sized("").empty());
  EXPECT_TRUE(sized("other shapes").empty());
}

TEST(SizedShapes, ElementsAreTheProductAndSaturate) {
  EXPECT_EQ(elements_of({2, 3, 4}), 24);
  EXPECT_EQ(elements_of({}), 1);
  EXPECT_EQ(elements_of({2, 0, 4}), 0);
  EXPECT_EQ(elements_of({kSaturated, 2}), kSaturated);
}

TEST(PlainName, DropsNamespaceInPlaceMarkAndVariant) {
  EXPECT_EQ(plain_name("aten::relu_"), "relu");
  EXPECT_EQ(plain_name("aten::_conv2d_backward"), "conv2d");
  EXPECT_EQ(plain_name("aten::conv2d"), "conv2d");
  EXPECT_EQ(plain_name("aten::native_layer_norm"), "layer_norm");
  EXPECT_EQ(plain_name("aten::native_group_norm_backward"), "group_norm");
  EXPECT_EQ(plain_name("aten::cudnn_convolution"), "convolution");
  EXPECT_EQ(plain_name("aten::mkldnn_linear"), "linear");
  EXPECT_EQ(plain_name("aten::_fused_rms_norm"), "rms_norm");
  EXPECT_EQ(plain_name("aten::convolution_overrideable"), "convolution");
  EXPECT_EQ(plain_name("aten::_softmax"), "softmax");
  EXPECT_EQ(plain_name("torchvision::nms"), "nms");
  EXPECT_EQ(plain_name("relu"), "relu");
  EXPECT_EQ(plain_name("aten::_"), "");
  EXPECT_EQ(plain_name(""), "");
}

TEST(ClassOf, ConvolutionsByTheirWeights) {
  EXPECT_EQ(class_named("aten::conv2d", "1x3x224x224, 64x3x7x7"), "conv_stem");
  EXPECT_EQ(class_named("aten::conv2d", "1x64x56x56, 64x64x3x3, 64"), "conv_spatial");
  EXPECT_EQ(class_named("aten::conv2d", "1x64x56x56, 256x64x1x1"), "conv_pointwise");
  EXPECT_EQ(class_named("aten::conv2d", "1x64x56x56, 64x1x3x3"), "conv_depthwise");
  // ResNeXt: 32 groups of four channels.
  EXPECT_EQ(class_named("aten::conv2d", "1x128x56x56, 128x4x3x3"), "conv_grouped");
  EXPECT_EQ(class_named("aten::conv1d", "1x64x100, 64x64x3"), "conv_spatial");
  EXPECT_EQ(class_named("aten::conv3d", "1x64x8x8x8, 128x64x1x1x1"), "conv_pointwise");
  EXPECT_EQ(class_named("aten::cudnn_convolution", "1x64x56x56, 64x64x3x3"), "conv_spatial");
  // Which it is cannot be told: what most are.
  EXPECT_EQ(class_named("aten::conv2d", "other shapes"), "conv_spatial");
}

// A transposed convolution's weight is in x out x k x k: channels that become fewer are no groups.
TEST(ClassOf, TransposedConvolutionsOfFewerOutputsHaveNoGroups) {
  EXPECT_EQ(class_named("aten::conv_transpose2d", "1x64x8x8, 64x64x2x2"), "conv_spatial");
  EXPECT_EQ(class_named("aten::conv_transpose2d", "1x64x8x8, 64x32x2x2"), "conv_spatial");
  EXPECT_EQ(class_named("aten::conv_transpose2d", "1x64x8x8, 64x1x2x2"), "conv_spatial");
}

// Operands of the backward: gradient, input, weight.
TEST(ClassOf, BackwardConvolutionsAreOfTheirForwardsClass) {
  EXPECT_EQ(class_named("aten::convolution_backward", "8x128x28x28, 8x64x56x56, 128x64x3x3"), "conv_spatial");
  EXPECT_EQ(class_named("aten::convolution_backward", "8x64x56x56, 8x64x56x56, 64x1x3x3"), "conv_depthwise");
}

TEST(ClassOf, ProductsWithWeightsAndOfActivations) {
  EXPECT_EQ(class_named("aten::linear", "8x512, 1000x512, 1000"), "linear");
  EXPECT_EQ(class_named("aten::linear_backward", "8x512, 8x1000, 1000x512"), "linear");
  EXPECT_EQ(class_named("aten::addmm", "768, 128x512, 512x768"), "linear");
  EXPECT_EQ(class_named("aten::mm", "128x512, 512x768"), "linear");
  EXPECT_EQ(class_named("aten::matmul", "8x16x64, 8x64x16"), "batched_matmul");
  EXPECT_EQ(class_named("aten::bmm", "8x16x64, 8x64x16"), "batched_matmul");
}

TEST(ClassOf, AttentionIsFusedInFourDimensions) {
  EXPECT_EQ(class_named("aten::scaled_dot_product_attention", "2x4x16x8, 2x4x16x8, 2x4x16x8"), "attention");
  EXPECT_EQ(class_named("aten::scaled_dot_product_attention", "2x3x4x16x8, 2x3x4x16x8, 2x3x4x16x8"),
            "unfused_attention");
  EXPECT_EQ(class_named("aten::_scaled_dot_product_flash_attention", "2x4x16x8, 2x4x16x8, 2x4x16x8"), "attention");
}

TEST(ClassOf, TheRestGoByNameAndFamily) {
  EXPECT_EQ(class_named("aten::batch_norm", "1x64x56x56, 64, 64, 64, 64"), "elementwise");
  EXPECT_EQ(class_named("aten::layer_norm", "1x16x64, 64, 64"), "row_norm");
  EXPECT_EQ(class_named("aten::native_layer_norm", "1x16x64, 64, 64"), "row_norm");
  EXPECT_EQ(class_named("aten::group_norm"), "row_norm");
  EXPECT_EQ(class_named("aten::relu_"), "elementwise");
  EXPECT_EQ(class_named("aten::gelu"), "elementwise");
  EXPECT_EQ(class_named("aten::add"), "elementwise");
  EXPECT_EQ(class_named("aten::pow"), "elementwise");
  EXPECT_EQ(class_named("aten::softmax"), "softmax");
  EXPECT_EQ(class_named("aten::_softmax"), "softmax");
  EXPECT_EQ(class_named("aten::sum"), "reduction");
  EXPECT_EQ(class_named("aten::max_pool2d"), "pooling");
  EXPECT_EQ(class_named("aten::adaptive_avg_pool2d"), "reduction");
  EXPECT_EQ(class_named("aten::cat"), "concatenation");
  EXPECT_EQ(class_named("aten::clone"), "copy");
  EXPECT_EQ(class_named("aten::embedding"), "copy");
  EXPECT_EQ(class_named("aten::upsample_bilinear2d"), "interpolation");
  EXPECT_EQ(class_named("aten::upsample_nearest2d"), "copy");
}

TEST(ClassOf, WhatNoClassIsMadeForIsOther) {
  EXPECT_EQ(class_named("mylib::own"), "other");
  EXPECT_EQ(class_named("aten::lstm"), "other");
  EXPECT_EQ(class_named("torchvision::nms"), "other");
  EXPECT_EQ(class_named(""), "other");
}

TEST(OpClasses, NamesAreInTheOrderOfTheEnumeration) {
  const auto name = [](OpClass op) { return kOpClassNames.at(static_cast<std::size_t>(op)); };
  EXPECT_EQ(name(OpClass::linear), "linear");
  EXPECT_EQ(name(OpClass::unfused_attention), "unfused_attention");
  EXPECT_EQ(name(OpClass::conv_depthwise), "conv_depthwise");
  EXPECT_EQ(name(OpClass::elementwise), "elementwise");
  EXPECT_EQ(name(OpClass::copy), "copy");
  EXPECT_EQ(name(OpClass::other), "other");
}

TEST(OpClasses, TensorCoresComputeNeitherDepthwiseNorUnfused) {
  for (const auto op : {OpClass::linear, OpClass::batched_matmul, OpClass::attention, OpClass::conv_pointwise,
                        OpClass::conv_spatial, OpClass::conv_stem, OpClass::conv_grouped}) {
    EXPECT_TRUE(is_contraction(op));
  }
  for (const auto op : {OpClass::unfused_attention, OpClass::conv_depthwise, OpClass::elementwise, OpClass::other}) {
    EXPECT_FALSE(is_contraction(op));
  }
  EXPECT_TRUE(is_convolution(OpClass::conv_depthwise));
  EXPECT_FALSE(is_convolution(OpClass::linear));
  EXPECT_FALSE(is_convolution(OpClass::elementwise));
}

}  // namespace
}  // namespace roofprof
