// What TorchScript models are given and what they leave.

#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/types.h>

#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "quick.h"
#include "roofprof/profiler.h"

namespace roofprof {
namespace {

using at::Tensor;
using c10::IValue;
using testing::input;
using testing::quick;

TEST(ScriptArguments, MayBeListsTuplesOptionalsAndKeywords) {
  torch::jit::Module model("Model");
  model.define(R"(
    def forward(self, many: List[Tensor], pair: Tuple[Tensor, int], maybe: Optional[Tensor], scale: float = 1.0):
        if maybe is not None:
            return maybe * scale
        return (many[0] + pair[0]) * scale
  )");
  RooflineProfiler prof(model, quick());
  const std::vector<Tensor> many = {input()};
  const auto pair = std::make_tuple(input(), std::int64_t{2});
  EXPECT_EQ(prof.run(many, pair, std::optional<Tensor>()).total().flops, 2 * 64);
  EXPECT_EQ(prof.run(many, pair, std::optional<Tensor>(input())).total().flops, 64);
  const std::unordered_map<std::string, IValue> keywords = {{"scale", 2.0}, {"maybe", input()}};
  EXPECT_EQ(prof.run(many, pair, keywords).total().flops, 64);
  // As torch::jit::Module::forward has it.
  const std::vector<IValue> all = {many, pair, IValue()};
  EXPECT_EQ(prof.run(all).total().flops, 2 * 64);
  EXPECT_EQ(prof.report().run_times_ns().size(), 3U);
  EXPECT_THROW(prof.run(many), c10::Error);  // an argument is missing
}

TEST(ScriptArguments, AreFoundAgainByEachCallAndLeftAsByOne) {
  const auto make = [] {
    torch::jit::Module model("Model");
    model.register_buffer("total", torch::zeros({4, 16}));
    model.register_attribute("count", c10::IntType::get(), 0);
    model.register_attribute("seen", c10::ListType::ofTensors(), c10::List<Tensor>());
    model.define(R"(
    def forward(self, batch: Dict[str, Tensor], nested: List[Dict[str, Tensor]]):
        x = batch.pop("x") + nested[0].pop("y")
        self.total.add_(x)
        self.count += 1
        if len(self.seen) < 1:
            self.seen.append(x)
        return x
  )");
    return model;
  };
  const auto run = [&](auto&& call) {
    auto model = make();
    c10::Dict<std::string, Tensor> batch;
    batch.insert("x", torch::ones({4, 16}));
    c10::Dict<std::string, Tensor> inner;
    inner.insert("y", torch::ones({4, 16}));
    c10::List<c10::Dict<std::string, Tensor>> nested;
    nested.push_back(inner);
    call(model, batch, nested);
    EXPECT_TRUE(batch.empty());
    EXPECT_TRUE(inner.empty());
    EXPECT_EQ(model.attr("count").toInt(), 1);
    EXPECT_EQ(model.attr("seen").toTensorVector().size(), 1U);
    EXPECT_TRUE(torch::equal(model.attr("total").toTensor(), torch::full({4, 16}, 2.0)));
  };
  run([](auto& model, auto& batch, auto& nested) { model.forward({batch, nested}); });
  run([](auto& model, auto& batch, auto& nested) {
    RooflineProfiler prof(model, quick());
    const Report report = prof.run(batch, nested);
    EXPECT_EQ(report.total().flops, 2 * 64);  // x, and the sum into the buffer
    EXPECT_EQ(report.run_times_ns().size(), 3U);
  });
}

TEST(ScriptModels, MayBeTemporaries) {
  const auto make = [] {
    torch::jit::Module model("Model");
    model.define("def forward(self, x):\n    return x + 1\n");
    return model;
  };
  RooflineProfiler prof(make(), quick());
  EXPECT_EQ(prof.run(input()).total().flops, 64);
}

}  // namespace
}  // namespace roofprof
