// What is put back between and after calls, tensor by tensor.

#include "run/state_snapshot.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/native/Resize.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace roofprof::run {
namespace {

at::Tensor kept_and_changed(at::Tensor tensor, const std::function<void(at::Tensor&)>& change) {
  KeptTensors kept({{tensor, /*by_value=*/true}});
  change(tensor);
  EXPECT_EQ(kept.restore(), 0);
  return tensor;
}

TEST(KeptTensors, InferenceTensorsAreWrittenToo) {
  at::Tensor tensor;
  {
    const c10::InferenceMode guard;
    tensor = at::zeros({3});
  }
  kept_and_changed(tensor, [](at::Tensor& it) {
    const c10::InferenceMode guard;
    it.add_(1);
  });
  EXPECT_TRUE(at::equal(tensor, at::zeros({3})));
}

TEST(KeptTensors, StorageThatWasExchangedComesBack) {
  auto tensor = at::zeros({3});
  const auto* place = tensor.data_ptr();
  kept_and_changed(tensor, [](at::Tensor& it) { it.set_data(at::ones({5})); });
  EXPECT_EQ(tensor.data_ptr(), place);
  EXPECT_TRUE(at::equal(tensor, at::zeros({3})));
}

TEST(KeptTensors, GradientsComeBackAsTheVeryTensorsThatTheyWere) {
  auto with = at::zeros({3}).set_requires_grad(true);
  const auto gradient = at::ones({3});
  with.mutable_grad() = gradient;
  kept_and_changed(with, [](at::Tensor& it) { it.mutable_grad() = at::zeros({3}); });
  EXPECT_TRUE(with.grad().is_same(gradient));

  auto without = at::zeros({3}).set_requires_grad(true);
  kept_and_changed(without, [](at::Tensor& it) {
    it.mutable_grad() = at::zeros({3});
    it.set_requires_grad(false);
  });
  EXPECT_FALSE(without.grad().defined());
  EXPECT_TRUE(without.requires_grad());
}

TEST(KeptTensors, NotByValueSayWhetherTheyWereWritten) {
  auto tensor = at::zeros({3});
  KeptTensors kept({{tensor, /*by_value=*/false}});
  EXPECT_EQ(kept.restore(), 0);
  tensor.add_(1);
  EXPECT_EQ(kept.restore(), 1);
}

TEST(TensorSnapshots, KeepWhatTheFirstCallWroteHoweverLarge) {
  auto written = at::zeros({1000});
  auto read = at::zeros({1000});
  TensorSnapshot snapshot({written, read}, {}, /*bytes_kept=*/0);
  written.add_(1);
  snapshot.keep({written, read});
  written.add_(1);
  EXPECT_EQ(snapshot.restore(), 0);
  EXPECT_TRUE(at::equal(written, at::ones({1000})));
}

TEST(TensorSnapshots, SayHowManyOnlyFurtherCallsWrote) {
  auto tensor = at::zeros({1000});
  TensorSnapshot snapshot({tensor}, {}, /*bytes_kept=*/100);
  snapshot.keep({tensor});
  tensor.add_(1);
  EXPECT_EQ(snapshot.restore(), 1);
}

TEST(TensorSnapshots, KeepSmallOnesThatNobodyWrote) {
  auto parameter = at::zeros({10});
  auto input = at::zeros({10});
  TensorSnapshot snapshot({parameter, input}, {input});
  snapshot.keep({parameter, input});
  parameter.variable_data().add_(1);
  input.add_(1);
  EXPECT_EQ(snapshot.restore(), 1) << "inputs that torch watches are not copied";
  EXPECT_TRUE(at::equal(parameter, at::zeros({10})));
}

// ---- storages that are shorter than their tensors say

void resize(const at::Tensor& tensor, std::int64_t bytes) { at::native::resize_bytes_nocuda(tensor.storage(), bytes); }

std::int64_t bytes_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.storage().nbytes()); }

TEST(Storages, FreedMeanwhileGetTheirMemoryBackWithItsValues) {
  auto freed = at::arange(1000, at::kFloat);
  KeptTensors kept({{freed, /*by_value=*/true}});
  resize(freed, 0);
  EXPECT_EQ(kept.restore(), 0);
  ASSERT_EQ(bytes_of(freed), 4000);
  EXPECT_TRUE(at::equal(freed, at::arange(1000, at::kFloat)));
}

TEST(Storages, WhoseValuesWereNotKeptAreReported) {
  const auto pool = at::ones({1000});
  const auto part = pool.slice(0, 0, 10);
  KeptTensors kept({{pool, /*by_value=*/false}, {part, /*by_value=*/false}});
  resize(pool, 0);
  EXPECT_EQ(kept.restore(), 2);
  EXPECT_EQ(bytes_of(pool), 4000) << "nobody is to read beyond it";
}

TEST(Storages, OfOverlappingViewsComeBackInAnyOrder) {
  const auto base = at::arange(100, at::kFloat);
  const std::vector<at::Tensor> views = {base.slice(0, 0, 60),
                                         base.slice(0, 40, 100),
                                         base.as_strided({10, 5}, {3, 1}),
                                         base.view({10, 10}).slice(1, 2, 4),
                                         base.slice(0, 0, 1).expand({7}),
                                         base.view({10, 10}).t()};
  std::vector<ToKeep> to_keep;
  for (const auto& view : views) to_keep.push_back({view, /*by_value=*/true});
  for (int turn = 0; turn < 2; ++turn, std::ranges::reverse(to_keep)) {
    KeptTensors kept(to_keep);
    base.fill_(-1);
    EXPECT_EQ(kept.restore(), 0);
    EXPECT_TRUE(at::equal(base, at::arange(100, at::kFloat)));
  }
}

TEST(Storages, FreedByTheFirstCallForbidFurtherOnes) {
  const auto freed = at::ones({10});
  const auto sparse = at::ones({2, 2}).to_sparse();
  const TensorSnapshot snapshot({freed, sparse}, {});
  resize(freed, 0);
  resize(sparse._values(), 4);
  EXPECT_NE(snapshot.why_only_once().find("2 tensors without the memory"), std::string::npos)
      << snapshot.why_only_once();
}

TEST(KeptTensors, ThatDoNotTellWhetherTheyAreLeavesAreKeptByValue) {
  auto leaf = at::zeros({4}).set_requires_grad(true);
  at::Tensor view;
  {
    const at::NoGradGuard no_grad;
    view = leaf.view({2, 2});
  }
  const auto parts = leaf.split(2);
  {
    const at::NoGradGuard no_grad;
    leaf.add_(1);
  }
  EXPECT_THROW(parts[0].grad_fn(), c10::Error);
  KeptTensors kept({{parts[0], /*by_value=*/true}, {view, /*by_value=*/true}});
  leaf.variable_data().fill_(5);
  EXPECT_EQ(kept.restore(), 0);
  EXPECT_TRUE(at::equal(leaf, at::ones({4})));
}

TEST(AmbientStates, RandomNumbersAndTheGradModeComeBack) {
  const AmbientState state;
  const auto first = at::rand({3});
  c10::GradMode::set_enabled(false);
  state.restore();
  EXPECT_TRUE(c10::GradMode::is_enabled());
  EXPECT_TRUE(at::equal(at::rand({3}), first));
}

}  // namespace
}  // namespace roofprof::run
