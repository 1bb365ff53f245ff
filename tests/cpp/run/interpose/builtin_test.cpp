// Every built-in module, called alone: what it does stands in its row, and it was called once.

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

TEST(BuiltIn, Activations) {
  const auto x = rand({2, 4, 3, 3});
  check(CELU(), x), check(ELU(), x), check(GELU(), x), check(GLU(GLUOptions(1)), x), check(Hardshrink(), x);
  check(Hardtanh(), x), check(LeakyReLU(), x), check(LogSigmoid(), x), check(LogSoftmax(1), x), check(Mish(), x);
  check(PReLU(), x), check(RReLU(), x), check(ReLU6(), x), check(ReLU(), x), check(SELU(), x), check(SiLU(), x);
  check(Sigmoid(), x), check(Softmax2d(), x), check(Softmax(1), x), check(Softmin(1), x), check(Softplus(), x);
  check(Softshrink(), x), check(Softsign(), x), check(Tanh(), x), check(Tanhshrink(), x);
  check(Threshold(0.1, 0.2), x);
  const auto q = rand({5, 2, 8});
  MultiheadAttention attention(8, 2);
  check(attention, q, q, q);
}

TEST(BuiltIn, Convolutions) {
  check(Conv1d(2, 3, 3), rand({1, 2, 5})), check(Conv2d(2, 3, 3), rand({1, 2, 5, 5}));
  check(Conv3d(2, 3, 3), rand({1, 2, 5, 5, 5})), check(ConvTranspose1d(2, 3, 3), rand({1, 2, 5}));
  check(ConvTranspose2d(2, 3, 3), rand({1, 2, 5, 5})), check(ConvTranspose3d(2, 3, 3), rand({1, 2, 5, 5, 5}));
  check(Fold(FoldOptions({4, 5}, {2, 2})), rand({1, 3 * 4, 12}));
  check(Unfold(UnfoldOptions({2, 2})), rand({1, 3, 4, 5}));
}

TEST(BuiltIn, LinearAndEmbedding) {
  const auto indices = torch::tensor({{1, 2}, {0, 1}});
  check(Linear(4, 3), rand({2, 4})), check(Bilinear(4, 5, 3), rand({2, 4}), rand({2, 5}));
  check(Embedding(5, 3), indices), check(EmbeddingBag(5, 3), indices);
  AdaptiveLogSoftmaxWithLoss adaptive(AdaptiveLogSoftmaxWithLossOptions(8, 10, {4}));
  check(adaptive, rand({3, 8}), torch::tensor({1, 5, 9}));
  const auto x = rand({3, 8});
  expect_one_call("log_prob", profiled(adaptive, [&] { adaptive->log_prob(x); }));
  expect_one_call("predict", profiled(adaptive, [&] { adaptive->predict(x); }));
}

TEST(BuiltIn, ThoseThatMoveNothing) {
  const auto x = rand({2, 4});
  const auto free = [&](auto module) {
    expect_one_call(module->name(), profiled(module, [&] { module->forward(x); }), false);
  };
  free(Identity()), free(Flatten()), free(Unflatten(UnflattenOptions(1, {2, 2})));
}

TEST(BuiltIn, Dropout) {
  const auto x = rand({2, 4, 3, 3});
  check(AlphaDropout(), x), check(Dropout2d(), x), check(Dropout3d(), rand({2, 4, 3, 3, 3})), check(Dropout(), x);
  check(FeatureAlphaDropout(), x);
}

TEST(BuiltIn, Losses) {
  const auto x = rand({3, 4}), y = rand({3, 4});
  const auto classes = torch::tensor({1, 0, 3});
  const auto signs = torch::ones({3});
  check(BCELoss(), x, y), check(BCEWithLogitsLoss(), x, y), check(CosineEmbeddingLoss(), x, y, signs);
  check(CrossEntropyLoss(), x, classes), check(HingeEmbeddingLoss(), x, y), check(HuberLoss(), x, y);
  check(KLDivLoss(), x, y), check(L1Loss(), x, y), check(MSELoss(), x, y);
  check(MarginRankingLoss(), x[0], y[0], torch::ones({4})),
      check(MultiLabelMarginLoss(), x, torch::zeros({3, 4}, torch::kLong));
  check(MultiLabelSoftMarginLoss(), x, y), check(MultiMarginLoss(), x, classes), check(NLLLoss(), x, classes);
  check(PoissonNLLLoss(), x, y), check(SmoothL1Loss(), x, y), check(SoftMarginLoss(), x, y);
  check(TripletMarginLoss(), x, y, rand({3, 4})), check(TripletMarginWithDistanceLoss(), x, y, rand({3, 4}));
  check(CTCLoss(), rand({6, 2, 5}).log_softmax(2), torch::ones({2, 2}, torch::kLong), torch::tensor({6, 6}),
        torch::tensor({2, 2}));
  check(CosineSimilarity(), x, y), check(PairwiseDistance(), x, y);
}

