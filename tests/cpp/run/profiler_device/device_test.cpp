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

TEST_F(OnASimulatedGpu, EventsAreKeptOnRequestAndChangeNoTime) {
  const auto model = mlp();
  const KernelsOfOps bound(kernels());
  const torch::NoGradGuard no_grad;
  auto options = on_the_gpu();
  const Report without = RooflineProfiler(model, options).run(torch::rand({4, 16}));
  options.keep_events = true;
  const Report with_events = RooflineProfiler(model, options).run(torch::rand({4, 16}));
  EXPECT_EQ(without.to_json().find("\"events\""), std::string::npos);
  EXPECT_NE(with_events.to_json().find("\"events\""), std::string::npos);
  EXPECT_EQ(Report::from_json_text(with_events.to_json()).to_json(), with_events.to_json());
  for (const auto* path : {"", "0", "1", "2"}) {
    EXPECT_EQ(with_events.row(path).time_ns, without.row(path).time_ns) << path;
    EXPECT_EQ(with_events.row(path).kernel_count, without.row(path).kernel_count) << path;
  }
}

TEST_F(OnASimulatedGpu, TimesAreThoseOfTheKernelsOfEachModule) {
  const auto model = mlp();
  const KernelsOfOps bound(kernels());
  const torch::NoGradGuard no_grad;
  const Report report = RooflineProfiler(model, on_the_gpu()).run(torch::rand({4, 16}));
  EXPECT_EQ(report.row("0").time_ns, kGemm) << all_notes(report);
  EXPECT_EQ(report.row("1").time_ns, kRelu);
  EXPECT_EQ(report.row("2").time_ns, kGemm);
  EXPECT_EQ(report.row("").time_ns, 2 * kGemm + kRelu);
  EXPECT_EQ(report.total().time_ns, 2 * kGemm + kRelu);
  EXPECT_EQ(report.row("").kernel_count, 3);
  EXPECT_EQ(total_of_kernels(report), 2 * kGemm + kRelu);
  EXPECT_EQ(instances(report, "simulated_gemm", "0"), 1);
  EXPECT_EQ(instances(report, "simulated_gemm", "2"), 1);
  EXPECT_EQ(instances(report, "simulated_relu", "1"), 1);
  for (const auto& row : report.kernels()) {
    EXPECT_EQ(row.op, row.name == "simulated_relu" ? "aten::relu" : "aten::addmm");
  }
  EXPECT_EQ(report.coverage().unattributed_kernels, 0);
  ASSERT_TRUE(report.row("0").host_time_ns.has_value());
  EXPECT_TRUE(report.row("").wall_ns.has_value());
  EXPECT_FALSE(report.row("0").wall_ns.has_value());
}

