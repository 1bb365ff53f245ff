#include "analysis/predict/op_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "analysis/predict/plain_device.h"

namespace roofprof {
namespace {

using testing::class_in;
using testing::features_with;
using testing::PlainDevice;

// A convolution of this many rows and outputs, rounded numbers of tiles of 64 x 64; it moves next to nothing.
OpFeatures product_of(double rows, double width, double depth, DType dtype = DType::fp16) {
  OpFeatures features = features_with(OpClass::conv_spatial, 2 * rows * width * depth, 1, 0, dtype);
  features.rows = rows;
  features.width = width;
  features.depth = depth;
  return features;
}

TEST(CallSeconds, AreTheLongerOfArithmeticAndBytes) {
  const PlainDevice plain;
  // 1e12 FLOPs at 1e12/s beside 1e10 bytes at 1e11/s; then 1e13 bytes.
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::conv_spatial, 1e12, 6e9, 4e9)), 1);
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::conv_spatial, 1e12, 6e12, 4e12)), 100);
  // Of what has no products only the bytes count.
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::elementwise, 1e15, 1e11)), 1);
  // Each type has its own peak; casts move their bytes besides.
  auto mixed = features_with(OpClass::conv_spatial, 1e12, 0);
  mixed.operations[static_cast<std::size_t>(DType::fp16)] = 2e13;
  mixed.cast_bytes = 6e11;
  EXPECT_DOUBLE_EQ(plain.seconds(mixed), 1 + 2 + 6);
  EXPECT_TRUE(is_compute_bound(features_with(OpClass::conv_spatial, 1e12, 1e10), plain.device));
  EXPECT_FALSE(is_compute_bound(features_with(OpClass::conv_spatial, 1e12, 1e13), plain.device));
}

TEST(CallSeconds, SharesOfTheClassSlowDownTheirPartOfTheNorm) {
  PlainDevice plain;
  class_in(plain.kind, OpClass::conv_spatial).of_peak = 0.5;
  class_in(plain.kind, OpClass::conv_spatial).of_bandwidth = 0.25;
  const auto op = features_with(OpClass::conv_spatial, 1.5e12, 1e11);  // 3 s and 4 s
  for (const auto& [overlap, seconds] : {std::pair(1, 7), std::pair(2, 5)}) {
    plain.kind.overlap = overlap;
    EXPECT_DOUBLE_EQ(plain.seconds(op), seconds);
  }
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::conv_grouped, 1e12, 0)), 1);
}

TEST(CallSeconds, HalfSizesHalveTheRate) {
  PlainDevice plain;
  const double full = plain.seconds(product_of(512, 64, 128));
  plain.kind.convolution.depth = 128;
  EXPECT_DOUBLE_EQ(plain.seconds(product_of(512, 64, 128)), 2 * full);
  plain.kind.convolution.width = 64;
  EXPECT_DOUBLE_EQ(plain.seconds(product_of(512, 64, 128)), 4 * full);
  // Of sizes that are not known nothing is lost.
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::conv_spatial, 1e12, 0)), 1);
}

TEST(CallSeconds, OddSizesLoseTheirShareButInTheStem) {
  PlainDevice plain;
  plain.kind.convolution.unaligned = 0.5;
  const double aligned = 2.0 * 512 * 64 * 128 / 1e13;
  EXPECT_NEAR(plain.seconds(product_of(512, 64, 128)) / aligned, 1, 1e-12);
  EXPECT_NEAR(plain.seconds(product_of(512, 64, 127)) / aligned, 2.0 * 127 / 128, 1e-12);
  EXPECT_NEAR(plain.seconds(product_of(512, 63, 128)) / aligned, 2.0 * 63 / 64, 1e-12);
  auto stem = product_of(512, 64, 147);
  stem.op = OpClass::conv_stem;
  EXPECT_NEAR(plain.seconds(stem) / aligned, 147.0 / 128, 1e-12);
}

// One tile more than there are multiprocessors takes a second wave.
TEST(CallSeconds, ComeInWavesOfTiles) {
  PlainDevice plain;
  plain.device.multiprocessors = 10;
  const double wave = plain.seconds(product_of(640, 64, 128));  // ten tiles of 64 rows
  EXPECT_DOUBLE_EQ(wave, 2.0 * 640 * 64 * 128 / 1e13);
  EXPECT_DOUBLE_EQ(plain.seconds(product_of(704, 64, 128)), 2 * wave);
  EXPECT_DOUBLE_EQ(plain.seconds(product_of(1280, 64, 128)), 2 * wave);
  // One tile takes as long as ten do.
  EXPECT_DOUBLE_EQ(plain.seconds(product_of(64, 64, 128)), wave);
}

