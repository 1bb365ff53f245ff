// What another batch and another type do to counts, where the shapes alone do not tell. That they give what torch
// counts in that batch and type is tested from Python (tests/python/prediction/test_predict_sizes.py).

#include "analysis/predict/scaling.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/predict/plain_device.h"

namespace roofprof {
namespace {

using testing::work_of;

// What a linear layer of 16 x 10 in fp32 has to do for so many rows: each operand and the output once.
Work linear_work(std::int64_t rows) {
  Work work = work_of(2 * rows * 160, 4 * (rows * 16 + 160 + 10), 4 * rows * 10);
  work.operations_in(DType::fp32) += rows * 10;  // the bias
  work.input_elements = rows * 16;
  work.output_elements = rows * 10;
  return work;
}

struct Counted : testing::ProfileBuilder {
  explicit Counted(std::int64_t batch) {
    auto& model = data.tree.modules[kModel];
    model.input_shapes = {{batch, 16}};
    model.output_bytes = 4 * batch * 10;
    model.params = 16 * 10 + 10;
    model.param_bytes = 4 * model.params;
    data.counts.memory.peak_bytes = model.peak_memory = batch * 1000;
    add("aten::linear", std::to_string(batch) + "x16, 10x16, 10", linear_work(batch));
  }

  OpBucket& add(const std::string& name, std::string_view shapes, const Work& work) {
    auto& added = op(name, kModel, work);
    added.shapes = testing::shapes(shapes);
    added.reuse.clear();  // times are predicted by footprints
    return added;
  }

