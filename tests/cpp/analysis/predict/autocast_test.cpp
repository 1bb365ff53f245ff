#include "analysis/predict/op_features.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "analysis/predict/plain_device.h"

namespace roofprof {
namespace {

// Counted in fp16: operands of so many elements, each read once.
class Flow {
 public:
  explicit Flow(DType dtype = DType::fp16) : dtype_(dtype) {}

  AutocastBytes next(std::string_view op, std::string_view shapes, std::int64_t output) {
    OpBucket bucket = testing::bucket_named(op, shapes, dtype_);
    bucket.work.output_elements = output;
    const auto sizes = sized_shapes(bucket);
    read_ = 0;
    for (const auto& shape : sizes) read_ += 2 * static_cast<double>(elements_of(shape));
    write_ = 2 * static_cast<double>(output);
    return flow_.next(bucket, class_of(bucket, sizes), sizes, read_, write_);
  }

  void expect_as_counted(std::string_view op, std::string_view shapes, std::int64_t output) {
    const auto bytes = next(op, shapes, output);
    EXPECT_DOUBLE_EQ(bytes.read, read_) << op;
    EXPECT_DOUBLE_EQ(bytes.write, write_) << op;
    EXPECT_DOUBLE_EQ(bytes.casts, 0) << op;
  }

 private:
  DType dtype_;
  AutocastFlow flow_;
  double read_ = 0;
  double write_ = 0;
};

constexpr double kTokens = 2 * 16 * 64;  // elements

// Patches of two images, to which a parameter in fp32 is added: the sum is in fp32 from there on.
class Transformer : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    flow.expect_as_counted("aten::conv2d", "2x3x32x32, 64x3x8x8, 64", 2048);
    embedded = flow.next("aten::add", "2x16x64, 1x16x64", 2048);
  }

  Flow flow{GetParam()};
  AutocastBytes embedded;
};

TEST_P(Transformer, ASumWithAParameterIsInFp32) {
  EXPECT_DOUBLE_EQ(embedded.read, 2 * kTokens + 4 * 16 * 64);
  EXPECT_DOUBLE_EQ(embedded.write, 4 * kTokens);
  EXPECT_DOUBLE_EQ(embedded.casts, 0);
}

// One cast between the sum and the product, whichever side of the norm it is on: 4 bytes read, 2 written.
TEST_P(Transformer, AProductAfterANormIsOfWhatWasCastOnce) {
  const auto norm = flow.next("aten::layer_norm", "2x16x64, 64, 64", 2048);
  const auto linear = flow.next("aten::linear", "2x16x64, 64x64, 64", 2048);
  EXPECT_DOUBLE_EQ(norm.casts + linear.casts, 6 * kTokens);
  EXPECT_DOUBLE_EQ(linear.read, 2 * (kTokens + 64 * 64 + 64));
  EXPECT_DOUBLE_EQ(linear.write, 2 * kTokens);
}

// The product's output is narrow, what it is added to is not.
TEST_P(Transformer, TheResidualSumStaysInFp32) {
  flow.next("aten::layer_norm", "2x16x64, 64, 64", 2048);
  flow.next("aten::linear", "2x16x64, 64x64, 64", 2048);
  for (int layer = 0; layer < 2; ++layer) {
    const auto sum = flow.next("aten::add", "2x16x64, 2x16x64", 2048);
    EXPECT_DOUBLE_EQ(sum.read, (4 + 2) * kTokens);
    EXPECT_DOUBLE_EQ(sum.write, 4 * kTokens);
    // Without a norm between them the product casts the sum itself; its weights were cast before.
    const auto linear = flow.next("aten::linear", "2x16x64, 64x64, 64", 2048);
    EXPECT_DOUBLE_EQ(linear.casts, 6 * kTokens);
    EXPECT_DOUBLE_EQ(linear.read, 2 * (kTokens + 64 * 64 + 64));
    EXPECT_DOUBLE_EQ(linear.write, 2 * kTokens);
  }
}

TEST_P(Transformer, ElementwiseOpsAreInTheTypeOfTheirInput) {
  const auto wide = flow.next("aten::gelu", "2x16x64", 2048);
  EXPECT_DOUBLE_EQ(wide.read, 4 * kTokens);
  EXPECT_DOUBLE_EQ(wide.write, 4 * kTokens);
  EXPECT_DOUBLE_EQ(wide.casts, 0);
  flow.next("aten::linear", "2x16x64, 256x64, 256", 8192);
  flow.expect_as_counted("aten::gelu", "2x16x256", 8192);
}

