// What is put back between and after calls, tensor by tensor.

#include "run/state_snapshot.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

namespace roofprof::run {
namespace {

at::Tensor kept_and_changed(at::Tensor tensor, const std::function<void(at::Tensor&)>& change) {
  KeptTensor kept(tensor, /*by_value=*/true);
  change(tensor);
  EXPECT_TRUE(kept.restore());
  return tensor;
}

TEST(KeptTensors, ValuesComeBackAndTheirVersionStays) {
  auto tensor = at::zeros({3});
  KeptTensor kept(tensor, /*by_value=*/true);
  tensor.add_(1);
  const auto version = tensor._version();
  EXPECT_TRUE(kept.restore());
  EXPECT_TRUE(at::equal(tensor, at::zeros({3})));
  EXPECT_EQ(tensor._version(), version);
}

TEST(KeptTensors, WritesThatTorchDoesNotTellOfAreUndone) {
  const auto tensor = kept_and_changed(at::zeros({3}), [](at::Tensor& it) { it.variable_data().add_(1); });
  EXPECT_TRUE(at::equal(tensor, at::zeros({3})));
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

TEST(KeptTensors, SparseOnesToo) {
  const auto values = at::ones({2, 2});
  auto tensor = values.to_sparse();
  kept_and_changed(tensor, [](at::Tensor& it) { it.mul_(3); });
  EXPECT_TRUE(at::equal(tensor.to_dense(), values));
}

TEST(KeptTensors, NotByValueSayWhetherTheyWereWritten) {
  auto tensor = at::zeros({3});
  KeptTensor kept(tensor, /*by_value=*/false);
  EXPECT_TRUE(kept.restore());
  tensor.add_(1);
  EXPECT_FALSE(kept.restore());
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

TEST(TensorSnapshots, LeaveOutWhatHasNoValuesOfItsOwn) {
  auto meta = at::zeros({3}, at::device(at::kMeta));
  auto shared = at::zeros({1}).expand({3});
  TensorSnapshot snapshot({meta, shared}, {});
  snapshot.keep({meta, shared, at::Tensor()});
  EXPECT_EQ(snapshot.restore(), 0);
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
