// What RooflineProfiler takes and what it leaves: models and arguments of every kind, and everything as one plain call
// leaves it.

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

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

TEST(Models, OnTheMetaDeviceAreCountedAndNotTimed) {
  const Tensor weight = torch::rand({8, 16}, torch::kMeta);
  WithForward model([&](const Tensor& x) { return torch::linear(x, weight); });
  model.register_parameter("weight", weight);
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(torch::rand({4, 16}, torch::kMeta));
  EXPECT_EQ(report.total().macs, kLinearMacs);
  EXPECT_FALSE(report.total().time_ns.has_value());
  EXPECT_TRUE(says(report, "not timed: tensors on the meta device hold no data"));
}

TEST(Options, ThatMakeNoSenseAreRefusedInASentence) {
  const auto refusal = [](ProfilerOptions options) -> std::string {
    try {
      RooflineProfiler prof(torch::nn::Identity(), std::move(options));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.warmup = -1}), "roofprof: warmup must be 0 or more, not -1");
  EXPECT_EQ(refusal({.repeat = -1}), "roofprof: repeat must be 0 or more, not -1");
  EXPECT_EQ(refusal({.depth = -2}), "roofprof: depth must be 0 or more, not -2");
  EXPECT_EQ(refusal({.warmup = 0, .repeat = 1, .depth = 0, .counters = Counters::off}), "");
}

TEST(Options, SayHowOftenTheModelIsCalledAndHowDeepTheTableGoes) {
  auto options = quick();
  options.warmup = 2;
  options.repeat = 4;
  options.depth = 0;
  torch::nn::Sequential inner(torch::nn::Linear(16, 8));
  int calls = 0;
  WithForward model([&](Tensor x) {
    ++calls;
    return inner->forward(x);
  });
  model.register_module("inner_one", inner.ptr());
  RooflineProfiler prof(model, options);
  const Report report = prof.run(input());
  EXPECT_EQ(calls, 1 + 2 + 4 * 2);  // counted, warmed up, and each timed one beside a bare one
  const std::string table = report.table();
  EXPECT_EQ(table.substr(0, table.find("most waste")).find("inner_one"), std::string::npos);
  EXPECT_NE(report.table({.depth = 1}).find("inner_one"), std::string::npos);
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

TEST(Arguments, MayBeNoneAndSoMayTheResult) {
  int calls = 0;
  WithForward model([&] { ++calls; });
  RooflineProfiler prof(model, quick());
  EXPECT_EQ(prof.run().total().flops, 0);
  EXPECT_EQ(calls, 1 + 1 + 3 * 2);
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

TEST(Arguments, ReferredToByTheirBaseAreNotCutShort) {
  struct Base {
    virtual ~Base() = default;
    virtual double factor() const { return 1; }
  };
  struct Derived : Base {
    double factor() const override { return 2; }
  };
  WithForward model([](const Tensor& x, Base& base) { return x.mul(base.factor() == 2 ? 1.0 : throw base); });
  Derived derived;
  Base& base = derived;
  RooflineProfiler prof(model, quick());
  EXPECT_EQ(prof.run(input(), base).run_times_ns().size(), 3U);
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

TEST(Left, FurtherCallsThatDoOtherWorkEndTheRepeats) {
  Tensor cache = torch::zeros({0, 16});
  WithForward model([&](const Tensor& x) {
    cache = torch::cat({cache, x});
    return cache.add(1);
  });
  RooflineProfiler prof(model, quick());
  const Report report = prof.run(input());
  EXPECT_EQ(report.total().flops, 64);
  EXPECT_EQ(report.run_times_ns().size(), 1U);
  EXPECT_TRUE(report.total().time_ns.has_value());
  EXPECT_TRUE(says(report, "timing stopped after 0 repeats: a further call did other work than the one before it"));
  EXPECT_TRUE(says(report, "the times are those of the first call"));
}

TEST(Closures, OfATrainingStepRunOnceAndCountItsBackward) {
  torch::nn::Linear model(16, 8);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  RooflineProfiler prof(model, quick());
  const auto weight = model->weight.detach().clone();
  const auto x = input();
  const Report report = prof.run([&] {
    optimizer.zero_grad();
    model->forward(x).sum().backward();
    optimizer.step();
  });
  const std::vector<std::string> by_phase = {"phase"};
  std::map<std::string, std::int64_t> macs;
  for (const auto& group : report.group(by_phase)) macs[group.keys.at(0)] = group.macs;
  EXPECT_EQ(macs.at("forward"), kLinearMacs);
  EXPECT_EQ(macs.at("backward"), kLinearMacs);  // the input needs no gradient: one product
  // d(sum)/dW is the sum of the inputs' rows, for each output alike: one step of SGD by hand.
  EXPECT_TRUE(torch::allclose(model->weight.detach(), weight - 0.1 * x.sum(0), 1e-5, 1e-6));
  EXPECT_TRUE(report.total().time_ns.has_value());
  EXPECT_EQ(report.run_times_ns().size(), 1U);
}

}  // namespace
}  // namespace roofprof
