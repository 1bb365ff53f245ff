#include "analysis/predict/scaling.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "analysis/predict/plain_device.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;

// One line for each count that differs.
void expect_work(const Work& work, const Work& expected) {
  EXPECT_EQ(work.macs, expected.macs);
  EXPECT_EQ(work.operations, expected.operations);
  EXPECT_EQ(work.read_bytes, expected.read_bytes);
  EXPECT_EQ(work.write_bytes, expected.write_bytes);
  EXPECT_EQ(work.updated_bytes, expected.updated_bytes);
  EXPECT_TRUE(work == expected);
}

// What a linear layer in fp32 has to do for one batch: each operand and the output once, the bias one addition.
Work linear_work(std::int64_t batch, std::int64_t in, std::int64_t out) {
  Work work;
  work.add_macs(batch * in * out, DType::fp32);
  work.operations_in(DType::fp32) += batch * out;
  work.read_bytes = 4 * (batch * in + in * out + out);
  work.write_bytes = 4 * batch * out;
  work.input_elements = batch * in;
  work.output_elements = batch * out;
  return work;
}

// A 3 x 3 convolution of 8 x 8 pixels with padding, without bias.
Work convolution_work(std::int64_t batch, std::int64_t in, std::int64_t out) {
  Work work;
  work.add_macs(batch * 64 * out * in * 9, DType::fp32);
  work.read_bytes = 4 * (batch * 64 * in + out * in * 9);
  work.write_bytes = 4 * batch * 64 * out;
  work.input_elements = batch * 64 * in;
  work.output_elements = batch * 64 * out;
  return work;
}

Work relu_work(std::int64_t elements) {
  Work work;
  work.operations_in(DType::fp32) = elements;
  work.read_bytes = work.write_bytes = work.updated_bytes = 4 * elements;
  work.input_elements = work.output_elements = elements;
  return work;
}

struct Counted : ProfileBuilder {
  explicit Counted(std::int64_t batch) {
    count(batch);
    for (auto& bucket : data.counts.ops) bucket.reuse.clear();  // times are predicted by footprints
  }

  void count(std::int64_t batch) {
    auto& model = data.tree.modules[kModel];
    model.input_shapes = {{batch, 3, 8, 8}};
    model.output_shapes = {{batch, 10}};
    model.output_bytes = 4 * batch * 10;
    model.params = 16 * 3 * 9 + 10 * 16 + 10;
    model.param_bytes = 4 * model.params;
    data.counts.memory.peak_bytes = model.peak_memory = batch * 1000;
    const std::string n = std::to_string(batch);
    op("aten::conv2d", kModel, convolution_work(batch, 3, 16)).shapes = testing::shapes(n + "x3x8x8, 16x3x3x3");
    op("aten::relu_", kModel, relu_work(batch * 1024)).shapes = testing::shapes(n + "x16x8x8");
    op("aten::linear", kModel, linear_work(batch, 16, 10)).shapes = testing::shapes(n + "x16, 10x16, 10");
  }
};

TEST(SetBatch, EqualsACountOfThatBatch) {
  for (const std::int64_t from : {1, 2}) {
    for (const std::int64_t to : {1, 2, 3, 16}) {
      auto scaled = Counted(from).data;
      set_batch(scaled, to);
      const auto counted = Counted(to).data;
      ASSERT_EQ(scaled.counts.ops.size(), counted.counts.ops.size());
      for (std::size_t i = 0; i < counted.counts.ops.size(); ++i) {
        EXPECT_EQ(scaled.counts.ops[i], counted.counts.ops[i])
            << counted.counts.ops[i].op << " from " << from << " to " << to;
      }
      EXPECT_EQ(scaled.tree.modules, counted.tree.modules);
      EXPECT_EQ(scaled.counts.memory.peak_bytes, counted.counts.memory.peak_bytes);
      EXPECT_EQ(batch_of(scaled), to);
    }
  }
}

TEST(SetBatch, ScalesAllCallsTogether) {
  Counted counted(1);
  auto& linear = counted.data.counts.ops.back();
  linear.calls = 7;
  linear.work = linear_work(1, 16, 10).times(7);
  set_batch(counted.data, 4);
  expect_work(counted.data.counts.ops.back().work, linear_work(4, 16, 10).times(7));
  EXPECT_EQ(counted.data.counts.ops.back().calls, 7);
}

