// A model that is profiled while other threads serve it: their calls, scopes and regions begin and end in the middle of
// passes that begin and end as well. Under the thread sanitizer this is what it looks at.

#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "quick.h"
#include "roofprof/profiler.h"
#include "roofprof/scope.h"

namespace roofprof {
namespace {

using at::Tensor;
using testing::input;
using testing::kLinearMacs;
using testing::quick;

constexpr int kRuns = 200;
constexpr int kServers = 3;

// Calls until `done`, on threads of their own.
class Servers {
 public:
  explicit Servers(const std::function<void()>& call) {
    for (int i = 0; i < kServers; ++i) {
      threads_.emplace_back([this, call] {
        while (!done_) {
          call();
          ++served_;
        }
      });
    }
    while (served_ < kServers) std::this_thread::yield();
  }
  ~Servers() {
    done_ = true;
    for (auto& thread : threads_) thread.join();
  }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::atomic<int> served_{0};
  std::vector<std::thread> threads_;
};

// Runs of new profilers and of one that stays; what they leave is a model that counts as if nothing had been.
template <class Model>
void profile_while_served(Model& model, const std::function<void()>& serve) {
  auto options = quick();
  options.warmup = 0;
  options.repeat = 1;
  {
    const Servers servers(serve);
    RooflineProfiler stays(model, options);
    for (int run = 0; run < kRuns / 2; ++run) {
      EXPECT_EQ(stays.run(input()).total().macs, kLinearMacs);
      RooflineProfiler goes(model, options);
      EXPECT_EQ(goes.run(input()).total().macs, kLinearMacs);
    }
  }
  EXPECT_FALSE(at::hasGlobalCallbacks());
  RooflineProfiler alone(model, options);
  EXPECT_EQ(alone.run(input()).total().macs, kLinearMacs);
}

struct Unmarked : torch::nn::Module {
  Tensor forward(const Tensor& x) { return linear(x).relu(); }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(16, 8));
};

struct Marked : torch::nn::Module {
  Tensor forward(const Tensor& x) {
    ROOFPROF_SCOPE(*this);
    Tensor y;
    {
      ROOFPROF_SCOPE("project");
      y = linear(x);
    }
    ROOFPROF_SCOPE("activate");
    return y.relu();
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(16, 8));
};

TEST(ServedModel, CanBeProfiledWithoutMarks) {
  Unmarked model;
  const auto x = input();
  profile_while_served(model, [&] { model.forward(x); });
}

TEST(ServedModel, CanBeProfiledWithMarks) {
  Marked model;
  const auto x = input();
  profile_while_served(model, [&] {
    ROOFPROF_SCOPE("request");
    model.forward(x);
  });
}

TEST(ServedModel, MayTrainMeanwhile) {
  Marked model;
  const auto x = input();
  profile_while_served(model, [&] { torch::autograd::grad({model.forward(x).sum()}, {model.linear->weight}); });
}

TEST(ServedModel, CanBeTorchScripts) {
  torch::jit::Module model("Model");
  model.register_parameter("weight", torch::rand({8, 16}), false);
  model.define(R"(
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(torch.linear(x, self.weight))
  )");
  const auto x = input();
  profile_while_served(model, [&] {
    ROOFPROF_SCOPE("request");
    model.forward({x});
  });
}

}  // namespace
}  // namespace roofprof
