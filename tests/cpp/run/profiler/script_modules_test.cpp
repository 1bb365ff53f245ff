// TorchScript models from C++, module by module; they are written here in TorchScript itself.

#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/types.h>

#include <sstream>

#include "quick.h"
#include "roofprof/profiler.h"

namespace roofprof {
namespace {

using testing::input;
using testing::quick_script;
using torch::jit::Module;

// 16 to 16 features, for input()'s batch.
constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kLinear = kBatch * 16 * 16;

Module linear(const std::shared_ptr<torch::jit::CompilationUnit>& unit, const std::string& name = "Linear") {
  Module module("__torch__." + name, unit, true);
  module.register_parameter("weight", torch::rand({16, 16}), false);
  module.define(R"(
    def forward(self, x: Tensor) -> Tensor:
        return torch.linear(x, self.weight)
    def twice(self, x: Tensor) -> Tensor:
        return torch.linear(torch.linear(x, self.weight), self.weight)
  )");
  return module;
}

// Loops over `first`, calls another method of `second`, forks `third`.
Module caller() {
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  Module model("__torch__.Caller", unit, true);
  for (const auto* name : {"first", "second", "third"}) model.register_module(name, linear(unit));
  model.define(R"(
    def forward(self, x: Tensor, times: int = 3) -> Tensor:
        for i in range(times):
            x = self.first.forward(x)
        x = self.second.twice(x)
        return self.third.forward(x)
  )");
  return model;
}

// The names of torch.jit.fork and torch.jit.wait, which only Python's frontend knows by itself.
struct KnowsForks : torch::jit::NativeResolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction& method,
                                                         const torch::jit::SourceRange& place) override {
    if (name == "fork") return torch::jit::SpecialFormValue::create(c10::prim::fork);
    if (name == "wait") return std::make_shared<torch::jit::BuiltinFunction>(c10::aten::wait, std::nullopt);
    return NativeResolver::resolveValue(name, method, place);
  }
};

void expect_caller(const Report& report, std::int64_t times) {
  EXPECT_EQ(report.row("first").calls, times);
  EXPECT_EQ(report.row("first").self.macs, times * kLinear);
  EXPECT_EQ(report.row("second").calls, 0);  // another method is no call: what it does is its caller's
  EXPECT_EQ(report.row("").self.macs, 2 * kLinear);
  EXPECT_EQ(report.row("third").calls, 1);
  EXPECT_EQ(report.row("third").self.macs, kLinear);
  EXPECT_EQ(report.row("third").type, "Linear");
  EXPECT_EQ(report.row("third").params, 16 * 16);
  EXPECT_EQ(report.total().macs, (times + 3) * kLinear);
}

TEST(ScriptModules, KnowShapes) {
  auto model = caller();
  RooflineProfiler prof(model, quick_script());
  const auto report = prof.run(input());
  const std::vector<std::vector<std::int64_t>> shape = {{kBatch, 16}};
  for (const auto* path : {"", "first", "third"}) {
    EXPECT_EQ(report.row(path).input_shapes, shape) << path;
    EXPECT_EQ(report.row(path).output_shapes, shape) << path;
    EXPECT_EQ(report.row(path).output_bytes, kBatch * 16 * 4) << path;
  }
}

TEST(ScriptModules, LeavesTheDictAsOneCallDoes) {
  Module model("Model");
  model.define(R"(
    def forward(self, batch: Dict[str, Tensor], rows: List[Tensor], pair: Tuple[Tensor, Optional[Tensor]]) -> Tensor:
        batch[str(len(batch))] = batch["x"] * 2
        rows.append(pair[0])
        return batch["x"]
  )");
  c10::Dict<std::string, at::Tensor> batch;
  batch.insert("x", torch::rand({4, 16}));
  const c10::List<at::Tensor> rows;
  RooflineProfiler prof(model, quick_script());
  prof.run(batch, rows, std::make_tuple(torch::rand({2}), c10::optional<at::Tensor>()));
  EXPECT_EQ(batch.size(), 2);
  EXPECT_EQ(rows.size(), 1);
}

