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

}  // namespace
}  // namespace roofprof::testing
