// Sessions on real ops: what is counted, where it is put, what is left behind.

#include "observe/session.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "observe/observed.h"

namespace roofprof::observe {
namespace {

using namespace testing;

TEST(Session, CountsTheOutermostOpWithACostOnly) {
  const auto input = at::rand({4, 16});
  const auto weight = at::rand({8, 16});
  const auto bias = at::rand({8});
  const auto pass = observe_in_model([&] { at::linear(input, weight, bias); });
  const auto* linear = find(pass, "aten::linear");
  ASSERT_NE(linear, nullptr);
  EXPECT_EQ(linear->calls, 1);
  EXPECT_EQ(linear->work.macs, 4 * 16 * 8);
  EXPECT_EQ(linear->work.flops(), 2 * 4 * 16 * 8 + 4 * 8);
  EXPECT_EQ(linear->work.bytes(), 4 * (4 * 16 + 8 * 16 + 8 + 4 * 8));
  EXPECT_EQ(find(pass, "aten::addmm"), nullptr);
  EXPECT_EQ(find(pass, "aten::t"), nullptr);
}

TEST(Session, KeepsTheSizesOfEveryTensor) {
  const auto x = at::rand({8, 4});
  const std::vector<at::Tensor> list(40, at::rand({2, 3}));
  const auto nested = at::_nested_tensor_from_tensor_list({at::rand({2, 3}), at::rand({4, 3})});
  const auto sparse = at::ones({3, 5}).to_sparse();
  const auto pass = observe_in_model([&] {
    at::where(x > 0, x, at::zeros({}));
    at::cat(list);
    at::relu(nested);
    at::neg(sparse);
    at::rand({7});
  });
  const auto taken_by = [&](const std::string& op) { return find(pass, op)->shapes; };
  EXPECT_EQ(taken_by("aten::where"), (OpShapes{{{8, 4}, {8, 4}, {}}}));
  EXPECT_EQ(taken_by("aten::cat"), (OpShapes{std::vector<Shape>(40, {2, 3})}));
  EXPECT_EQ(taken_by("aten::relu"), (OpShapes{{{2, kUnknownSize, 3}}}));
  EXPECT_EQ(taken_by("aten::neg"), (OpShapes{{{3, 5}}}));
  EXPECT_EQ(taken_by("aten::rand"), OpShapes());
}

TEST(Session, SharesABucketWhenShapesAreMany) {
  std::int64_t elements = 0;
  const auto pass = observe_in_model([&] {
    for (int n = 1; n <= 500; ++n) {
      at::neg(at::empty({n}));
      elements += n;
    }
  });
  std::size_t buckets = 0;
  std::int64_t calls = 0;
  std::int64_t flops = 0;
  for (const auto& op : pass.ops) {
    if (op.op != "aten::neg") continue;
    ++buckets;
    calls += op.calls;
    flops += op.work.flops();
  }
  EXPECT_EQ(buckets, BucketTable::kMaxShapes + 1);
  EXPECT_EQ(calls, 500);
  EXPECT_EQ(flops, elements);
}

TEST(Session, TellsCallsWithTheSameInputsApartByTheirResults) {
  const auto image = at::rand({1, 2, 8, 8});
  const auto weight = at::rand({3, 2, 3, 3});
  const auto pass = observe_in_model([&] {
    at::conv2d(image, weight, {}, 1);
    at::conv2d(image, weight, {}, 2);
    at::conv2d(image, weight, {}, 1, 1);
  });
  EXPECT_EQ(total_work(pass).macs, 2 * 3 * 9 * (6 * 6 + 3 * 3 + 8 * 8));
}

}  // namespace
}  // namespace roofprof::observe
