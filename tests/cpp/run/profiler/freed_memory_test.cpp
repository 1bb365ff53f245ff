// Storages that are shorter than their tensors say, and parameters that rest where nothing runs.

#include <ATen/native/Resize.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/script.h>

#include "quick.h"
#include "roofprof/profiler.h"

namespace roofprof {
namespace {

using at::Tensor;
using testing::input;
using testing::kLinearMacs;
using testing::quick;
using testing::says;

void resize(const Tensor& tensor, std::int64_t bytes) { at::native::resize_bytes_nocuda(tensor.storage(), bytes); }

struct WithPool : torch::nn::Module {
  WithPool() {
    register_module("linear", linear);
    for (int i = 0; i < 2; ++i) register_parameter("part" + std::to_string(i), pool[i], /*requires_grad=*/false);
    linear->weight.mutable_grad() = torch::ones({8, 16});
    resize(linear->weight.grad(), 0);
    resize(pool, 0);
  }
  Tensor forward(const Tensor& x) { return linear(x); }

  Tensor pool = torch::ones({2, 100'000});
  torch::nn::Linear linear{16, 8};
};

TEST(FreedMemory, OfParametersAndGradientsStaysFreed) {
  WithPool model;
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(input());
  EXPECT_EQ(report.total().macs, kLinearMacs);
  EXPECT_TRUE(report.coverage().notes.empty()) << report.coverage().notes.front().text;
  EXPECT_EQ(model.pool.storage().nbytes(), 0);
  EXPECT_EQ(model.linear->weight.grad().storage().nbytes(), 0);
}

struct FreesItsWeight : torch::nn::Module {
  FreesItsWeight() { register_module("linear", linear); }
  Tensor forward(const Tensor& x) {
    Tensor result = linear(x);
    resize(linear->weight, 0);
    return result;
  }
  torch::nn::Linear linear{16, 8};
};

TEST(FreedMemory, ByTheFirstCallEndsTheTimingBeforeItBegins) {
  FreesItsWeight model;
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(input());
  EXPECT_EQ(report.total().macs, kLinearMacs);
  EXPECT_TRUE(says(report, "further ones would find 1 tensor without the memory that it freed"));
}

TEST(FreedMemory, OfAnArgumentIsLeftAlone) {
  struct Takes : torch::nn::Module {
    Takes() { register_module("linear", linear); }
    Tensor forward(const Tensor& x, const Tensor& /*unused*/) { return linear(x); }
    torch::nn::Linear linear{16, 8};
  } model;
  const Tensor freed = torch::ones({100'000});
  resize(freed, 0);
  RooflineProfiler prof(model, quick());
  EXPECT_EQ(prof.run(input(), freed).total().macs, kLinearMacs);
  EXPECT_EQ(freed.storage().nbytes(), 0);
}

TEST(FreedMemory, OfTorchScriptStaysFreed) {
  torch::jit::Module model("Model");
  const Tensor freed = torch::ones({100'000});
  model.register_buffer("freed", freed);
  model.register_parameter("weight", torch::rand({8, 16}), /*is_buffer=*/false);
  model.define("def forward(self, x): return torch.linear(x, self.weight)\n");
  resize(freed, 0);
  RooflineProfiler prof(model, testing::quick_script());
  EXPECT_EQ(prof.run(input()).total().macs, kLinearMacs);
  EXPECT_EQ(freed.storage().nbytes(), 0);
}

TEST(Held, ViewsThatDoNotTellTheirGradientAreLeftAlone) {
  struct WithStaleView : torch::nn::Module {
    WithStaleView() {
      register_module("linear", linear);
      Tensor base = torch::zeros({4}, torch::requires_grad());
      const auto part = base.split(2)[0];
      const at::NoGradGuard no_grad;
      base.zero_();
      register_buffer("stale", part);
    }
    Tensor forward(const Tensor& x) { return linear(x); }
    torch::nn::Linear linear{16, 8};
  } model;
  RooflineProfiler prof(model, quick());
  EXPECT_EQ(prof.run(input()).total().macs, kLinearMacs);
}

TEST(OnMeta, OneParameterThatRestsThereCostsNoTimes) {
  struct WithDead : torch::nn::Module {
    WithDead() {
      register_module("linear", linear);
      register_parameter("dead", torch::ones({3}, torch::kMeta));
    }
    Tensor forward(const Tensor& x) { return linear(x); }
    torch::nn::Linear linear{16, 8};
  } model;
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(input());
  EXPECT_TRUE(report.total().time_ns.has_value());
  EXPECT_FALSE(says(report, "not timed"));
}

}  // namespace
}  // namespace roofprof
