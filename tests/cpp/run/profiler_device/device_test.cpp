// Models on a simulated GPU, from C++: kernel times land in the module, op and phase that launched them, for torch::nn
// and for TorchScript.

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <stdexcept>

#include "roofprof/scope.h"
#include "run/profiler_device/simulated_gpu.h"

namespace roofprof {
namespace {

using namespace testing;

class OnASimulatedGpu : public WithFakes {
 protected:
  void TearDown() override {
    expect_nothing_held();
    WithFakes::TearDown();
  }
};

constexpr long long kGemm = 5000;
constexpr long long kRelu = 2000;
constexpr long long kUpdate = 700;

KernelsByOp kernels() {
  return {{"aten::addmm", {"simulated_gemm", kGemm, 3e6}},
          {"aten::mm", {"simulated_gemm_of_backward", kGemm, 3e6}},
          {"aten::relu", {"simulated_relu", kRelu, 6e5}},
          {"aten::add_", {"simulated_update", kUpdate, 0}}};
}

torch::nn::Sequential mlp() {
  return torch::nn::Sequential(torch::nn::Linear(16, 8), torch::nn::ReLU(), torch::nn::Linear(8, 4));
}

TEST_F(OnASimulatedGpu, TimesAndBytesAreThoseOfTheKernelsOfEachModule) {
  const auto model = mlp();
  const KernelsOfOps bound(kernels());
  const torch::NoGradGuard no_grad;
  for (const auto counters : {Counters::off, Counters::automatic, Counters::modules}) {
    const Report report = RooflineProfiler(model, on_the_gpu(counters)).run(torch::rand({4, 16}));
    EXPECT_EQ(report.row("0").time_ns, kGemm) << all_notes(report);
    EXPECT_EQ(report.row("1").time_ns, kRelu);
    EXPECT_EQ(report.row("2").time_ns, kGemm);
    EXPECT_EQ(report.row("").time_ns, 2 * kGemm + kRelu);
    EXPECT_EQ(report.total().time_ns, 2 * kGemm + kRelu);
    EXPECT_EQ(report.row("").kernel_count, 3);
    EXPECT_EQ(total_of_kernels(report), 2 * kGemm + kRelu);
    EXPECT_EQ(instances(report, "simulated_gemm", "0"), 1);
    EXPECT_EQ(instances(report, "simulated_relu", "1"), 1);
    EXPECT_EQ(report.coverage().unattributed_kernels, 0);
    EXPECT_TRUE(report.row("0").host_time_ns.has_value());
    EXPECT_EQ(report.row("0").dram_bytes.has_value(), counters != Counters::off);
    EXPECT_EQ(report.row("0").dram_bytes.value_or(3'000'000), 3'000'000) << all_notes(report);
    EXPECT_EQ(report.row("").dram_bytes.value_or(6'600'000), 2 * 3'000'000 + 600'000);
  }
}

// What a kernel computes that no op launched is not known: its row must not look complete.
TEST_F(OnASimulatedGpu, KernelsThatNoOpLaunchedMarkTheirRow) {
  struct CustomImpl : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) {
      launch({"simulated_custom", 500, 0});
      return at::relu(x);
    }
  };
  const KernelsOfOps bound(kernels());
  CustomImpl model;
  const Report report = RooflineProfiler(model, on_the_gpu()).run(torch::rand({4, 16}));
  EXPECT_EQ(report.row("").time_ns, 500 + kRelu) << all_notes(report);
  EXPECT_TRUE(report.row("").incomplete);
  EXPECT_EQ(report.coverage().uncosted.at("(no operator)"), 1);
  EXPECT_EQ(report.coverage().unattributed_kernels, 0);
  EXPECT_EQ(report.by_operator().at("(no operator)").time_ns, 500);
}

// Two branches with streams of their own, of which either may be the first, as of two threads.
TEST_F(OnASimulatedGpu, StreamsMayBeLaunchedOnInAnyOrder) {
  struct Branch : torch::nn::Module {
    Branch(unsigned on_stream, long long ns) : stream(on_stream), duration_ns(ns) {}
    at::Tensor forward(const at::Tensor& x) {
      ROOFPROF_SCOPE(*this);
      fake_kernel("simulated_branch", 0, stream, duration_ns);
      return x;
    }
    unsigned stream;
    long long duration_ns;
  };
  struct TwoImpl : torch::nn::Module {
    TwoImpl()
        : left(register_module("left", std::make_shared<Branch>(7, 100))),
          right(register_module("right", std::make_shared<Branch>(8, 300))) {}
    at::Tensor forward(const at::Tensor& x) {
      const bool left_first = ++calls % 3 == 1;  // in the observed call, the fourth; not in the sixth and the eighth
      auto& first = left_first ? left : right;
      auto& second = left_first ? right : left;
      first->forward(x);
      return second->forward(x);
    }
    std::shared_ptr<Branch> left, right;
    int calls = 0;
  };
  TwoImpl model;
  const Report report = RooflineProfiler(model, on_the_gpu()).run(torch::rand({4, 16}));
  EXPECT_EQ(report.row("left").time_ns, 100) << all_notes(report);
  EXPECT_EQ(report.row("right").time_ns, 300);
  EXPECT_EQ(notes_with(report, "in another order"), 0);
}

// Each call of it launches one kernel more, unlike what it was traced with.
TEST_F(OnASimulatedGpu, CountersThatDoNotFitAreLeftOut) {
  struct GrowsImpl : torch::nn::Module {
    int calls = 0;
    at::Tensor forward(const at::Tensor& x) {
      ++calls;
      for (int i = 0; i < calls; ++i) launch({"simulated_extra", 100, 3e3});
      return at::relu(x);
    }
  };
  const KernelsOfOps bound(kernels());
  GrowsImpl model;
  const Report report = RooflineProfiler(model, on_the_gpu(Counters::automatic)).run(torch::rand({4, 16}));
  EXPECT_FALSE(report.row("").dram_bytes.has_value()) << all_notes(report);
  EXPECT_TRUE(report.row("").time_ns.has_value());
  EXPECT_EQ(notes_with(report, "counters"), 1) << all_notes(report);
  EXPECT_EQ(notes_with(report, "in another order"), 1) << "observed calls are timed";
}

TEST_F(OnASimulatedGpu, AClosureHasItsBackwardAndOptimizerInTheirPlaces) {
  auto model = mlp();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const KernelsOfOps bound(kernels());
  RooflineProfiler prof(model, on_the_gpu(Counters::automatic));
  const Report report = prof.run([&] {
    model->forward(torch::rand({4, 16})).sum().backward();
    optimizer.step();
  });
  EXPECT_EQ(instances(report, "simulated_gemm", "0"), 1) << all_notes(report);
  EXPECT_EQ(instances(report, "simulated_gemm_of_backward", "0", "backward"), 1) << "the input takes no gradient";
  EXPECT_EQ(instances(report, "simulated_gemm_of_backward", "2", "backward"), 2);
  EXPECT_EQ(instances(report, "simulated_update", "(optimizer)", "optimizer"), 4) << "a parameter each";
  EXPECT_EQ(report.row("(optimizer)").time_ns, 4 * kUpdate);
  EXPECT_EQ(report.total().time_ns, total_of_kernels(report));
  EXPECT_EQ(report.row("0").time_ns, 2 * kGemm);
  EXPECT_EQ(notes_with(report, "no counters: they need runs of their own"), 1) << all_notes(report);
}

torch::jit::Module scripted() {
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  torch::jit::Module linear("__torch__.Linear", unit, true);
  linear.register_parameter("weight", torch::rand({16, 16}), false);
  linear.define("def forward(self, x):\n    return torch.linear(x, self.weight)\n");
  torch::jit::Module model("__torch__.Model", unit, true);
  model.register_module("linear", linear);
  model.define("def forward(self, x):\n    return torch.relu(self.linear.forward(x))\n");
  return model;
}

TEST_F(OnASimulatedGpu, AScriptsModulesHaveTheirKernels) {
  const KernelsOfOps bound({{"aten::linear", {"simulated_gemm", kGemm}}, {"aten::relu", {"simulated_relu", kRelu}}});
  const torch::NoGradGuard no_grad;
  RooflineProfiler prof(scripted(), on_the_gpu());
  const Report report = prof.run(torch::rand({4, 16}));
  EXPECT_EQ(report.row("linear").time_ns, kGemm) << all_notes(report);
  EXPECT_EQ(report.row("").self.time_ns, kRelu);
  EXPECT_EQ(report.row("").time_ns, kGemm + kRelu);
  EXPECT_EQ(instances(report, "simulated_gemm", "linear"), 1);
}

TEST_F(OnASimulatedGpu, WhatTheModelRaisesComesThrough) {
  struct RaisesImpl : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) {
      at::relu(x);
      throw std::domain_error("the user's own");
    }
  };
  const KernelsOfOps bound(kernels());
  RaisesImpl model;
  RooflineProfiler prof(model, on_the_gpu(Counters::automatic));
  EXPECT_THROW(prof.run(torch::rand({4, 16})), std::domain_error);
  EXPECT_TRUE(prof.report().partial());
}

TEST_F(OnASimulatedGpu, OtherDevicesAndTheCpuAskNothingOfIt) {
  const auto model = mlp();
  auto options = on_the_gpu();
  options.device = "cpu";
  RooflineProfiler(model, options).run(torch::rand({4, 16}));
  EXPECT_EQ(fake_calls("cupti*"), 0);
  EXPECT_EQ(fake_calls("cu*"), 0);
}

}  // namespace
}  // namespace roofprof