  const OpBucket& last() const { return data.counts.ops.back(); }
};

TEST(SetBatch, EqualsACountOfThatBatch) {
  for (const std::int64_t from : {1, 2}) {
    for (const std::int64_t to : {1, 3, 16}) {
      auto scaled = Counted(from).data;
      set_batch(scaled, to);
      const auto counted = Counted(to).data;
      EXPECT_EQ(scaled.counts.ops, counted.counts.ops) << "from " << from << " to " << to;
      EXPECT_EQ(scaled.tree.modules, counted.tree.modules);
      EXPECT_EQ(scaled.counts.memory.peak_bytes, counted.counts.memory.peak_bytes);
      EXPECT_EQ(batch_of(scaled), to);
    }
  }
}

TEST(SetBatch, IsOfWhatHasABatch) {
  const Work lookup = work_of(0, 4 * 16 * 128 + 8 * 128, 4 * 16 * 128);
  const Work attention = work_of(2 * 4 * 16 * 16 * 8, 3 * 4 * 512, 4 * 512);
  std::string list, longer;
  for (int i = 0; i < 40; ++i) {
    list += i == 0 ? "1x7" : ", 1x7";
    longer += i == 0 ? "3x7" : ", 3x7";
  }
  const struct {
    std::string op, shapes;
    Work work;
    std::string expected_shapes;
    Work expected;
  } cases[] = {
      // Flattened with the batch: tokens, windows.
      {"aten::linear", "49x16, 10x16, 10", linear_work(49), "147x16, 10x16, 10", linear_work(3 * 49)},
      // The bias comes first.
      {"aten::addmm", "10, 1x16, 16x10", linear_work(1), "10, 3x16, 16x10", linear_work(3)},
      // No operand is a weight.
      {"aten::scaled_dot_product_attention", "1x4x16x8, 1x4x16x8, 1x4x16x8", attention, "3x4x16x8, 3x4x16x8, 3x4x16x8",
       attention.times(3)},
      // A table that is looked up in has no batch.
      {"aten::embedding", "50257x16, 1x128", lookup, "50257x16, 3x128", lookup.times(3)},
      {"aten::cat", list, work_of(0, 1120, 1120), longer, work_of(0, 3360, 3360)},
      // A scalar stays one; of a nested tensor the first size, the number of its components, is scaled.
      {"aten::where", "1x9, 1x9, scalar", work_of(0, 72, 36), "3x9, 3x9, scalar", work_of(0, 216, 108)},
      {"aten::relu", "1x*x64, *x64", work_of(0, 640, 640), "3x*x64, *x64", work_of(0, 1920, 1920)},
      {"aten::relu", "other shapes", work_of(0, 640, 640), "other shapes", work_of(0, 1920, 1920)},
  };
  for (const auto& tested : cases) {
    Counted counted(1);
    counted.add(tested.op, tested.shapes, tested.work.times(7)).calls = 7;  // all calls are scaled together
    set_batch(counted.data, 3);
    EXPECT_EQ(shapes_text(counted.last().shapes), shapes_text(testing::shapes(tested.expected_shapes))) << tested.op;
    EXPECT_EQ(counted.last().work, tested.expected.times(7)) << tested.op << " " << tested.shapes;
    EXPECT_EQ(counted.last().calls, 7);
  }
}

// The optimizer updates weights, and gradients of weights are as large as these, however large the batch is.
TEST(SetBatch, OfATrainingStepIsRefused) {
  Counted counted(1);
  counted.add("aten::add_", "10x16, 10x16", work_of(0, 640, 640)).owner.phase = Phase::optimizer;
  EXPECT_THROW(set_batch(counted.data, 8), std::invalid_argument);
  EXPECT_EQ(counted.last().work, work_of(0, 640, 640));
}

TEST(SetBatch, NeedsTheBatchThatWasCounted) {
  auto data = Counted(1).data;
  EXPECT_THROW(set_batch(data, 0), std::invalid_argument);
  data.tree.modules[kModel].input_shapes = {{}};
  EXPECT_THROW(set_batch(data, 2), std::invalid_argument);
  data.tree.modules[kModel].input_shapes.clear();
  EXPECT_EQ(batch_of(data), 0);
  EXPECT_THROW(set_batch(data, 2), std::invalid_argument);
}

TEST(SetPrecision, HalvesBytesAndMovesOperations) {
  auto data = Counted(2).data;
  data.tree.modules[kModel].kept_memory = 600;
  const auto before = data;
  set_precision(data, DType::fp16);
  Work expected = before.counts.ops[0].work;
  expected.read_bytes /= 2;
  expected.write_bytes /= 2;
  std::swap(expected.operations_in(DType::fp16), expected.operations_in(DType::fp32));
  EXPECT_EQ(data.counts.ops[0].work, expected);
  EXPECT_EQ(data.counts.ops[0].dtype, DType::fp16);
  EXPECT_EQ(data.counts.ops[0].shapes, before.counts.ops[0].shapes);
  const auto& model = data.tree.modules[kModel];
  EXPECT_EQ(model.param_bytes, 2 * model.params);
  EXPECT_EQ(model.peak_memory, 1000);
  EXPECT_EQ(model.kept_memory, 300);
  EXPECT_EQ(model.output_bytes, 2 * 2 * 10);
  EXPECT_EQ(data.counts.memory.peak_bytes, 1000);
  set_precision(data, DType::fp32);
  EXPECT_EQ(data.counts.ops, before.counts.ops);
}

// Nor do integers beside them widen parameters, all of which are in fp32.
TEST(SetPrecision, IntegersAndNarrowerTypesStay) {
  Counted counted(2);
  Work integers = work_of(0, 8'000, 8'000);
  integers.operations_in(DType::int64) = 100;
  counted.add("aten::add", "2x500", integers).dtype = DType::int64;
  set_precision(counted.data, DType::fp16);
  EXPECT_EQ(counted.last().work, integers);
  EXPECT_EQ(counted.last().dtype, DType::int64);
  EXPECT_EQ(counted.data.tree.modules[kModel].param_bytes, 2 * counted.data.tree.modules[kModel].params);
  const Work narrow = work_of(1'000, 800, 800, DType::fp8);
  counted.add("aten::_scaled_mm", "2x400", narrow).dtype = DType::fp8;
  set_precision(counted.data, DType::fp16);
  EXPECT_EQ(counted.last().work, narrow);
}

TEST(SetPrecision, IsOfFloatingTypes) {
  auto data = Counted(1).data;
  for (const DType dtype : {DType::int8, DType::boolean, DType::other}) {
    EXPECT_THROW(set_precision(data, dtype), std::invalid_argument) << name_of(dtype);
  }
}

}  // namespace
}  // namespace roofprof
