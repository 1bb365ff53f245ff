// TorchScript's own operators run without the dispatcher: a model that was optimised for inference has its convolutions
// in them.

#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/types.h>

#include <algorithm>

#include "quick.h"
#include "roofprof/profiler.h"

namespace roofprof {
namespace {

using testing::quick_script;
using torch::jit::Module;

// On one image of 3 x 8 x 8: 8 x 8 x 8 outputs of 3 x 3 x 3 taps, the same of 4 x 3 x 3 taps (two groups), and a linear
// layer from the 8 x 4 x 4 values that the pooling leaves to 4.
constexpr std::int64_t kOutputs = 8 * 8 * 8;
constexpr std::int64_t kFirst = kOutputs * 27;
constexpr std::int64_t kSecond = kOutputs * 36;
constexpr std::int64_t kMacs = kFirst + kSecond + 128 * 4;
// Convolutions with bias, hardswish, the maximum of four, and the linear layer's bias.
constexpr std::int64_t kFlops = 2 * kMacs + kOutputs + kOutputs + 5 * kOutputs + 128 * 4 + 4;

at::Tensor image() { return torch::rand({1, 3, 8, 8}); }

Module eager() {
  Module model("Model");
  model.register_attribute("training", c10::BoolType::get(), true);  // freezing asks for it
  model.register_parameter("first", torch::rand({8, 3, 3, 3}), false);
  model.register_parameter("second", torch::rand({8, 4, 3, 3}), false);
  model.register_parameter("linear", torch::rand({4, 128}), false);
  model.register_parameter("bias", torch::rand({8}), false);
  model.register_parameter("shift", torch::rand({4}), false);
  model.define(R"(
    def forward(self, x):
        x = torch.conv2d(x, self.first, self.bias, [1, 1], [1, 1])
        x = torch.conv2d(x, self.second, self.bias, [1, 1], [1, 1], [1, 1], 2)
        x = torch.max_pool2d(torch.hardswish(x), [2, 2])
        return torch.linear(torch.flatten(x, 1), self.linear, self.shift)
  )");
  model.eval();
  return model;
}

Module optimized() {
  auto model = eager();
  return torch::jit::optimize_for_inference(model);
}

bool has_node(const Module& model, const char* name) {
  return model.get_method("forward").graph()->toString().find(name) != std::string::npos;
}

class ScriptNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_node(model, "prim::mkldnn_convolution")) GTEST_SKIP() << "this torch has no oneDNN";
  }
  Module model = optimized();
};

TEST_F(ScriptNodes, CountAsTheModelThatWasOptimized) {
  auto plain = eager();
  const auto expected = RooflineProfiler(plain, quick_script()).run(image());
  EXPECT_EQ(expected.total().macs, kMacs);
  EXPECT_EQ(expected.total().flops, kFlops);
  RooflineProfiler prof(model, quick_script());
  const auto report = prof.run(image());
  EXPECT_EQ(report.total().macs, kMacs);
  EXPECT_EQ(report.total().flops, kFlops);
  EXPECT_FALSE(report.total().incomplete);
  EXPECT_TRUE(report.coverage().uncosted.empty());
  EXPECT_TRUE(report.coverage().unobserved.empty());
  // Its constants, each bias once for each convolution.
  EXPECT_TRUE(testing::says(report, std::to_string(8 * 3 * 9 + 8 * 4 * 9 + 2 * 8 + 4 * 128 + 4) + " elements"));
  const std::vector<std::string> by_op = {"op"};
  const auto groups = report.group(by_op);
  const auto is_convolution = [](const auto& row) { return row.keys.front() == "prim::mkldnn_convolution"; };
  const auto found = std::ranges::find_if(groups, is_convolution);
  ASSERT_NE(found, groups.end());
  const auto& convolutions = *found;
  EXPECT_EQ(convolutions.calls, 2);
  EXPECT_EQ(convolutions.macs, kFirst + kSecond);
  EXPECT_EQ(convolutions.time_ns, std::nullopt);  // the clock does not see them one by one
}

TEST_F(ScriptNodes, AreNamedWhereTheModelRunsAsItIs) {
  RooflineProfiler prof(model, quick_script());
  const auto report = prof.run([&] {
    for (int step = 0; step < 3; ++step) model.forward({image()});
  });
  EXPECT_EQ(report.coverage().unobserved.at("prim::mkldnn_convolution"), 2 * 3);
  EXPECT_EQ(report.total().macs, 3 * 128 * 4);
  EXPECT_TRUE(report.total().incomplete);
  EXPECT_TRUE(report.row("").incomplete);
}

TEST_F(ScriptNodes, OfOtherModelsAreNamedToo) {
  torch::jit::Module caller("Caller");
  caller.define("def forward(self, x):\n    return x + 1\n");
  RooflineProfiler prof(caller, quick_script());
  const auto report = prof.run([&] { caller.forward({model.forward({image()})}); });
  EXPECT_EQ(report.coverage().unobserved.at("prim::mkldnn_convolution"), 2);
  EXPECT_FALSE(report.row("").incomplete);
  EXPECT_TRUE(report.row("(outside)").incomplete);
}

// It is the module's own, whoever calls it, and once for each call in the code.
TEST_F(ScriptNodes, BelongToTheModuleThatHasThem) {
  Module outer("Outer");
  outer.register_module("inner", model);
  outer.define(R"(
    def forward(self, x, again: bool):
        y = self.inner.forward(x)
        if again:
            y = y + self.inner.forward(x)
        return y
  )");
  RooflineProfiler prof(outer, quick_script());
  const auto counted = prof.run(image(), true);
  EXPECT_EQ(counted.row("inner").self.macs, 2 * kMacs);
  EXPECT_EQ(prof.run(image(), false).row("inner").self.macs, kMacs);
  const auto block = prof.run([&] { outer.forward({image(), true}); });
  EXPECT_TRUE(block.row("inner").incomplete);
  EXPECT_EQ(block.coverage().unobserved.at("prim::mkldnn_convolution"), 4);
}

TEST_F(ScriptNodes, ThatRaiseAreNotCounted) {
  RooflineProfiler prof(model, quick_script());
  EXPECT_ANY_THROW(prof.run(torch::rand({1, 5, 8, 8})));  // of five channels
  EXPECT_EQ(prof.report().total().macs, 0);
  EXPECT_TRUE(prof.report().coverage().uncosted.empty());
}

}  // namespace
}  // namespace roofprof
