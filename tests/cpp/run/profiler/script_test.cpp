// The C++ API on TorchScript models.

#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/types.h>

#include "quick.h"
#include "roofprof/profiler.h"

namespace roofprof {
namespace {

using testing::quick_script;

TEST(ScriptProfiler, TakesTensorsAndDicts) {
  torch::jit::Module model("Model");
  model.register_parameter("weight", torch::rand({8, 16}), false);
  model.define(R"(
    def forward(self, batch: Dict[str, Tensor], scale: float) -> Tensor:
        return torch.linear(batch["x"], self.weight) * scale
  )");
  c10::Dict<std::string, at::Tensor> batch;
  batch.insert("x", torch::rand({4, 16}));
  RooflineProfiler prof(model, quick_script());
  const Report report = prof.run(batch, 2.0);
  EXPECT_EQ(report.total().macs, 4 * 16 * 8);
  EXPECT_EQ(report.row("").type, "Model");
  EXPECT_EQ(report.row("").params, 16 * 8);
}

}  // namespace
}  // namespace roofprof