TEST(ScriptModules, CountsEachModulesCalls) {
  auto model = caller();
  RooflineProfiler prof(model, quick_script());
  for (int again = 0; again < 3; ++again) expect_caller(prof.run(input()), 3);
  const auto report = prof.run(input(), 5);
  expect_caller(report, 5);
  EXPECT_GT(report.row("first").self.time_ns.value_or(0), 0);
  EXPECT_TRUE(report.coverage().notes.empty());
}

TEST(ScriptModules, ProfilesWhatWasLoadedFromAFile) {
  std::stringstream file;
  caller().save(file);
  auto loaded = torch::jit::load(file);
  RooflineProfiler prof(loaded, quick_script());
  expect_caller(prof.run(input()), 3);
}

TEST(ScriptModules, ClosuresKnowTheWorkAndTheModelsCalls) {
  auto model = caller();
  RooflineProfiler prof(model, quick_script());
  const auto report = prof.run([&] {
    for (int step = 0; step < 2; ++step) model.forward({input()});
  });
  EXPECT_EQ(report.row("").calls, 2);
  EXPECT_EQ(report.row("first").calls, std::nullopt);
  EXPECT_EQ(report.row("first").self.macs, 2 * 3 * kLinear);
  EXPECT_EQ(report.row("third").self.macs, 2 * kLinear);
  EXPECT_EQ(report.row("").self.macs, 2 * 2 * kLinear);
}

TEST(ScriptModules, ForksBelongToTheirModules) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the threads of libtorch's pool hand tensors over in ways that the sanitizer does not see";
#endif
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  Module model("__torch__.Forks", unit, true);
  for (const auto* name : {"left", "right"}) model.register_module(name, linear(unit, name));
  model.define(R"(
    def forward(self, x: Tensor) -> Tensor:
        left = fork(self.left.forward, x)
        right = self.right.forward(x)
        return wait(left) + right
  )",
               std::make_shared<KnowsForks>());
  RooflineProfiler prof(model, quick_script());
  const auto report = prof.run(input());
  EXPECT_EQ(report.row("left").self.macs, kLinear);
  EXPECT_EQ(report.row("right").self.macs, kLinear);
  const auto block = prof.run([&] { model.forward({input()}); });
  EXPECT_EQ(block.row("left").self.macs, kLinear);
  EXPECT_EQ(block.row("right").self.macs, kLinear);
  EXPECT_EQ(block.total().macs, 2 * kLinear);
}

TEST(ScriptModules, LeavesAttributesAsOneCallDoes) {
  Module model("Model");
  model.register_attribute("calls", c10::IntType::get(), 0);
  model.register_buffer("seen", torch::zeros({1}));
  model.register_attribute("kept", c10::ListType::ofInts(), c10::List<std::int64_t>());
  model.define(R"(
    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.kept.append(self.calls)
        self.seen = self.seen + 1
        return x + self.calls
  )");
  RooflineProfiler prof(model, quick_script());
  prof.run(input());
  EXPECT_EQ(model.attr("calls").toInt(), 1);
  EXPECT_EQ(model.attr("kept").toIntVector(), std::vector<std::int64_t>{1});
  EXPECT_EQ(model.attr("seen").toTensor().item<float>(), 1);
}

TEST(ScriptModules, AModelThatRaisesGivesAPartialReport) {
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  Module model("__torch__.Raises", unit, true);
  model.register_module("linear", linear(unit));
  model.define(R"(
    def forward(self, x: Tensor) -> Tensor:
        x = self.linear.forward(x)
        assert x.size(0) == 0, "too many"
        return x
  )");
  RooflineProfiler prof(model, quick_script());
  EXPECT_ANY_THROW(prof.run(input()));
  EXPECT_EQ(prof.report().row("linear").self.macs, kLinear);
  EXPECT_TRUE(prof.report().partial());
  EXPECT_FALSE(at::hasGlobalCallbacks());
}

TEST(ScriptModules, FrozenModelsAreOneRowAndSaySo) {
  auto model = caller();
  model.eval();
  auto frozen = torch::jit::freeze_module(model, {}, true, false);
  RooflineProfiler prof(frozen, quick_script());
  const auto report = prof.run(input());
  EXPECT_EQ(report.total().macs, 6 * kLinear);
  ASSERT_EQ(report.coverage().notes.size(), 1U);
  EXPECT_EQ(report.coverage().notes[0].text.rfind("frozen TorchScript (the model)", 0), 0U);
}

}  // namespace
}  // namespace roofprof
