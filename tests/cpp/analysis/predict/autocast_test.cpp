#include "analysis/predict/op_features.h"

#include <gtest/gtest.h>

#include <string_view>

#include "analysis/predict/plain_device.h"

namespace roofprof {
namespace {

// Counted in fp16: operands of so many elements, each read once.
class Flow {
 public:
  AutocastBytes next(std::string_view op, std::string_view shapes, std::int64_t output) {
    OpBucket bucket = testing::bucket_named(op, shapes, DType::fp16);
    bucket.work.output_elements = output;
    const auto sizes = sized_shapes(bucket);
    read_ = 0;
    for (const auto& shape : sizes) read_ += 2 * static_cast<double>(elements_of(shape));
    write_ = 2 * static_cast<double>(output);
    return flow_.next(bucket, class_of(bucket, sizes), sizes, read_, write_);
  }

  void expect(std::string_view op, std::string_view shapes, std::int64_t output, const AutocastBytes& expected) {
    const auto bytes = next(op, shapes, output);
    EXPECT_DOUBLE_EQ(bytes.read, expected.read) << op;
    EXPECT_DOUBLE_EQ(bytes.write, expected.write) << op;
    EXPECT_DOUBLE_EQ(bytes.casts, expected.casts) << op;
  }

  void expect_as_counted(std::string_view op, std::string_view shapes, std::int64_t output) {
    const auto bytes = next(op, shapes, output);
    EXPECT_DOUBLE_EQ(bytes.read, read_) << op;
    EXPECT_DOUBLE_EQ(bytes.write, write_) << op;
    EXPECT_DOUBLE_EQ(bytes.casts, 0) << op;
  }

 private:
  AutocastFlow flow_;
  double read_ = 0;
  double write_ = 0;
};

constexpr double kTokens = 2 * 16 * 64;          // elements
constexpr double kWeights = 2 * (64 * 64 + 64);  // bytes of a linear layer's, which were cast once

// Patches of two images, to which a parameter in fp32 is added: the sum is in fp32 from there on.
struct Transformer : ::testing::Test {
  Transformer() {
    flow.expect_as_counted("aten::conv2d", "2x3x32x32, 64x3x8x8, 64", 2048);
    flow.expect("aten::add", "2x16x64, 1x16x64", 2048, {2 * kTokens + 4 * 16 * 64, 4 * kTokens, 0});
  }

  Flow flow;
};

TEST_F(Transformer, TheResidualSumStaysInFp32) {
  // One cast between the sum and the product, whichever side of the norm it is on: 4 bytes read, 2 written.
  const auto norm = flow.next("aten::layer_norm", "2x16x64, 64, 64", 2048);
  const auto linear = flow.next("aten::linear", "2x16x64, 64x64, 64", 2048);
  EXPECT_DOUBLE_EQ(norm.casts + linear.casts, 6 * kTokens);
  EXPECT_DOUBLE_EQ(linear.read, 2 * kTokens + kWeights);
  EXPECT_DOUBLE_EQ(linear.write, 2 * kTokens);
  for (int layer = 0; layer < 2; ++layer) {
    // The product's output is narrow, what it is added to is not.
    flow.expect("aten::add", "2x16x64, 2x16x64", 2048, {(4 + 2) * kTokens, 4 * kTokens, 0});
    // Without a norm between them the product casts the sum itself.
    flow.expect("aten::linear", "2x16x64, 64x64, 64", 2048, {2 * kTokens + kWeights, 2 * kTokens, 6 * kTokens});
  }
}

TEST_F(Transformer, ElementwiseOpsAreInTheTypeOfTheirInput) {
  flow.expect("aten::gelu", "2x16x64", 2048, {4 * kTokens, 4 * kTokens, 0});
  flow.next("aten::linear", "2x16x64, 256x64, 256", 8192);
  flow.expect_as_counted("aten::gelu", "2x16x256", 8192);
}

// ResNet's: no parameter takes part but in products and norms.
TEST(Autocast, ConvolutionsAndTheirSumsStayNarrow) {
  Flow flow;
  flow.expect_as_counted("aten::conv2d", "2x64x8x8, 64x64x3x3", 8192);
  flow.expect_as_counted("aten::batch_norm", "2x64x8x8, 64, 64, 64, 64", 8192);
  flow.expect_as_counted("aten::relu_", "2x64x8x8", 8192);
  flow.expect_as_counted("aten::add_", "2x64x8x8, 2x64x8x8", 8192);
  flow.expect_as_counted("aten::cat", "2x64x8x8, 2x64x8x8", 16384);
  // In place the first operand's type stays, beside a parameter too.
  flow.expect("aten::mul_", "2x64x8x8, 64x8x8", 8192, {2 * 8192 + 4 * 4096, 2 * 8192, 0});
  flow.expect_as_counted("aten::conv2d", "2x64x8x8, 64x64x3x3", 8192);
}

TEST(Autocast, SoftmaxReadsTheNarrowTypeAndWritesFp32) {
  Flow flow;
  flow.expect_as_counted("aten::bmm", "8x16x64, 8x64x16", 2048);
  flow.expect("aten::softmax", "8x16x16", 2048, {2 * 2048, 4 * 2048, 0});
  // The product that follows casts its first operand back, not the values.
  const auto product = flow.next("aten::bmm", "8x16x16, 8x16x64", 8192);
  EXPECT_DOUBLE_EQ(product.casts, 6 * 2048);
  EXPECT_DOUBLE_EQ(product.write, 2 * 8192);
}

// torch casts before these: 2 bytes read and 4 written for each element. What is in fp32 already needs no cast.
TEST(Autocast, OthersAreCastToFp32First) {
  Flow flow;
  flow.expect_as_counted("aten::conv2d", "1x64x8x8, 64x64x3x3", 4096);
  flow.expect("aten::pow", "1x64x8x8", 4096, {4 * 4096, 4 * 4096, 6 * 4096});
  flow.expect("aten::exp", "1x64x8x8", 4096, {4 * 4096, 4 * 4096, 0});
}

TEST(Autocast, BearsOpsWithoutShapes) {
  Flow flow;
  for (const auto* op : {"aten::add", "aten::mul_", "aten::cat", "aten::linear", "aten::pow", "mylib::own"}) {
    flow.expect(op, "other shapes", 0, {});
  }
}

}  // namespace
}  // namespace roofprof