TEST(CallSeconds, HaveAFloorThatFusedOpsLackAndFreeOnesTakeNone) {
  PlainDevice plain;
  plain.kind.kernel_floor = 3;
  plain.kind.convolution.floor = 5;
  auto op = features_with(OpClass::elementwise, 0, 1e11);
  EXPECT_DOUBLE_EQ(plain.seconds(op), 1 + 3);
  op.fused = true;
  EXPECT_DOUBLE_EQ(plain.seconds(op), 1);
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::conv_depthwise, 0, 1e11)), 1 + 5);
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::linear, 0, 1e11)), 1 + ProductKernels{}.launch);
  op.fused = false;
  op.is_known = false;
  EXPECT_EQ(plain.seconds(op), 0);
  op.is_known = op.is_free = true;
  EXPECT_EQ(plain.seconds(op), 0);
  // An interpolation goes through its planes; channels that lie last are done together.
  plain.kind.streaming.plane_seconds = 0.5;
  auto planes = features_with(OpClass::interpolation, 0, 1e11);
  planes.planes = 4;
  EXPECT_DOUBLE_EQ(plain.seconds(planes), 1 + 3 + 4 * 0.5);
  planes.after_permutation = true;
  EXPECT_DOUBLE_EQ(plain.seconds(planes), 1 + 3);
}

// Vector units compute them, in whatever type: fp16's ten times higher peak is of no use.
TEST(CallSeconds, DepthwiseKernelsGoWithAPowerOfTheirArea) {
  PlainDevice plain;
  plain.kind.convolution.depthwise_exponent = 0.5;
  auto op = features_with(OpClass::conv_depthwise, 1e12, 0, 0, DType::fp16);
  op.kernel_area = 9;
  EXPECT_DOUBLE_EQ(plain.seconds(op), 1);
  op.kernel_area = 25;
  EXPECT_DOUBLE_EQ(plain.seconds(op), 5.0 / 3);
  op.kernel_area = 0;
  EXPECT_DOUBLE_EQ(plain.seconds(op), 1);
}

TEST(CallSeconds, TensorsBeyondTheCacheMissIt) {
  PlainDevice plain;
  plain.kind.streaming.cache_share = 0.5;
  plain.device.cache_bytes = 4e11;
  // 1 / (1 + (2e11 / b)^4) of the b bytes that are read and written: a half of 2e11, 16 of 17 parts of 4e11.
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::elementwise, 0, 2e11)), 1);
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::elementwise, 0, 1e11, 3e11)), 4 * 16.0 / 17);
  plain.kind.streaming.cache_share = 0;
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::elementwise, 0, 1e11, 3e11)), 4);
}

TEST(CallSeconds, WhatWasPermutedIsReadSlowerOrCopiedBeforeAProduct) {
  PlainDevice plain;
  plain.kind.streaming.permuted = 2;
  auto op = features_with(OpClass::elementwise, 0, 1e11);
  op.after_permutation = true;
  EXPECT_DOUBLE_EQ(plain.seconds(op), 2);
  auto product = features_with(OpClass::batched_matmul, 0, 1e11);
  product.after_permutation = true;
  EXPECT_NEAR(plain.seconds(product), 1 + 2, 1e-5);  // read, after both operands were read and written
}

// Each score costs its bytes, whatever else the attention does.
TEST(CallSeconds, UnfusedAttentionMovesItsScores) {
  PlainDevice plain;
  auto op = features_with(OpClass::unfused_attention, 1e12, 1e9, 1e9);
  op.batch = 6;
  op.rows = 1e4;
  op.width = 2e4;
  op.depth = 64;
  plain.kind.attention.bytes_per_score = 100;
  const double less = plain.seconds(op);
  plain.kind.attention.bytes_per_score = 600;
  EXPECT_DOUBLE_EQ(plain.seconds(op) - less, 6.0 * 1e4 * 2e4 * 500 / 1e11);
  plain.kind.attention.bytes_per_score = 0;
  EXPECT_DOUBLE_EQ(plain.seconds(op), 1 + 2 * 2e9 / 1e11);  // and its tensors once in fp32
}

TEST(CallSeconds, NeedAPeakForProducts) {
  PlainDevice plain;
  plain.device.peak[static_cast<std::size_t>(DType::fp16)] = 0;
  const auto product = features_with(OpClass::linear, 1e12, 0, 0, DType::fp16);
  EXPECT_THROW(static_cast<void>(plain.seconds(product)), std::invalid_argument);
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::elementwise, 1e12, 1e11, 0, DType::fp16)), 1);
}

TEST(CallSeconds, ACpusBytesGoByItsCurve) {
  PlainDevice plain;
  plain.cpu.cache_share = 1;
  plain.device.cache_bytes = 1e12;
  plain.device.is_gpu = false;
  plain.ceilings.memory = {{"DRAM", 1e11, 0, {}}};
  plain.ceilings.curve.points = {{1000, 4e11, 4e11, 4e11, 4e11, 4e11, 0}};
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::elementwise, 0, 3e11, 1e11)), 1);
  plain.device.bandwidth_factor = 2;
  EXPECT_DOUBLE_EQ(plain.seconds(features_with(OpClass::elementwise, 0, 3e11, 1e11)), 0.5);
}

}  // namespace
}  // namespace roofprof
