// Ops that are handed on before they reach a kernel: what is dispatched inside is the work, once.

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/forward_grad.h>

#include "observe/observed.h"

namespace roofprof::observe {
namespace {

using namespace testing;

TEST(Wrappers, CountsTheInnerOpOfAWrapper) {
  const auto input = at::rand({4, 16});
  const auto weight = at::rand({8, 16});
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const auto pass = observe_in_model([&] { at::linear(input, weight); });
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  const auto* linear = find(pass, "aten::linear");
  ASSERT_NE(linear, nullptr);
  EXPECT_EQ(linear->calls, 1);
  EXPECT_EQ(linear->work.operations_in(DType::bf16), 2 * 4 * 16 * 8);
  EXPECT_EQ(linear->work.operations_in(DType::fp32), 0);
  // The two casts are work of their own: fp32 in, bf16 out.
  const auto* casts = find(pass, "aten::_to_copy");
  ASSERT_NE(casts, nullptr);
  EXPECT_EQ(total_work(pass).bytes() - linear->work.bytes(), (4 + 2) * (4 * 16 + 8 * 16));
}

TEST(Wrappers, CountsOnceWhatAutocastLeavesAlone) {
  const auto input = at::rand({4, 16});
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const auto pass = observe_in_model([&] { at::relu(input); });
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_NE(find(pass, "aten::relu"), nullptr);
  EXPECT_EQ(total_work(pass).flops(), 4 * 16);
}

// A batch rule multiplies another operator's tensors: what was called with is of one example.
TEST(Wrappers, CountsWhatABatchedOpDispatches) {
  const auto weight = at::rand({16, 8});
  const auto batched = at::_add_batch_dim(at::rand({5, 4, 16}), 0, 1);
  const auto pass = observe_in_model([&] { at::mm(batched, weight); });
  EXPECT_EQ(total_work(pass).macs, 5 * 4 * 16 * 8);
}

// Forward-mode AD: x w', x' w and their sum beside x w.
TEST(Wrappers, CountsTangentsBesideTheOp) {
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  const auto dual = [&](at::IntArrayRef sizes) { return at::_make_dual(at::rand(sizes), at::rand(sizes), level); };
  {
    const auto left = dual({4, 16});
    const auto right = dual({16, 8});
    const auto pass = observe_in_model([&] { at::mm(left, right); });
    EXPECT_EQ(find(pass, "aten::mm")->calls, 3);
    EXPECT_EQ(total_work(pass).macs, 3 * 4 * 16 * 8);
    EXPECT_EQ(total_work(pass).flops(), 3 * 2 * 4 * 16 * 8 + 4 * 8);
    const auto through = observe_in_model([&] { at::linear(left, right.t()); });
    EXPECT_EQ(total_work(through).macs, 3 * 4 * 16 * 8);
  }
  torch::autograd::ForwardADLevel::release_idx(level);
}

}  // namespace
}  // namespace roofprof::observe