TEST_F(OnASimulatedGpu, DramBytesAreJoinedByOrdinal) {
  const auto model = mlp();
  const KernelsOfOps bound(kernels());
  const torch::NoGradGuard no_grad;
  const Report report = RooflineProfiler(model, on_the_gpu(Counters::automatic)).run(torch::rand({4, 16}));
  EXPECT_EQ(report.row("0").dram_bytes, 3'000'000) << all_notes(report);
  EXPECT_EQ(report.row("1").dram_bytes, 600'000);
  EXPECT_EQ(report.row("").dram_bytes, 2 * 3'000'000 + 600'000);
  EXPECT_EQ(report.row("").time_ns, 2 * kGemm + kRelu) << "not those of the counters' run";
}

TEST_F(OnASimulatedGpu, DramBytesOfWholeModules) {
  const auto model = mlp();
  const KernelsOfOps bound(kernels());
  const torch::NoGradGuard no_grad;
  const Report report = RooflineProfiler(model, on_the_gpu(Counters::modules)).run(torch::rand({4, 16}));
  EXPECT_EQ(report.row("0").dram_bytes, 3'000'000) << all_notes(report);
  EXPECT_EQ(report.row("1").dram_bytes, 600'000);
  EXPECT_EQ(report.row("").dram_bytes, 2 * 3'000'000 + 600'000);
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

// The observed call tells whose the kernels are of those that nobody observes: no op has an id pushed in them.
TEST_F(OnASimulatedGpu, TimedCallsAreTracedAlone) {
  struct CountsImpl : torch::nn::Module {
    CountsImpl() : fc(register_module("fc", torch::nn::Linear(16, 8))) {}
    at::Tensor forward(const at::Tensor& x) {
      ++calls;
      launch({"simulated_custom", 500 + calls, 0});
      return fc(x);
    }
    torch::nn::Linear fc;
    int calls = 0;
  };
  const auto model = std::make_shared<CountsImpl>();
  const KernelsOfOps bound(kernels());
  const torch::NoGradGuard no_grad;
  const Report report = RooflineProfiler(*model, on_the_gpu()).run(torch::rand({4, 16}));
  // Counted, one for warm-up, a pair with an observed call, three pairs with one traced alone: calls 6, 8 and 10.
  EXPECT_EQ(model->calls, 1 + 1 + 2 + 2 * 3) << all_notes(report);
  const auto in_call = report.row("").self.time_ns.value_or(0) - 500;
  EXPECT_TRUE(in_call == 6 || in_call == 8 || in_call == 10) << in_call;
  EXPECT_EQ(report.row("fc").time_ns, kGemm);
  EXPECT_EQ(report.coverage().unattributed_kernels, 0);
  EXPECT_EQ(notes_with(report, "in another order"), 0);
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

TEST_F(OnASimulatedGpu, AFurtherCallThatRaisesLeavesTheTimesOfThoseBefore) {
  struct TiresImpl : torch::nn::Module {
    int calls = 0;
    at::Tensor forward(const at::Tensor& x) {
      if (++calls > 4) throw std::domain_error("tired");
      return at::relu(x);
    }
  };
  const KernelsOfOps bound(kernels());
  TiresImpl model;
  const Report report = RooflineProfiler(model, on_the_gpu()).run(torch::rand({4, 16}));
  EXPECT_EQ(report.row("").time_ns.value_or(0) + report.total().time_ns.value_or(0), 2 * kRelu) << all_notes(report);
  EXPECT_EQ(notes_with(report, "tired"), 1);
}

// Ops and modules that launch nothing cost no call of CUPTI's.
TEST_F(OnASimulatedGpu, CuptiIsAskedNoMoreWhereMoreOpsRun) {
  struct ViewsImpl : torch::nn::Module {
    explicit ViewsImpl(int number) : views(number), relu(register_module("relu", torch::nn::ReLU())) {}
    at::Tensor forward(at::Tensor x) {
      for (int i = 0; i < views; ++i) x = x.t();
      return relu(x);
    }
    int views;
    torch::nn::ReLU relu;
  };
  const KernelsOfOps bound(kernels());
  const torch::NoGradGuard no_grad;
  const auto calls_with = [](int views) {
    ViewsImpl model(views);
    const auto before = fake_calls("cupti*");
    const Report report = RooflineProfiler(model, on_the_gpu()).run(torch::rand({4, 16}));
    EXPECT_EQ(report.row("relu").time_ns, kRelu) << all_notes(report);
    return fake_calls("cupti*") - before;
  };
  calls_with(0);  // what is looked up once
  const auto with_none = calls_with(0);
  EXPECT_EQ(calls_with(500), with_none);
}

TEST_F(OnASimulatedGpu, OtherDevicesAndTheCpuAskNothingOfIt) {
  const auto model = mlp();
  auto options = on_the_gpu();
  options.device = "cpu";
  RooflineProfiler(model, options).run(torch::rand({4, 16}));
  EXPECT_EQ(fake_calls("cupti*"), 0);
  EXPECT_EQ(fake_calls("cu*"), 0);
}

TEST_F(OnASimulatedGpu, AThousandRunsLeaveNothing) {
  torch::nn::ReLU model;
  const KernelsOfOps bound(kernels());
  auto options = on_the_gpu();
  options.warmup = 0;
  options.repeat = 1;
  RooflineProfiler prof(model, options);
  const auto input = torch::rand({4});
  for (int run = 0; run < 1000; ++run) {
    const Report report = prof.run(input);
    ASSERT_EQ(report.row("").time_ns, kRelu) << run << all_notes(report);
  }
  EXPECT_EQ(fake_calls("cuptiSubscribe"), fake_calls("cuptiUnsubscribe"));
  EXPECT_EQ(fake_calls("cuptiActivityPushExternalCorrelationId"), fake_calls("cuptiActivityPopExternalCorrelationId"));
}

}  // namespace
}  // namespace roofprof
