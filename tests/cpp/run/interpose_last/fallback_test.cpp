// A program in which libtorch comes before the intercepting library, as it does by mistake: nothing is intercepted. The
// report says so first, and ops go to the modules whose parameters they take.

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "run/interpose/profiled.h"

namespace roofprof::testing {
namespace {

using namespace torch::nn;

TEST(Fallback, IsSaidAtTheTop) {
  Sequential model(Linear(4, 4), ReLU());
  const auto table = profiled(model, torch::rand({3, 4})).table();
  const auto said = table.find("ATTENTION");
  ASSERT_NE(said, std::string::npos);
  EXPECT_LT(said, table.find("params"));
  EXPECT_EQ(table.find("ATTENTION", said + 1), std::string::npos);
}

TEST(Fallback, OpsStandWithTheirParameters) {
  Linear linear(8, 16);
  BatchNorm1d norm(16);
  ReLU relu;
  LSTM lstm(16, 3);
  ModuleList model(linear, norm, relu, ModuleList(lstm));
  const auto x = torch::rand({5, 8}, torch::requires_grad());
  const Report report =
      profiled(model, [&] { std::get<0>(lstm(relu(norm(linear(x))).unsqueeze(1))).sum().backward(); });
  const Macs forward = {{"0", 5 * 8 * 16}, {"3.0", 5 * 4 * 3 * (16 + 3)}};
  EXPECT_EQ(macs_by_module(report, "forward"), forward);
  EXPECT_EQ(macs_by_module(report, "backward")["0"], 2 * 5 * 8 * 16);
  auto ops = ops_by_module(report);
  EXPECT_EQ(ops["1"]["aten::batch_norm"], 1);
  EXPECT_EQ(ops["1"]["aten::add_"], 1);
  EXPECT_TRUE(ops["(outside)"].contains("aten::relu"));  // takes no parameter
  for (const auto* path : {"0", "1", "3.0", "(outside)"}) EXPECT_TRUE(report.row(path).inferred) << path;
  EXPECT_EQ(report.row("0").calls, std::nullopt);
  EXPECT_TRUE(report.coverage().uncalled_modules.empty());
}

TEST(Fallback, AnOptimizersWorkIsNoModules) {
  Linear model(4, 4);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).weight_decay(0.1).momentum(0.9));
  model(torch::rand({3, 4})).sum().backward();
  const Report report = profiled(model, [&] { optimizer.step(); });
  EXPECT_FALSE(ops_by_module(report).contains(""));
  EXPECT_TRUE(ops_by_module(report).contains("(outside)"));
}

TEST(Fallback, ATensorOfSeveralModulesIsNobodys) {
  Linear a(4, 4), b(4, 4);
  b->weight = b->register_parameter("tied", a->weight);
  Sequential model(a, b);
  const Report report = profiled(model, torch::rand({3, 4}));
  EXPECT_EQ(report.total().macs, 96);
  // Each still has a bias of its own.
  EXPECT_EQ(macs_by_module(report), (Macs{{"0", 48}, {"1", 48}}));
}

TEST(Fallback, ModulesThatTellAreExact) {
  struct Telling : Module {
    Telling() { linear = register_module("linear", Linear(4, 4)); }
    torch::Tensor forward(const torch::Tensor& x) {
      ROOFPROF_SCOPE(*this);
      return linear(x).relu();
    }
    Linear linear = nullptr;
  };
  Sequential model{std::make_shared<Telling>()};
  const Report report = profiled(model, torch::rand({3, 4}));
  EXPECT_EQ(report.row("0").calls, 1);
  EXPECT_TRUE(ops_by_module(report).at("0").contains("aten::relu"));
  EXPECT_EQ(macs_by_module(report), (Macs{{"0.linear", 48}}));
}

}  // namespace
}  // namespace roofprof::testing
