// Built-in modules, called alone: what they do stands in their row, and they were called once.

#include <gtest/gtest.h>

#include <functional>

#include "run/interpose/profiled.h"

namespace roofprof::testing {
namespace {

using namespace torch::nn;
using torch::rand;
using torch::Tensor;

void expect_one_call(const std::string& name, const Report& report, bool works = true) {
  EXPECT_EQ(report.row("").calls, 1) << name;
  EXPECT_FALSE(report.row("").inferred) << name;
  const auto ops = ops_by_module(report);
  EXPECT_EQ(ops.contains(""), works) << name;
  EXPECT_FALSE(ops.contains("(outside)")) << name << " did " << ops.at("(outside)").begin()->first << " elsewhere";
}

// Calls of a block are those that were intercepted: nobody else tells of them.
template <class Holder, class... Arguments>
void check(Holder module, Arguments... arguments) {
  expect_one_call(module->name(), profiled(module, [&] { module->forward(arguments...); }));
}

// Of each family one, and of each function that modules are called by. list_test.cpp holds that none is missing.
TEST(BuiltIn, ModulesHaveWhatTheyDo) {
  const auto x = rand({2, 4, 4, 4}), q = rand({5, 2, 8}), y = rand({3, 4});
  MultiheadAttention attention(8, 2);
  check(ReLU(), x), check(GLU(GLUOptions(1)), x), check(Softmax(1), x), check(attention, q, q, q);
  check(Conv2d(4, 3, 3), x), check(ConvTranspose2d(4, 3, 3), x), check(Unfold(UnfoldOptions({2, 2})), x);
  check(Linear(4, 3), y), check(Bilinear(4, 4, 3), y, y), check(Embedding(5, 3), torch::tensor({{1, 2}, {0, 1}}));
  check(Dropout(), x), check(GroupNorm(2, 4), x), check(LayerNorm(LayerNormOptions({4, 4})), x);
  check(ZeroPad2d(1), x), check(PixelShuffle(2), x), check(AvgPool2d(2), x), check(LPPool2d(2, 2), x);
  check(MSELoss(), y, y), check(CosineEmbeddingLoss(), y, y, torch::ones({3})), check(PairwiseDistance(), y, y);
  check(CTCLoss(), rand({6, 2, 5}).log_softmax(2), torch::ones({2, 2}, torch::kLong), torch::tensor({6, 6}),
        torch::tensor({2, 2}));
  check(LSTM(8, 3), q), check(GRUCell(8, 3), q[0]);
  Flatten moves_nothing;
  expect_one_call("Flatten", profiled(moves_nothing, [&] { moves_nothing->forward(x); }), false);
}

TEST(BuiltIn, HaveOtherFunctionsThanForward) {
  AdaptiveLogSoftmaxWithLoss adaptive(AdaptiveLogSoftmaxWithLossOptions(8, 10, {4}));
  const auto x = rand({3, 8});
  check(adaptive, x, torch::tensor({1, 5, 9}));
  expect_one_call("log_prob", profiled(adaptive, [&] { adaptive->log_prob(x); }));
  expect_one_call("predict", profiled(adaptive, [&] { adaptive->predict(x); }));
  MaxPool2d pool(2);
  const auto image = rand({2, 3, 8, 8});
  expect_one_call("pool", profiled(pool, [&] { pool->forward_with_indices(image); }));
  const auto [pooled, indices] = pool->forward_with_indices(image);
  check(MaxUnpool2d(2), pooled, indices);
  const auto packed = torch::nn::utils::rnn::pack_padded_sequence(rand({5, 2, 4}), torch::tensor({5, 3}));
  GRU gru(4, 3);
  expect_one_call("packed", profiled(gru, [&] { gru->forward_with_packed_input(packed); }));
  Functional doubled([](Tensor given) { return given * 2; });
  check(doubled, x);
  expect_one_call("operator()", profiled(doubled, [&] { (*doubled)(x); }));
}

}  // namespace
}  // namespace roofprof::testing