// Flattened with the batch: tokens, windows.
TEST(SetBatch, ALeadingDimensionMayHoldMoreThanTheBatch) {
  Counted counted(2);
  counted.op("aten::linear", kModel, linear_work(2 * 49, 16, 10)).shapes = testing::shapes("98x16, 10x16, 10");
  set_batch(counted.data, 6);
  EXPECT_EQ(shapes_text(counted.data.counts.ops.back().shapes), "294x16, 10x16, 10");
  expect_work(counted.data.counts.ops.back().work, linear_work(6 * 49, 16, 10));
}

TEST(SetBatch, OfAddmmTheBiasComesFirst) {
  Counted counted(1);
  counted.op("aten::addmm", kModel, linear_work(1, 16, 10)).shapes = testing::shapes("10, 1x16, 16x10");
  set_batch(counted.data, 8);
  EXPECT_EQ(shapes_text(counted.data.counts.ops.back().shapes), "10, 8x16, 16x10");
  expect_work(counted.data.counts.ops.back().work, linear_work(8, 16, 10));
}

TEST(SetBatch, AttentionHasNoWeights) {
  Counted counted(1);
  Work work;
  work.add_macs(2 * 4 * 16 * 16 * 8, DType::fp32);
  work.read_bytes = 3 * 4 * 512;
  work.write_bytes = 4 * 512;
  counted.op("aten::scaled_dot_product_attention", kModel, work).shapes =
      testing::shapes("1x4x16x8, 1x4x16x8, 1x4x16x8");
  set_batch(counted.data, 3);
  EXPECT_EQ(shapes_text(counted.data.counts.ops.back().shapes), "3x4x16x8, 3x4x16x8, 3x4x16x8");
  expect_work(counted.data.counts.ops.back().work, work.times(3));
}

// The optimizer updates weights, and gradients of weights are as large as these, however large the batch is.
TEST(SetBatch, OfATrainingStepIsRefused) {
  Counted counted(1);
  auto& update = counted.op("aten::add_", kOptimizer, relu_work(160));
  update.shapes = testing::shapes("10x16, 10x16");
  update.owner.phase = Phase::optimizer;
  EXPECT_THROW(set_batch(counted.data, 8), std::invalid_argument);
  expect_work(counted.data.counts.ops.back().work, relu_work(160));
}

TEST(SetBatch, ATableThatIsLookedUpInHasNoBatch) {
  Counted counted(1);
  Work work;
  work.read_bytes = 4 * 16 * 128 + 8 * 128;
  work.write_bytes = 4 * 16 * 128;
  counted.op("aten::embedding", kModel, work).shapes = testing::shapes("50257x16, 1x128");
  set_batch(counted.data, 2);
  EXPECT_EQ(shapes_text(counted.data.counts.ops.back().shapes), "50257x16, 2x128");
  expect_work(counted.data.counts.ops.back().work, work.times(2));
}

TEST(SetBatch, AScalarStaysAScalar) {
  Counted counted(8);
  counted.op("aten::where", kModel, relu_work(8 * 256)).shapes.tensors = {{8, 256}, {8, 256}, {}};
  set_batch(counted.data, 64);
  EXPECT_EQ(counted.data.counts.ops.back().shapes, (OpShapes{{{64, 256}, {64, 256}, {}}}));
  expect_work(counted.data.counts.ops.back().work, relu_work(64 * 256));
}

TEST(SetBatch, AllTensorsOfALongListHaveIt) {
  Counted counted(2);
  const std::int64_t n = 40;
  Work work;
  work.read_bytes = work.write_bytes = n * 2 * 64 * 56 * 56 * 4;
  counted.op("aten::cat", kModel, work).shapes.tensors = std::vector<Shape>(n, {2, 64, 56, 56});
  set_batch(counted.data, 6);
  EXPECT_EQ(counted.data.counts.ops.back().shapes, (OpShapes{std::vector<Shape>(n, {6, 64, 56, 56})}));
  expect_work(counted.data.counts.ops.back().work, work.times(3));
}

// The first is the number of components.
TEST(SetBatch, OfANestedTensorTheFirstSizeIsScaled) {
  Counted counted(1);
  counted.op("aten::relu", kModel, relu_work(160)).shapes.tensors = {{1, kUnknownSize, 64}, {kUnknownSize, 64}};
  set_batch(counted.data, 3);
  EXPECT_EQ(counted.data.counts.ops.back().shapes, (OpShapes{{{3, kUnknownSize, 64}, {kUnknownSize, 64}}}));
}

