// A profiled TorchScript module that is a part of the one that runs.

#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/types.h>

#include "quick.h"
#include "roofprof/profiler.h"

namespace roofprof {
namespace {

using testing::input;
using torch::jit::Module;

constexpr std::int64_t kScriptLinear = 4 * 16 * 16;

Module script_linear(const std::shared_ptr<torch::jit::CompilationUnit>& unit) {
  Module module("__torch__.Linear", unit, true);
  module.register_parameter("weight", torch::rand({16, 16}), false);
  module.define("def forward(self, x: Tensor) -> Tensor:\n    return torch.linear(x, self.weight)\n");
  return module;
}

// parent: a linear of its own, and `part`, which has two.
Module parent() {
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  Module part("__torch__.Part", unit, true);
  part.register_module("first", script_linear(unit));
  part.register_module("second", script_linear(unit));
  part.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    return self.second.forward(torch.relu(self.first.forward(x)))\n");
  Module middle("__torch__.Middle", unit, true);
  middle.register_module("part", part);
  middle.define("def forward(self, x: Tensor) -> Tensor:\n    return self.part.forward(x)\n");
  Module model("__torch__.Parent", unit, true);
  model.register_module("own", script_linear(unit));
  model.register_module("middle", middle);
  model.define("def forward(self, x: Tensor) -> Tensor:\n    return self.middle.forward(self.own.forward(x))\n");
  return model;
}

TEST(PartOfAScript, HasItsWorkWhereItsParentRuns) {
  auto model = parent();
  const auto part = model.attr("middle").toModule().attr("part").toModule();
  RooflineProfiler prof(part, {.ceilings = Ceilings{}});
  for (int run = 0; run < 3; ++run) {  // as written, profiled, optimised
    const Report report = prof.run([&] { model.forward({input()}); });
    EXPECT_EQ(report.row("").macs, 2 * kScriptLinear) << run;
    EXPECT_EQ(report.row("first").macs, kScriptLinear) << run;
    EXPECT_EQ(report.row("second").macs, kScriptLinear) << run;
    EXPECT_EQ(report.row("(outside)").macs, kScriptLinear) << run;
    EXPECT_EQ(report.row("").calls, std::nullopt) << "nobody tells how often";
    EXPECT_TRUE(report.coverage().uncalled_modules.empty());
  }
  // Called by itself its calls are known.
  auto alone = part;
  EXPECT_EQ(prof.run([&] { alone.forward({input()}); }).row("").calls, 1);
}

TEST(PartOfAScript, IsNotCalledByOthers) {
  auto other = parent();
  const auto part = parent().attr("middle").toModule();
  RooflineProfiler prof(part, {.ceilings = Ceilings{}});
  const Report report = prof.run([&] { other.forward({input()}); });
  EXPECT_EQ(report.row("").macs, 0);
  EXPECT_EQ(report.row("").calls, 0);
  EXPECT_EQ(report.row("(outside)").macs, 3 * kScriptLinear);
}

}  // namespace
}  // namespace roofprof