INSTANTIATE_TEST_SUITE_P(Autocast, Transformer, ::testing::Values(DType::fp16, DType::bf16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

// ResNet's: no parameter takes part but in products and norms.
TEST(Autocast, ConvolutionsAndTheirSumsStayNarrow) {
  Flow flow;
  flow.expect_as_counted("aten::conv2d", "1x64x8x8, 64x64x3x3", 4096);
  flow.expect_as_counted("aten::batch_norm", "1x64x8x8, 64, 64, 64, 64", 4096);
  flow.expect_as_counted("aten::relu_", "1x64x8x8", 4096);
  flow.expect_as_counted("aten::conv2d", "1x64x8x8, 64x64x3x3", 4096);
  flow.expect_as_counted("aten::add_", "1x64x8x8, 1x64x8x8", 4096);
  flow.expect_as_counted("aten::cat", "1x64x8x8, 1x64x8x8", 8192);
}

TEST(Autocast, SoftmaxReadsTheNarrowTypeAndWritesFp32) {
  Flow flow;
  flow.expect_as_counted("aten::bmm", "8x16x64, 8x64x16", 2048);
  const auto softmax = flow.next("aten::softmax", "8x16x16", 2048);
  EXPECT_DOUBLE_EQ(softmax.read, 2 * 2048);
  EXPECT_DOUBLE_EQ(softmax.write, 4 * 2048);
  EXPECT_DOUBLE_EQ(softmax.casts, 0);
  // The product that follows casts its first operand back, not the values.
  const auto product = flow.next("aten::bmm", "8x16x16, 8x16x64", 8192);
  EXPECT_DOUBLE_EQ(product.casts, 6 * 2048);
  EXPECT_DOUBLE_EQ(product.write, 2 * 8192);
}

// torch casts before these: 2 bytes read and 4 written for each element.
TEST(Autocast, OthersAreCastToFp32First) {
  Flow flow;
  flow.expect_as_counted("aten::conv2d", "1x64x8x8, 64x64x3x3", 4096);
  const auto power = flow.next("aten::pow", "1x64x8x8", 4096);
  EXPECT_DOUBLE_EQ(power.casts, 6 * 4096);
  EXPECT_DOUBLE_EQ(power.read, 4 * 4096);
  EXPECT_DOUBLE_EQ(power.write, 4 * 4096);
  // What is in fp32 already needs no cast.
  const auto again = flow.next("aten::exp", "1x64x8x8", 4096);
  EXPECT_DOUBLE_EQ(again.casts, 0);
  EXPECT_DOUBLE_EQ(again.read, 4 * 4096);
}

TEST(Autocast, InPlaceTheFirstOperandsTypeStays) {
  Flow flow;
  flow.expect_as_counted("aten::conv2d", "2x64x8x8, 64x64x3x3", 8192);
  const auto product = flow.next("aten::mul_", "2x64x8x8, 64x8x8", 8192);  // with a parameter
  EXPECT_DOUBLE_EQ(product.read, 2 * 8192 + 4 * 4096);
  EXPECT_DOUBLE_EQ(product.write, 2 * 8192);
  flow.expect_as_counted("aten::conv2d", "2x64x8x8, 64x64x3x3", 8192);
}

TEST(Autocast, LeavesOtherTypesAlone) {
  Flow flow(DType::fp32);
  flow.expect_as_counted("aten::conv2d", "2x3x32x32, 64x3x8x8, 64", 2048);
  flow.expect_as_counted("aten::add", "2x16x64, 1x16x64", 2048);
  flow.expect_as_counted("aten::linear", "2x16x64, 64x64, 64", 2048);
  flow.expect_as_counted("aten::softmax", "2x16x64", 2048);
}

// Of forty tensors the last is the residual sum, which stays in fp32: 4 bytes of each element and not 2.
TEST(Autocast, ReadsEveryTensorOfALongList) {
  Flow flow;
  flow.next("aten::pow", "3x5", 15);
  std::string list;
  for (int i = 0; i < 39; ++i) list += "2x7, ";
  const auto bytes = flow.next("aten::cat", list + "3x5", 39 * 14 + 15);
  EXPECT_DOUBLE_EQ(bytes.read, 39 * 14 * 2 + 15 * 4);
  EXPECT_DOUBLE_EQ(bytes.write, (39 * 14 + 15) * 4);
}

TEST(Autocast, BearsOpsWithoutShapes) {
  Flow flow;
  for (const auto op : {"aten::add", "aten::mul_", "aten::cat", "aten::linear", "aten::layer_norm", "aten::pow",
                        "aten::softmax", "mylib::own"}) {
    const auto bytes = flow.next(op, "other shapes", 0);
    EXPECT_EQ(bytes.read + bytes.write + bytes.casts, 0) << op;
  }
}

}  // namespace
}  // namespace roofprof
