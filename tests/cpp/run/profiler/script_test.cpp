// TorchScript models from C++: module by module, what they are given and leave, and operators that run without the
// dispatcher. They are written here in TorchScript itself.

#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/types.h>

#include <algorithm>
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

// Loops over `first`, calls another method of `second`.
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

TEST(ScriptModules, HaveTheirCallsAndShapes) {
  auto model = caller();
  RooflineProfiler prof(model, quick_script());
  for (int again = 0; again < 3; ++again) expect_caller(prof.run(input()), 3);  // as written, profiled, optimised
  const auto report = prof.run(input(), 5);
  expect_caller(report, 5);
  EXPECT_GT(report.row("first").self.time_ns.value_or(0), 0);
  EXPECT_TRUE(report.coverage().notes.empty());
  const std::vector<std::vector<std::int64_t>> shape = {{kBatch, 16}};
  for (const auto* path : {"", "first", "third"}) {
    EXPECT_EQ(report.row(path).input_shapes, shape) << path;
    EXPECT_EQ(report.row(path).output_shapes, shape) << path;
    EXPECT_EQ(report.row(path).output_bytes, kBatch * 16 * 4) << path;
  }
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
  EXPECT_EQ(report.row("").self.macs, 2 * 2 * kLinear);
  // A part of what runs has its own work, and nobody tells how often it was called.
  const Module part = model.attr("third").toModule();
  const auto of_part = RooflineProfiler(part, quick_script()).run([&] { model.forward({input()}); });
  EXPECT_EQ(of_part.row("").macs, kLinear);
  EXPECT_EQ(of_part.row("").calls, std::nullopt);
  EXPECT_EQ(of_part.row("(outside)").macs, 5 * kLinear);
  EXPECT_TRUE(of_part.coverage().uncalled_modules.empty());
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
  for (const auto& report : {prof.run(input()), prof.run([&] { model.forward({input()}); })}) {
    EXPECT_EQ(report.row("left").self.macs, kLinear);
    EXPECT_EQ(report.row("right").self.macs, kLinear);
    EXPECT_EQ(report.total().macs, 2 * kLinear);
  }
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

TEST(ScriptArguments, MayBeListsTuplesOptionalsAndKeywords) {
  Module model("Model");
  model.define(R"(
    def forward(self, many: List[Tensor], pair: Tuple[Tensor, int], maybe: Optional[Tensor], scale: float = 1.0):
        if maybe is not None:
            return maybe * scale
        return (many[0] + pair[0]) * scale
  )");
  RooflineProfiler prof(model, quick_script());
  const std::vector<Tensor> many = {input()};
  const auto pair = std::make_tuple(input(), std::int64_t{2});
  EXPECT_EQ(prof.run(many, pair, std::optional<Tensor>()).total().flops, 2 * 64);
  EXPECT_EQ(prof.run(many, pair, std::optional<Tensor>(input())).total().flops, 64);
  const std::unordered_map<std::string, IValue> keywords = {{"scale", 2.0}, {"maybe", input()}};
  EXPECT_EQ(prof.run(many, pair, keywords).total().flops, 64);
  // As torch::jit::Module::forward has it.
  const std::vector<IValue> all = {many, pair, IValue()};
  EXPECT_EQ(prof.run(all).total().flops, 2 * 64);
  EXPECT_THROW(prof.run(many), c10::Error);  // an argument is missing
}

TEST(ScriptArguments, AreFoundAgainByEachCallAndLeftAsByOne) {
  const auto run = [&](auto&& call) {
    Module model("Model");
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
    RooflineProfiler prof(model, testing::quick());
    const Report report = prof.run(batch, nested);
    EXPECT_EQ(report.total().flops, 2 * 64);  // x, and the sum into the buffer
    EXPECT_EQ(report.run_times_ns().size(), 3U);
  });
}

// ---- operators of TorchScript's own: a model that was optimised for inference has its convolutions in them

// On one image of 3 x 8 x 8: 8 x 8 x 8 outputs of 3 x 3 x 3 taps, the same of 4 x 3 x 3 taps (two groups), and a linear
// layer from the 8 x 4 x 4 values that the pooling leaves to 4.
constexpr std::int64_t kOutputs = 8 * 8 * 8;
constexpr std::int64_t kConvolutions = kOutputs * (27 + 36);
constexpr std::int64_t kMacs = kConvolutions + 128 * 4;
// Convolutions with bias, hardswish, the maximum of four, and the linear layer's bias.
constexpr std::int64_t kFlops = 2 * kMacs + kOutputs + kOutputs + 5 * kOutputs + 128 * 4 + 4;

Tensor image() { return torch::rand({1, 3, 8, 8}); }

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

class ScriptNodes : public ::testing::Test {
 protected:
  ScriptNodes() {
    auto written = eager();
    model = torch::jit::optimize_for_inference(written);
  }
  void SetUp() override {
    const auto graph = model.get_method("forward").graph()->toString();
    if (graph.find("prim::mkldnn_convolution") == std::string::npos) GTEST_SKIP() << "this torch has no oneDNN";
  }
  Module model;
};

TEST_F(ScriptNodes, CountAsTheModelThatWasOptimized) {
  auto plain = eager();
  for (const auto& report :
       {RooflineProfiler(plain, quick_script()).run(image()), RooflineProfiler(model, quick_script()).run(image())}) {
    EXPECT_EQ(report.total().macs, kMacs);
    EXPECT_EQ(report.total().flops, kFlops);
    EXPECT_FALSE(report.total().incomplete);
    EXPECT_TRUE(report.coverage().uncosted.empty());
    EXPECT_TRUE(report.coverage().unobserved.empty());
  }
  const auto groups = RooflineProfiler(model, quick_script()).run(image()).group({"op"});
  const auto found =
      std::ranges::find_if(groups, [](const auto& row) { return row.keys.front() == "prim::mkldnn_convolution"; });
  ASSERT_NE(found, groups.end());
  EXPECT_EQ(found->calls, 2);
  EXPECT_EQ(found->macs, kConvolutions);
  EXPECT_EQ(found->time_ns, std::nullopt);  // the clock does not see them one by one
}

TEST_F(ScriptNodes, AreNamedWhereTheModelRunsAsItIs) {
  RooflineProfiler prof(model, quick_script());
  const auto report = prof.run([&] {
    for (int step = 0; step < 3; ++step) model.forward({image()});
  });
  EXPECT_EQ(report.coverage().unobserved.at("prim::mkldnn_convolution"), 2 * 3);
  EXPECT_EQ(report.total().macs, 3 * 128 * 4);
  EXPECT_TRUE(report.row("").incomplete);
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
  EXPECT_EQ(prof.run(image(), true).row("inner").self.macs, 2 * kMacs);
  EXPECT_EQ(prof.run(image(), false).row("inner").self.macs, kMacs);
}

}  // namespace
}  // namespace roofprof
