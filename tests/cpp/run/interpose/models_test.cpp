// Whole torch::nn models: each module's MACs against closed forms.

#include <gtest/gtest.h>
#include <torch/optim.h>

#include <thread>

#include "run/interpose/profiled.h"

namespace roofprof::testing {
namespace {

using namespace torch::nn;

TEST(Models, SequentialsAreTheSumOfTheirChildren) {
  Sequential model(Linear(8, 16), ReLU(), Nested(Linear(16, 4), Nested(Linear(4, 2))));
  const Report report = profiled(model, torch::rand({3, 8}));
  EXPECT_EQ(macs_by_module(report), (Macs{{"0", 3 * 8 * 16}, {"2.0", 3 * 16 * 4}, {"2.1.0", 3 * 4 * 2}}));
  EXPECT_EQ(report.row("2").macs, 3 * 16 * 4 + 3 * 4 * 2);
  EXPECT_EQ(report.row("2").calls, std::nullopt);
  EXPECT_EQ(report.row("2.1.0").calls, 1);
  EXPECT_EQ(report.row("").type, "Sequential");
  EXPECT_EQ(report.row("").calls, 1);
  for (const auto& row : report.rows()) EXPECT_FALSE(row.inferred) << row.path;
  EXPECT_TRUE(report.coverage().uncalled_modules.empty());
}

TEST(Models, ContainersHaveNoCallsAndAnUncalledModuleIsNamed) {
  struct Net : Module {
    Net() {
      register_module("stack", Sequential(Linear(2, 2)));
      register_module("used", used);
    }
    Linear used{4, 2};
  };
  const auto model = std::make_shared<Net>();
  auto used = model->used;
  const auto x = torch::rand({3, 4});
  const Report report = profiled(model, [&] { used(x); });
  EXPECT_EQ(report.coverage().uncalled_modules, std::vector<std::string>{"stack.0"});
  EXPECT_EQ(report.row("used").calls, 1);
  EXPECT_EQ(report.row("stack").calls, std::nullopt);
  EXPECT_EQ(report.row("stack.0").calls, 0);
}

// Calls and MACs of an encoder layer's parts, for s positions of b examples, d features, f of the inner layer.
void add_encoder_layer(Macs& macs, const std::string& path, std::int64_t s, std::int64_t b, std::int64_t d,
                       std::int64_t f) {
  // Projections of Q, K, V and the output, QK^T and PV.
  macs[path + ".self_attn"] = 4 * s * b * d * d + 2 * b * s * s * d;
  macs[path + ".linear1"] = macs[path + ".linear2"] = s * b * d * f;
}

TEST(Models, ATransformersInnerModules) {
  constexpr std::int64_t s = 5, t = 7, b = 3, d = 8, f = 16;
  Transformer model(TransformerOptions(d, 2).num_encoder_layers(2).num_decoder_layers(1).dim_feedforward(f));
  const Report report = profiled(model, torch::rand({s, b, d}), torch::rand({t, b, d}));
  Macs expected;
  add_encoder_layer(expected, "encoder.layers.0", s, b, d, f);
  add_encoder_layer(expected, "encoder.layers.1", s, b, d, f);
  add_encoder_layer(expected, "decoder.layers.0", t, b, d, f);
  // Q of the target, K and V of the memory.
  expected["decoder.layers.0.multihead_attn"] = 2 * t * b * d * d + 2 * s * b * d * d + 2 * b * t * s * d;
  EXPECT_EQ(macs_by_module(report), expected);
  EXPECT_EQ(report.row("encoder.layers.1.norm1").calls, 1);
  EXPECT_EQ(report.row("decoder.norm").calls, 1);
  EXPECT_EQ(report.row("encoder.layers").calls, std::nullopt);
  // Used by its parent as a pair of parameters, never called: as in Python.
  EXPECT_EQ(report.row("encoder.layers.0.self_attn.out_proj").macs, 0);
  for (const auto& row : report.rows()) EXPECT_FALSE(row.inferred) << row.path;
}

TEST(Models, ModuleListsAndAnyModules) {
  struct Net : Module {
    Net() {
      layers->push_back(Linear(4, 4));
      layers->push_back(Linear(4, 4));
      register_module("layers", layers);
      register_module("head", head.ptr());
    }
    torch::Tensor forward(torch::Tensor x) {
      for (const auto& layer : *layers) x = layer->as<Linear>()->forward(x);
      return head.forward(x);
    }
    ModuleList layers;
    AnyModule head{Linear(4, 2)};
  };
  const auto model = std::make_shared<Net>();
  const Report report = profiled(model, torch::rand({3, 4}));
  EXPECT_EQ(macs_by_module(report), (Macs{{"layers.0", 48}, {"layers.1", 48}, {"head", 24}}));
  EXPECT_FALSE(report.row("").inferred);  // run() called it itself
}

TEST(Models, ASharedModuleStandsBelowTheParentThatRuns) {
  struct Half : Module {
    explicit Half(const Linear& linear) : linear(register_module("linear", linear)) {}
    torch::Tensor forward(const torch::Tensor& x) {
      ROOFPROF_SCOPE(*this);
      return linear(x);
    }
    Linear linear;
  };
  struct Net : Module {
    Net() : shared(4, 4) {
      first = register_module("first", std::make_shared<Half>(shared));
      second = register_module("second", std::make_shared<Half>(shared));
    }
    torch::Tensor forward(const torch::Tensor& x) { return second->forward(second->forward(first->forward(x))); }
    Linear shared;
    std::shared_ptr<Half> first, second;
  };
  const auto model = std::make_shared<Net>();
  const Report report = profiled(model, torch::rand({3, 4}));
  EXPECT_EQ(macs_by_module(report), (Macs{{"first.linear", 48}, {"second.linear", 96}}));
  EXPECT_EQ(report.row("first").calls, 1);
  EXPECT_EQ(report.row("second").calls, 2);
  EXPECT_EQ(report.row("").params, 4 * 4 + 4);
  EXPECT_EQ(report.row("second").params, 4 * 4 + 4);
}

TEST(Models, ATrainingStepByModuleAndPhase) {
  Sequential model(Linear(16, 32), ReLU(), Linear(32, 8));
  const auto x = torch::rand({4, 16}, torch::requires_grad());
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const Report report = profiled(model, [&] {
    model->forward(x).sum().backward();
    optimizer.step();
  });
  const Macs forward = {{"0", 4 * 16 * 32}, {"2", 4 * 32 * 8}};
  const Macs backward = {{"0", 2 * 4 * 16 * 32}, {"2", 2 * 4 * 32 * 8}};
  EXPECT_EQ(macs_by_module(report, "forward"), forward);
  EXPECT_EQ(macs_by_module(report, "backward"), backward);
  // Four parameters, an addition each; the sum is nobody's.
  const auto ops = ops_by_module(report);
  EXPECT_EQ(ops.at("(optimizer)"), (std::map<std::string, std::int64_t>{{"aten::add_", 4}}));
  EXPECT_TRUE(ops.at("(outside)").contains("aten::sum"));
  EXPECT_FALSE(report.row("(outside)").inferred);
}

TEST(Models, AStepsClosureIsNoOptimizersWork) {
  Linear model(4, 2);
  torch::optim::LBFGS optimizer(model->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(1));
  const auto x = torch::rand({3, 4});
  const Report report = profiled(model, [&] {
    optimizer.step([&] {
      optimizer.zero_grad();
      auto loss = model(x).sum();
      loss.backward();
      return loss;
    });
  });
  EXPECT_EQ(macs_by_module(report, "forward")[""], 3 * 4 * 2);
  EXPECT_TRUE(ops_by_module(report).contains("(optimizer)"));
  EXPECT_EQ(macs_by_module(report, "optimizer").count(""), 0U);
}

TEST(Models, AnExceptionInAModuleLeavesNothingOpen) {
  Sequential model(Linear(16, 8), Linear(99, 1));
  Linear other(8, 2);
  ModuleList both(model, other);
  const auto x = torch::rand({4, 16});
  const Report report = profiled(both, [&] {
    EXPECT_ANY_THROW(model->forward(x));
    torch::relu(x);
    other(torch::ones({4, 8}));
  });
  EXPECT_EQ(macs_by_module(report), (Macs{{"0.0", 4 * 16 * 8}, {"1", 4 * 8 * 2}}));
  EXPECT_TRUE(ops_by_module(report)["(outside)"].contains("aten::relu"));
}

TEST(Models, ModulesCalledOnOtherThreadsCount) {
  Sequential model(Linear(16, 8), BatchNorm1d(8));
  const auto x = torch::rand({4, 16});
  const Report report = profiled(model, [&] {
    std::thread thread([&] { model->forward(x); });
    thread.join();
    model->forward(x);
  });
  EXPECT_EQ(report.row("0").calls, 2);
  EXPECT_EQ(report.row("1").calls, 2);
  EXPECT_EQ(macs_by_module(report), (Macs{{"0", 2 * 4 * 16 * 8}}));
}

TEST(Models, AnotherModelsCallsAreOutside) {
  Linear model(4, 4);
  Linear other(4, 4);
  const auto x = torch::rand({3, 4});
  const Report report = profiled(model, [&] { other(model(x)); });
  EXPECT_EQ(macs_by_module(report), (Macs{{"", 48}, {"(outside)", 48}}));
}

TEST(Models, LstmIsItsCellsUnrolled) {
  constexpr std::int64_t steps = 5, batch = 2, in = 4, hidden = 3;
  LSTM model(LSTMOptions(in, hidden).num_layers(2));
  Sequential around(model);
  const auto x = torch::rand({steps, batch, in});
  const Report report = profiled(around, [&] { model->forward(x); });
  // Four gates from the input and the state before, in two layers.
  EXPECT_EQ(macs_by_module(report), (Macs{{"0", steps * batch * 4 * hidden * ((in + hidden) + (hidden + hidden))}}));
  EXPECT_EQ(report.row("0").calls, 1);
}

}  // namespace
}  // namespace roofprof::testing
