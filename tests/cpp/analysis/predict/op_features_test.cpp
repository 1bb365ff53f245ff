#include "analysis/predict/op_features.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "analysis/predict/op_time.h"
#include "analysis/predict/plain_device.h"

namespace roofprof {
namespace {

using testing::bucket_named;

Work moved(std::int64_t macs, std::int64_t read, std::int64_t write, DType dtype = DType::fp32) {
  return testing::work_of(2 * macs, read, write, dtype);
}

OpBucket worked(std::string_view op, std::string_view shapes, const Work& work) {
  OpBucket bucket = bucket_named(op, shapes);
  bucket.work = work;
  return bucket;
}

std::vector<OpFeatures> features_in(const std::vector<OpBucket>& ops, const FeatureOptions& options = {}) {
  testing::ProfileBuilder built;
  built.data.counts.ops = ops;
  return features_of(built.data, options);
}

OpFeatures features_alone(std::string_view op, std::string_view shapes, std::int64_t macs) {
  return features_in({worked(op, shapes, moved(macs, 1000, 1000))}).front();
}

// rows x depth times depth x width, `batch` times over.
void expect_product(const OpFeatures& features, double batch, double rows, double depth, double width) {
  EXPECT_DOUBLE_EQ(features.batch, batch);
  EXPECT_DOUBLE_EQ(features.rows, rows);
  EXPECT_DOUBLE_EQ(features.depth, depth);
  EXPECT_DOUBLE_EQ(features.width, width);
}

TEST(OpFeatures, SizesOfProducts) {
  expect_product(features_alone("aten::linear", "2x64x512, 768x512, 768", 128 * 512 * 768), 1, 128, 512, 768);
  expect_product(features_alone("aten::addmm", "768, 128x512, 512x768", 128 * 512 * 768), 1, 128, 512, 768);
  expect_product(features_alone("aten::bmm", "6x16x32, 6x32x48", 6 * 16 * 32 * 48), 6, 16, 32, 48);
  // Queries times keys: 2 x 4 heads, 16 queries, 24 keys of 8.
  expect_product(
      features_alone("aten::scaled_dot_product_attention", "2x4x16x8, 2x4x24x8, 2x4x24x8", 2 * 8 * 16 * 24 * 8), 8, 16,
      8, 24);
}

TEST(OpFeatures, SizesOfConvolutions) {
  const auto spatial = features_alone("aten::conv2d", "2x64x56x56, 128x64x3x3, 128", 2LL * 56 * 56 * 128 * 576);
  expect_product(spatial, 1, 2 * 56 * 56, 64 * 9, 128);
  EXPECT_DOUBLE_EQ(spatial.kernel_area, 9);
  // 32 groups of two channels.
  const auto grouped = features_alone("aten::conv2d", "1x64x56x56, 64x2x3x3", 56LL * 56 * 64 * 18);
  expect_product(grouped, 32, 56 * 56, 18, 2);
  EXPECT_DOUBLE_EQ(features_alone("aten::conv2d", "1x64x56x56, 64x1x5x7", 56LL * 56 * 64 * 35).kernel_area, 35);
  EXPECT_DOUBLE_EQ(features_alone("aten::upsample_bilinear2d", "2x64x28x28", 0).planes, 2 * 64);
}

TEST(OpFeatures, AreOfOneCall) {
  OpBucket bucket = worked("aten::linear", "4x8, 16x8", moved(5 * 4 * 8 * 16, 5 * 640, 5 * 256));
  bucket.calls = 5;
  bucket.work.input_elements = 5 * 32;
  const auto features = features_in({bucket}).front();
  EXPECT_EQ(features.calls, 5);
  EXPECT_EQ(features.macs, 4 * 8 * 16);
  EXPECT_EQ(features.operations[static_cast<std::size_t>(DType::fp32)], 2 * 4 * 8 * 16);
  EXPECT_EQ(features.read_bytes, 640);
  EXPECT_EQ(features.write_bytes, 256);
  EXPECT_EQ(features.input_elements, 32);
  expect_product(features, 1, 4, 8, 16);
}

OpBucket of_elements(std::string_view op, std::int64_t elements) {
  OpBucket bucket = worked(op, std::to_string(elements), moved(0, 4 * elements, 4 * elements));
  bucket.work.input_elements = bucket.work.output_elements = elements;
  return bucket;
}

// Elementwise ops keep the order of what they read; a copy puts it right.
TEST(OpFeatures, WhatComesAfterAPermutationReadsItUntilItIsCopied) {
  const auto features =
      features_in({of_elements("aten::relu", 32), worked("aten::permute", "4x8", {}), worked("aten::view", "4x8", {}),
                   of_elements("aten::relu", 32), of_elements("aten::gelu", 32), of_elements("aten::clone", 32),
                   of_elements("aten::relu", 32)});
  EXPECT_FALSE(features[0].after_permutation);
  for (const std::size_t i : {3, 4, 5}) EXPECT_TRUE(features[i].after_permutation) << i;
  EXPECT_FALSE(features[6].after_permutation);
}

// 4 bytes of each of 1e9 elements are read and written once more before the product, at 1e11 bytes per second.
TEST(OpFeatures, ALinearLayerInFp32CopiesWhatWasPermutedInFp32) {
  const testing::PlainDevice plain;
  auto linear = worked("aten::linear", "1000x1000x1000, 8x1000", moved(8'000'000'000, 4'000'032'000, 32'000'000));
  linear.work.input_elements = 1'000'000'000;
  const auto features = features_in({linear, worked("aten::permute", "1000x1000x1000", {}), linear});
  EXPECT_NEAR(plain.seconds(features[2]) - plain.seconds(features[0]), (4e9 + 4e9) / 1e11, 1e-9);
}

TEST(OpFeatures, AFusedAttentionSavesTheCopyOfItsHeads) {
  const auto attention = worked("aten::scaled_dot_product_attention", "2x4x16x8, 2x4x16x8, 2x4x16x8",
                                moved(2 * 8 * 16 * 16 * 8, 3000, 1000));
  const auto same = worked("aten::clone", "2x16x4x8", moved(0, 4096, 4096));
  const auto transpose = worked("aten::transpose", "2x4x16x8", {});
  const auto features = features_in({attention, transpose, same, same});
  EXPECT_TRUE(features[2].is_free);
  EXPECT_FALSE(features[3].is_free);
  EXPECT_FALSE(features_in({attention, worked("aten::clone", "2x16x4x4", moved(0, 2048, 2048))})[1].is_free);
  auto unfused = attention;
  unfused.shapes = testing::shapes("1x2x4x16x8, 1x2x4x16x8, 1x2x4x16x8");
  EXPECT_FALSE(features_in({unfused, same})[1].is_free);
}

TEST(OpFeatures, AChainThatIsFusedReadsAndWritesOnce) {
  auto mean = of_elements("aten::mean", 100);
  mean.work.output_elements = 1;
  mean.work.write_bytes = 4;
  const std::vector<OpBucket> chain = {of_elements("aten::relu", 100), of_elements("aten::gelu", 100), mean};
  const auto fused = features_in(chain, {.autocast = false, .fusion = Fusion::chains});
  double moved_bytes = 0;
  for (const auto& op : fused) moved_bytes += op.read_bytes + op.write_bytes;
  EXPECT_EQ(moved_bytes, 400 + 4);
  EXPECT_FALSE(fused[0].fused);
  EXPECT_TRUE(fused[1].fused);
  EXPECT_TRUE(fused[2].fused);
  for (const auto& op : features_in(chain, {.autocast = false})) EXPECT_FALSE(op.fused);
}

TEST(OpFeatures, DropoutIsOneKernelOnAGpu) {
  auto product = worked("aten::mul", "10x10, 10x10", moved(0, 800, 400));
  const std::vector<OpBucket> ops = {worked("aten::bernoulli_", "10x10", moved(0, 0, 400)),
                                     worked("aten::div_", "10x10", moved(0, 400, 400)), product};
  const auto one = features_in(ops, {.autocast = false});
  EXPECT_TRUE(one[0].is_free);
  EXPECT_TRUE(one[1].is_free);
  EXPECT_EQ(one[2].read_bytes, 400);
  EXPECT_EQ(one[2].write_bytes, 400 + 100);  // and a mask of bytes
  for (const auto& op : features_in(ops, {.autocast = false, .on_gpu = false})) EXPECT_FALSE(op.is_free);
  EXPECT_FALSE(features_in({ops[0], ops[2], ops[1]}, {.autocast = false})[0].is_free);
}

TEST(OpFeatures, ProductsAndOtherSizesEndAChain) {
  auto product = worked("aten::linear", "10x10, 10x10", moved(1000, 800, 400));
  product.work.input_elements = product.work.output_elements = 100;
  const FeatureOptions compiled{.autocast = false, .fusion = Fusion::chains};
  for (const auto& op : features_in({product, of_elements("aten::relu", 100), product}, compiled)) {
    EXPECT_FALSE(op.fused);
    EXPECT_GT(op.write_bytes, 0);
  }
  EXPECT_FALSE(features_in({of_elements("aten::relu", 100), of_elements("aten::relu", 50)}, compiled)[1].fused);
  auto unknown = worked("mylib::own", "4", {});
  unknown.costed = false;
  const auto features = features_in({worked("aten::view", "4x8", {}), unknown});
  EXPECT_TRUE(features[0].is_free && features[0].is_known);
  EXPECT_FALSE(features[1].is_known);
}

TEST(OpFeatures, AutocastIsOfGpusAndAddedOnce) {
  testing::ProfileBuilder built;
  auto product = worked("aten::linear", "10x10, 10x10", moved(1000, 400, 200, DType::fp16));
  product.dtype = DType::fp16;
  built.data.counts.ops = {product};
  EXPECT_FALSE(counted_under_autocast(built.data));
  EXPECT_TRUE(feature_options(built.data, {}, true).autocast);
  EXPECT_FALSE(feature_options(built.data, {}, false).autocast);
  EXPECT_FALSE(feature_options(built.data, {.autocast = false}, true).autocast);
  // A cast to the narrower type shows that it was on.
  built.data.counts.ops.push_back(worked("aten::_to_copy", "10x10", moved(0, 400, 200)));
  EXPECT_TRUE(counted_under_autocast(built.data));
  EXPECT_FALSE(feature_options(built.data, {}, true).autocast);
  EXPECT_EQ(feature_options(built.data, {.mode = LaunchMode::compiled}, true).fusion, Fusion::chains);
}

}  // namespace
}  // namespace roofprof