TEST(SetBatch, WhatHasOtherShapesStillHasThem) {
  Counted counted(1);
  counted.op("aten::relu", kModel, relu_work(160)).shapes.others = true;
  set_batch(counted.data, 3);
  EXPECT_EQ(counted.data.counts.ops.back().shapes, (OpShapes{{}, true}));
  expect_work(counted.data.counts.ops.back().work, relu_work(480));
}

TEST(SetBatch, NeedsTheBatchThatWasCounted) {
  auto data = Counted(1).data;
  EXPECT_THROW(set_batch(data, 0), std::invalid_argument);
  EXPECT_THROW(set_batch(data, -1), std::invalid_argument);
  data.tree.modules[kModel].input_shapes = {{}};
  EXPECT_THROW(set_batch(data, 2), std::invalid_argument);
  data.tree.modules[kModel].input_shapes.clear();
  EXPECT_EQ(batch_of(data), 0);
  EXPECT_THROW(set_batch(data, 2), std::invalid_argument);
}

TEST(SetPrecision, HalvesBytesAndMovesOperations) {
  auto data = Counted(2).data;
  const auto before = data;
  set_precision(data, DType::fp16);
  for (std::size_t i = 0; i < data.counts.ops.size(); ++i) {
    Work expected = before.counts.ops[i].work;
    expected.read_bytes /= 2;
    expected.write_bytes /= 2;
    expected.updated_bytes /= 2;
    std::swap(expected.operations_in(DType::fp16), expected.operations_in(DType::fp32));
    expect_work(data.counts.ops[i].work, expected);
    EXPECT_EQ(data.counts.ops[i].dtype, DType::fp16);
    EXPECT_EQ(data.counts.ops[i].shapes, before.counts.ops[i].shapes);
  }
  EXPECT_EQ(data.tree.modules[kModel].param_bytes, 2 * data.tree.modules[kModel].params);
  EXPECT_EQ(data.counts.memory.peak_bytes, 1000);
  set_precision(data, DType::fp32);
  EXPECT_EQ(data.counts.ops, before.counts.ops);
}

TEST(SetPrecision, MemoryOfModulesIsInThatTypeToo) {
  auto data = Counted(2).data;
  data.tree.modules[kModel].kept_memory = 600;
  set_precision(data, DType::bf16);
  EXPECT_EQ(data.tree.modules[kModel].peak_memory, 1000);
  EXPECT_EQ(data.tree.modules[kModel].kept_memory, 300);
  EXPECT_EQ(data.tree.modules[kModel].output_bytes, 2 * 2 * 10);
}

TEST(SetPrecision, IntegersStay) {
  Counted counted(2);
  Work work;
  work.operations_in(DType::int64) = 100;
  work.read_bytes = work.write_bytes = 800;
  counted.op("aten::add", kModel, work).dtype = DType::int64;
  set_precision(counted.data, DType::fp16);
  expect_work(counted.data.counts.ops.back().work, work);
  EXPECT_EQ(counted.data.counts.ops.back().dtype, DType::int64);
}

// All parameters of the model are in fp32.
TEST(SetPrecision, IntegersBesideThemDoNotWidenParameters) {
  Counted counted(2);
  Work work;
  work.read_bytes = work.write_bytes = 8'000;
  counted.op("aten::add", kModel, work).dtype = DType::int64;
  set_precision(counted.data, DType::fp16);
  EXPECT_EQ(counted.data.tree.modules[kModel].param_bytes, 2 * counted.data.tree.modules[kModel].params);
}

TEST(SetPrecision, NarrowerTypesStay) {
  Counted counted(2);
  Work work;
  work.add_macs(1'000, DType::fp8);
  work.read_bytes = work.write_bytes = 800;
  counted.op("aten::_scaled_mm", kModel, work).dtype = DType::fp8;
  set_precision(counted.data, DType::fp16);
  expect_work(counted.data.counts.ops.back().work, work);
}

TEST(SetPrecision, IsOfFloatingTypes) {
  auto data = Counted(1).data;
  for (const DType dtype : {DType::int8, DType::int64, DType::boolean, DType::other}) {
    EXPECT_THROW(set_precision(data, dtype), std::invalid_argument) << name_of(dtype);
  }
  set_precision(data, DType::fp8);
  EXPECT_EQ(data.counts.ops.front().work.read_bytes, convolution_work(1, 3, 16).read_bytes / 4);
}

}  // namespace
}  // namespace roofprof
