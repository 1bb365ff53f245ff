// A program in which libtorch comes before the intercepting library, as it does by mistake: nothing is intercepted. The
// report says so first, and ops go to the modules whose parameters they take.

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "run/interpose/profiled.h"

namespace roofprof::testing {
namespace {

using namespace torch::nn;

TEST(Fallback, IsReportedAtTheTop) {
  Sequential model(Linear(4, 4), ReLU());
  const auto table = profiled(model, torch::rand({3, 4})).table();
  const auto first = table.find("ATTENTION");
  ASSERT_NE(first, std::string::npos);
  EXPECT_LT(first, table.find("params"));
  EXPECT_EQ(table.find("ATTENTION", first + 1), std::string::npos);
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

}  // namespace
}  // namespace roofprof::testing
