// Arguments that can be called: what of them is a closure, and what an argument of forward.

#include <gtest/gtest.h>
#include <torch/nn.h>

#include <functional>
#include <memory>

#include "quick.h"
#include "roofprof/profiler.h"

namespace roofprof {
namespace {

using testing::input;
using testing::kLinearMacs;
using testing::quick;

// A batch that makes its tensor.
struct Loader {
  torch::Tensor operator()() const { return torch::rand({4, 16}); }
};

struct TakesLoader : torch::nn::Module {
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(16, 8));
  torch::Tensor forward(const Loader& loader) { return fc(loader()); }
};

TEST(Callables, ThatForwardTakesAreItsArgument) {
  const auto model = std::make_shared<TakesLoader>();
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(Loader{});
  EXPECT_EQ(report.row("").calls, 1);
  EXPECT_EQ(report.total().macs, kLinearMacs);
  EXPECT_GT(report.run_times_ns().size(), 1U);  // repeated, as no closure is
  EXPECT_EQ(prof.count([&] { model->forward(Loader{}); }).total().macs, kLinearMacs);
}

TEST(Callables, AreClosuresWhereForwardTakesAnything) {
  torch::nn::Sequential model(torch::nn::Linear(16, 8));
  RooflineProfiler prof(model, quick());
  int calls = 0;
  const Report report = prof.run([&] {
    ++calls;
    model->forward(input());
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(report.total().macs, kLinearMacs);
}

// What run() would not compile: a lambda that forward takes as a std::function.
struct TakesFunction : torch::nn::Module {
  torch::Tensor forward(const std::function<torch::Tensor()>& make) { return make().relu(); }
};
using Function = std::function<torch::Tensor()>;
using Kept = std::shared_ptr<TakesFunction>;
static_assert(detail::callable<Kept, Loader> == detail::Callable::either);
static_assert(detail::callable<Kept, Function> == detail::Callable::argument);
static_assert(detail::callable<Kept, const Function&> == detail::Callable::argument);
static_assert(detail::callable<Kept, torch::Tensor> == detail::Callable::no);
static_assert(detail::callable<torch::nn::Linear, Loader> == detail::Callable::closure);

TEST(Callables, OfForwardsOwnTypeAreItsArgument) {
  const auto model = std::make_shared<TakesFunction>();
  const Report report = count(model, Function([] { return torch::rand({3}); }));
  EXPECT_EQ(report.row("").calls, 1);
}

}  // namespace
}  // namespace roofprof