TEST(BuiltIn, Normalisation) {
  const auto x = rand({2, 4, 3, 3});
  check(GroupNorm(2, 4), x), check(LayerNorm(LayerNormOptions({3, 3})), x), check(LocalResponseNorm(2), x);
  check(CrossMapLRN2d(2), x);
}

TEST(BuiltIn, Pooling) {
  const auto x1 = rand({2, 3, 8}), x2 = rand({2, 3, 8, 8}), x3 = rand({2, 3, 8, 8, 8});
  check(AdaptiveAvgPool1d(2), x1), check(AdaptiveAvgPool2d(2), x2), check(AdaptiveAvgPool3d(2), x3);
  check(AdaptiveMaxPool1d(2), x1), check(AdaptiveMaxPool2d(2), x2), check(AdaptiveMaxPool3d(2), x3);
  check(AvgPool1d(2), x1), check(AvgPool2d(2), x2), check(AvgPool3d(2), x3);
  check(LPPool1d(2, 2), x1), check(LPPool2d(2, 2), x2), check(LPPool3d(2, 2), x3);
  check(MaxPool1d(2), x1), check(MaxPool2d(2), x2), check(MaxPool3d(2), x3);
  FractionalMaxPool2d fractional2(FractionalMaxPool2dOptions(2).output_size(3));
  FractionalMaxPool3d fractional3(FractionalMaxPool3dOptions(2).output_size(3));
  check(fractional2, x2), check(fractional3, x3);
  const auto with_indices = [](auto module, const Tensor& x) {
    expect_one_call(module->name(), profiled(module, [&] { module->forward_with_indices(x); }));
  };
  with_indices(AdaptiveMaxPool1d(2), x1), with_indices(AdaptiveMaxPool2d(2), x2),
      with_indices(AdaptiveMaxPool3d(2), x3);
  with_indices(MaxPool1d(2), x1), with_indices(MaxPool2d(2), x2), with_indices(MaxPool3d(2), x3);
  with_indices(fractional2, x2), with_indices(fractional3, x3);
  const auto unpool = [](auto pool, auto module, const Tensor& x) {
    const auto [pooled, indices] = pool->forward_with_indices(x);
    check(module, pooled, indices);
  };
  unpool(MaxPool1d(2), MaxUnpool1d(2), x1), unpool(MaxPool2d(2), MaxUnpool2d(2), x2);
  unpool(MaxPool3d(2), MaxUnpool3d(2), x3);
}

TEST(BuiltIn, PaddingAndSizes) {
  const auto x1 = rand({2, 4, 8}), x2 = rand({2, 4, 8, 8}), x3 = rand({2, 4, 8, 8, 8});
  check(ConstantPad1d(1, 0.5), x1), check(ConstantPad2d(1, 0.5), x2), check(ConstantPad3d(1, 0.5), x3);
  check(ReflectionPad1d(1), x1), check(ReflectionPad2d(1), x2), check(ReflectionPad3d(1), x3);
  check(ReplicationPad1d(1), x1), check(ReplicationPad2d(1), x2), check(ReplicationPad3d(1), x3);
  check(ZeroPad1d(1), x1), check(ZeroPad2d(1), x2), check(ZeroPad3d(1), x3);
  check(PixelShuffle(2), x2), check(PixelUnshuffle(2), x2);
  check(Upsample(UpsampleOptions().scale_factor(std::vector<double>{2.0, 2.0})), x2);
}

TEST(BuiltIn, Recurrent) {
  const auto x = rand({5, 2, 4});
  check(RNN(4, 3), x), check(LSTM(4, 3), x), check(GRU(4, 3), x);
  check(RNNCell(4, 3), x[0]), check(LSTMCell(4, 3), x[0]), check(GRUCell(4, 3), x[0]);
  const auto packed = torch::nn::utils::rnn::pack_padded_sequence(x, torch::tensor({5, 3}));
  const auto check_packed = [&](auto module) {
    expect_one_call(module->name(), profiled(module, [&] { module->forward_with_packed_input(packed); }));
  };
  check_packed(RNN(4, 3)), check_packed(LSTM(4, 3)), check_packed(GRU(4, 3));
}

TEST(BuiltIn, Functional) {
  Functional doubled([](Tensor x) { return x * 2; });
  const auto x = rand({3});
  check(doubled, x);
  expect_one_call("operator()", profiled(doubled, [&] { (*doubled)(x); }));
}

}  // namespace
}  // namespace roofprof::testing
