// What RooflineProfiler takes and what it leaves: models and arguments of every kind, and everything as one plain call
// leaves it.

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "quick.h"
#include "roofprof/profiler.h"

namespace roofprof {
namespace {

using at::Tensor;
using testing::input;
using testing::kLinearMacs;
using testing::quick;
using testing::says;

// A module whose forward is given as a function.
template <class Forward>
struct WithForward : torch::nn::Module {
  explicit WithForward(Forward forward) : body(std::move(forward)) {}
  template <class... Args>
  auto forward(Args&&... args) {
    ++calls;
    return body(std::forward<Args>(args)...);
  }
  Forward body;
  int calls = 0;
};

// ---- models

static_assert(!std::is_constructible_v<RooflineProfiler<torch::nn::LinearImpl>, torch::nn::LinearImpl>,
              "a module given as a temporary would be gone when it is profiled");
static_assert(std::is_move_constructible_v<RooflineProfiler<torch::nn::Linear>>);
static_assert(!std::is_copy_constructible_v<RooflineProfiler<torch::nn::Linear>>);

TEST(Models, AreSharedOrReferredTo) {
  RooflineProfiler temporary_holder(torch::nn::Linear(16, 8), quick());
  EXPECT_EQ(temporary_holder.run(input()).total().macs, kLinearMacs);
  RooflineProfiler temporary_pointer(std::make_shared<torch::nn::LinearImpl>(16, 8), quick());
  EXPECT_EQ(temporary_pointer.run(input()).total().macs, kLinearMacs);
  torch::nn::LinearImpl module(16, 8);
  RooflineProfiler reference(module, quick());
  EXPECT_EQ(reference.run(input()).total().macs, kLinearMacs);
  const torch::nn::Linear constant(16, 8);
  RooflineProfiler of_constant(constant, quick());
  EXPECT_EQ(of_constant.run(input()).total().macs, kLinearMacs);
}

TEST(Models, MayBeAnyModuleOrSequential) {
  RooflineProfiler any(torch::nn::AnyModule(torch::nn::Linear(16, 8)), quick());
  EXPECT_EQ(any.run(input()).total().macs, kLinearMacs);
  EXPECT_EQ(any.report().row("").type, "Linear");
  // Its result is no tensor.
  RooflineProfiler recurrent(torch::nn::AnyModule(torch::nn::GRU(16, 8)), quick());
  EXPECT_EQ(recurrent.run(torch::rand({1, 4, 16}), torch::rand({1, 4, 8})).total().macs, 4 * 3 * 8 * (16 + 8));
  torch::nn::Sequential sequential(torch::nn::Linear(16, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
  RooflineProfiler of_sequential(sequential, quick());
  EXPECT_EQ(of_sequential.run(input()).total().macs, kLinearMacs + 4 * 8 * 2);
}

TEST(Models, ThatAreNotThereAreRefused) {
  EXPECT_THROW(RooflineProfiler(std::shared_ptr<torch::nn::LinearImpl>()), std::invalid_argument);
  EXPECT_THROW(RooflineProfiler(torch::nn::Linear(nullptr)), std::invalid_argument);
  EXPECT_THROW(RooflineProfiler{torch::nn::AnyModule()}, std::invalid_argument);
}

// ---- arguments

TEST(Arguments, GoOnAsTheyAreGiven) {
  WithForward model([](const Tensor& a, Tensor& b, Tensor&& c, std::optional<Tensor> d, const char* name, double by) {
    EXPECT_STREQ(name, "name");
    EXPECT_FALSE(d.has_value());
    const Tensor taken = std::move(c);
    return std::tuple(a.add(taken), b.mul(by));
  });
  RooflineProfiler prof(model, quick());
  const Tensor a = input();
  Tensor b = input();
  EXPECT_EQ(prof.run(a, b, input(), std::nullopt, "name", 2.0).total().flops, 64 + 64);
  EXPECT_EQ(prof.report().run_times_ns().size(), 3U);
  EXPECT_TRUE(b.defined());
}

TEST(Arguments, ThatCanOnlyBeMovedAreGivenOnce) {
  WithForward model([](std::unique_ptr<Tensor> x) { return x->add(1); });
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(std::make_unique<Tensor>(input()));
  EXPECT_EQ(model.calls, 1);
  EXPECT_EQ(report.total().flops, 64);
  EXPECT_EQ(report.run_times_ns().size(), 1U);
  EXPECT_TRUE(says(report, "timed in the first call alone: an argument can only be moved"));
  WithForward list_model([](std::vector<std::unique_ptr<Tensor>> list) { return list.at(0)->add(1); });
  RooflineProfiler list_prof(list_model, quick());
  std::vector<std::unique_ptr<Tensor>> list;
  list.push_back(std::make_unique<Tensor>(input()));
  EXPECT_EQ(list_prof.run(std::move(list)).total().flops, 64);
  // By reference, they stay.
  WithForward by_reference([](const std::unique_ptr<Tensor>& x) { return x->add(1); });
  RooflineProfiler reference_prof(by_reference, quick());
  const auto pointer = std::make_unique<Tensor>(input());
  EXPECT_EQ(reference_prof.run(pointer).run_times_ns().size(), 3U);
}

TEST(Arguments, AreFoundAgainByEachCall) {
  WithForward model([](std::map<std::string, Tensor>& batch, c10::Dict<std::string, Tensor> shared) {
    const Tensor x = batch.at("x") + shared.at("y");  // throws where it is gone
    batch.erase("x");
    EXPECT_EQ(shared.erase("y"), 1U);
    batch["seen"] = x;
  });
  std::map<std::string, Tensor> batch = {{"x", input()}};
  c10::Dict<std::string, Tensor> shared;
  shared.insert("y", input());
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(batch, shared);
  EXPECT_EQ(report.run_times_ns().size(), 3U);
  EXPECT_EQ(report.total().flops, 64);
  // As one plain call leaves them.
  EXPECT_EQ(batch.size(), 1U);
  EXPECT_TRUE(batch.contains("seen"));
  EXPECT_TRUE(shared.empty());
}

// ---- what is left

TEST(Left, ValuesGradientsAndRandomNumbersAreAsAfterOneCall) {
  const auto step = [](torch::nn::Linear layer, Tensor& total) {
    return [layer, total](Tensor x, std::vector<Tensor> more) mutable {
      x.mul_(2);
      more.at(0).add_(torch::rand({4}));
      total.add_(x.sum().detach());
      layer->forward(x).sum().backward();
      torch::NoGradGuard no_grad;
      layer->weight.mul_(0.5);
    };
  };
  const auto run = [&](auto&& call) {
    torch::manual_seed(3);
    torch::nn::Linear layer(16, 8);
    Tensor total = torch::zeros({});
    WithForward model(step(layer, total));
    model.register_module("layer", layer);
    model.register_buffer("total", total);
    Tensor x = torch::rand({4, 16});
    std::vector<Tensor> more = {torch::zeros({4})};
    layer->forward(x).sum().backward();  // a gradient that the calls add to
    call(model, x, more);
    return std::vector<Tensor>{x, more[0], total, layer->weight.grad(), layer->weight.detach(), torch::rand({3})};
  };
  const auto plain = run([](auto& model, Tensor& x, auto& more) { model.forward(x, more); });
  const auto profiled = run([](auto& model, Tensor& x, auto& more) {
    RooflineProfiler prof(model, quick());
    EXPECT_EQ(prof.run(x, more).run_times_ns().size(), 3U);
  });
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(torch::equal(plain[i], profiled[i])) << i;
}

TEST(Left, ModesAreAsTheyWere) {
  WithForward model([](const Tensor& x) {
    at::GradMode::set_enabled(false);
    return x.add(1);
  });
  {
    const torch::AutoGradMode grad(true);
    RooflineProfiler prof(model, quick());
    prof.run(input());
    EXPECT_FALSE(at::GradMode::is_enabled());  // as one plain call leaves it
  }
  const c10::InferenceMode inference;
  Tensor made_in_inference = torch::ones({4});
  WithForward writer([](Tensor x) { x.add_(1); });
  RooflineProfiler prof(writer, quick());
  prof.run(made_in_inference);
  EXPECT_TRUE(torch::equal(made_in_inference, torch::full({4}, 2.0)));
}

// ---- arguments that can be called: what of them is a closure, and what an argument of forward

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

// ---- end to end

TEST(RooflineProfiler, TakesAHolder) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(torch::rand({4, 16}));
  EXPECT_EQ(report.total().macs, kLinearMacs);
  EXPECT_EQ(report.total().params, 16 * 8 + 8);
  EXPECT_EQ(report.run_times_ns().size(), 3U);
  EXPECT_EQ(report.bare_times_ns().size(), 3U);
  ASSERT_TRUE(report.total().lower_bound_time_ns.has_value());
}

// tests/python/report/test_cpp_report.py runs this and compares the file with Python's report of the same model.
TEST(RooflineProfiler, WritesTheReportThatPythonComparesWithItsOwn) {
  torch::nn::Sequential model(torch::nn::Linear(16, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(torch::rand({4, 16}));
  EXPECT_EQ(report.total().macs, 4 * 16 * 8 + 4 * 8 * 2);
  if (const char* path = std::getenv("ROOFPROF_WRITE_REPORT")) report.write_json(path);
}

}  // namespace
}  // namespace roofprof
