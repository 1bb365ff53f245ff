// What a run gives back beside its report, profilers that do not name their model's type, and what is thrown.

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/script.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "quick.h"
#include "roofprof/op_costs.h"
#include "roofprof/profiler.h"
#include "roofprof/scope.h"

namespace roofprof {
namespace {

using at::Tensor;
using testing::input;
using testing::kLinearMacs;
using testing::quick;
using testing::quick_script;

TEST(Result, IsThatOfTheFirstCallAndCanBeTrained) {
  torch::nn::Sequential model(torch::nn::Linear(16, 8), torch::nn::BatchNorm1d(8), torch::nn::Dropout(0.5));
  RooflineProfiler prof(model, quick());
  const auto x = input();
  torch::manual_seed(3);
  auto [report, result] = prof.run_with_result(x);
  static_assert(std::is_same_v<decltype(result), Tensor>);
  EXPECT_EQ(report.total().macs, kLinearMacs);
  EXPECT_EQ(report.run_times_ns().size(), 3U);
  torch::manual_seed(3);
  const Tensor plain = model->forward(x);
  EXPECT_TRUE(torch::equal(result, plain));
  result.sum().backward();
  const auto of_result = model[0]->as<torch::nn::Linear>()->bias.grad().clone();
  model->zero_grad();
  plain.sum().backward();
  EXPECT_TRUE(torch::equal(of_result, model[0]->as<torch::nn::Linear>()->bias.grad()));
}

struct Many : torch::nn::Module {
  std::tuple<Tensor, std::string> forward(const Tensor& x, std::string word) { return {x + 1, std::move(word)}; }
};
struct Nothing : torch::nn::Module {
  void forward(Tensor& x) { x.add_(1); }
};
struct Held : torch::nn::Module {
  Tensor& forward(const Tensor& x) { return held = held + x; }
  Tensor held = torch::zeros({4, 16});
};

TEST(Result, MayBeATupleNothingAReferenceOrAnyValue) {
  const auto x = torch::ones({4, 16});
  Many many;
  const auto [report, result] = RooflineProfiler(many, quick()).run_with_result(x, "word");
  EXPECT_TRUE(torch::equal(std::get<0>(result), x + 1));
  EXPECT_EQ(std::get<1>(result), "word");
  Nothing nothing;
  auto changed = torch::zeros({4, 16});
  const Outcome<void> none = RooflineProfiler(nothing, quick()).run_with_result(changed);
  EXPECT_EQ(none.report.total().flops, 64);
  EXPECT_TRUE(torch::equal(changed, x));
  Held held;
  const Outcome<Tensor> by_value = RooflineProfiler(held, quick()).run_with_result(x);
  EXPECT_TRUE(torch::equal(by_value.result, x));
  torch::nn::Linear linear(16, 8);
  auto any = RooflineProfiler(torch::nn::AnyModule(linear), quick()).run_with_result(x);
  EXPECT_TRUE(torch::equal(any.result.get<Tensor>(), linear(x)));
}

TEST(Result, OfTorchScriptIsAnIValueAndOfAClosureItsOwn) {
  torch::jit::Module model("Model");
  model.define("def forward(self, x, y: float = 1.0):\n    return x * y, [x]\n");
  RooflineProfiler prof(model, quick_script());
  const auto x = input();
  const auto [report, result] = prof.run_with_result(x);
  static_assert(std::is_same_v<std::remove_const_t<decltype(result)>, c10::IValue>);
  EXPECT_TRUE(torch::equal(result.toTuple()->elements()[0].toTensor(), x));
  const auto doubled = prof.run_with_result({x, 2.0});
  EXPECT_TRUE(torch::equal(doubled.result.toTuple()->elements()[0].toTensor(), 2 * x));
  EXPECT_EQ(prof.run_with_result([&] { return std::string("done"); }).result, "done");
  torch::nn::Linear linear(16, 8);
  EXPECT_EQ(RooflineProfiler(linear, quick()).run_with_result([] { return 7; }).result, 7);
}

Report two_steps(RooflineProfiler<>& prof, const std::function<void()>& step) {
  {
    Block block(prof);
    step();
    block.step();
  }
  EXPECT_EQ(prof.report().steps(), 1);
  EXPECT_EQ(prof.count(step).total().macs, kLinearMacs);
  return prof.run_steps(2, step);
}

TEST(AnyProfiler, RunsClosuresStepsAndBlocksOfEveryModel) {
  const auto x = input();
  torch::nn::Linear linear(16, 8);
  RooflineProfiler of_linear(linear, quick());
  EXPECT_EQ(two_steps(of_linear, [&] { linear(x); }).total().macs, 2 * kLinearMacs);

  torch::nn::LinearImpl plain(16, 8);
  std::vector<RooflineProfiler<>> profs;
  profs.push_back(RooflineProfiler(plain, quick()));
  profs.push_back(RooflineProfiler(torch::nn::Linear(16, 8), quick()));  // kept, though its handle is gone
  profs.push_back(std::move(of_linear));
  for (auto& prof : profs) EXPECT_EQ(prof.run([&] { torch::linear(x, plain.weight); }).total().macs, kLinearMacs);
  EXPECT_THROW(of_linear.run(x), LogicError);  // NOLINT(bugprone-use-after-move): what is tested
  static_assert(!std::is_copy_constructible_v<RooflineProfiler<>>);
}

// Whether what is thrown can be caught as an Error, and as what it was before there were any, with one sentence.
template <class Standard>
::testing::AssertionResult throws(const std::function<void()>& call) {
  std::string words;
  try {
    call();
  } catch (const Error& error) {
    words = error.what();
  }
  if (words.empty()) return ::testing::AssertionFailure() << "no Error";
  try {
    call();
  } catch (const std::exception& error) {
    if (dynamic_cast<const Standard*>(&error) == nullptr) return ::testing::AssertionFailure() << "no such exception";
    if (error.what() != words) return ::testing::AssertionFailure() << error.what();
  }
  return ::testing::AssertionSuccess();
}

TEST(Errors, AreErrorsAndExceptionsOfTheStandardLibrary) {
  using std::invalid_argument;
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  EXPECT_TRUE(throws<std::logic_error>([&] { static_cast<void>(prof.report()); }));
  const Report report = prof.run(input());
  const auto with = [&](const TableOptions& options) { return [&] { static_cast<void>(report.table(options)); }; };
  EXPECT_TRUE(throws<invalid_argument>(with({.sort = "nonsense"})));
  EXPECT_TRUE(throws<invalid_argument>(with({.by = "nonsense"})));
  EXPECT_TRUE(throws<invalid_argument>(with({.limit = -1})));
  EXPECT_TRUE(throws<std::out_of_range>([&] { static_cast<void>(report.row("nonsense")); }));
  EXPECT_TRUE(throws<std::out_of_range>([&] { static_cast<void>(report.within("nonsense")); }));
  EXPECT_TRUE(throws<std::out_of_range>([&] { static_cast<void>(report.report_of_rank(1)); }));
  EXPECT_TRUE(throws<invalid_argument>([&] { static_cast<void>(report.group({"nonsense"})); }));
  EXPECT_TRUE(throws<invalid_argument>([&] { static_cast<void>(report.total().figure("nonsense")); }));
  EXPECT_TRUE(throws<invalid_argument>([&] { static_cast<void>(report.to_csv("nonsense")); }));
  EXPECT_TRUE(throws<invalid_argument>([&] { static_cast<void>(report.predict({})); }));
  EXPECT_TRUE(throws<std::runtime_error>([&] { report.write_json("/nowhere/report.json"); }));
  EXPECT_TRUE(throws<std::runtime_error>([] { static_cast<void>(Report::from_json("/nowhere/report.json")); }));
  for (const auto* text : {"", "{}", "[]", "SQLite format 3", R"({"traceEvents": []})"})
    EXPECT_TRUE(throws<std::runtime_error>([&] { static_cast<void>(Report::from_json_text(text)); })) << text;
  EXPECT_TRUE(throws<std::runtime_error>([] { static_cast<void>(Report::from_trace("/nowhere/trace.json")); }));
  EXPECT_TRUE(throws<invalid_argument>([] { static_cast<void>(merge_reports({})); }));
  EXPECT_TRUE(throws<invalid_argument>([] { static_cast<void>(Ceilings::measure("nonsense")); }));
  EXPECT_TRUE(throws<invalid_argument>([] { static_cast<void>(Ceilings::published("nonsense")); }));
  EXPECT_TRUE(throws<std::runtime_error>([] { static_cast<void>(Ceilings::load("/nowhere/roofs.json")); }));
  EXPECT_TRUE(throws<std::runtime_error>([] { Ceilings().save("/nowhere/roofs.json"); }));
  EXPECT_TRUE(throws<std::logic_error>([] { static_cast<void>(BandwidthCurve().spread_at(1)); }));
  EXPECT_TRUE(throws<std::logic_error>([] { static_cast<void>(Siblings().mean()); }));
  EXPECT_TRUE(throws<std::out_of_range>([] { static_cast<void>(OpCall().tensor("nonsense")); }));
  EXPECT_TRUE(throws<invalid_argument>([] { OpCosts::add("nonsense", {}); }));
  EXPECT_TRUE(throws<invalid_argument>([] { const Scope scope(std::string(1'001, 'x')); }));
  EXPECT_TRUE(throws<invalid_argument>([] { const DeclaredWork work("work", Work{.macs = -1}); }));
  EXPECT_TRUE(throws<invalid_argument>([&] { RooflineProfiler(model, {.repeat = -1}); }));
  EXPECT_TRUE(throws<invalid_argument>([&] { RooflineProfiler(model, {.device = "nonsense"}); }));
  EXPECT_TRUE(throws<invalid_argument>([&] { prof.run_steps(0, [] {}); }));
  EXPECT_TRUE(throws<std::logic_error>([&] {
    const Block block(prof);
    prof.run(input());
  }));
  EXPECT_THROW(prof.run(torch::rand({3, 3})), c10::Error);  // the model's own
}

TEST(Enumerators, AgreeWithTheirNamesInTablesAndKeys) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  const Report report = prof.run([&] { model(input()).sum().backward(); });
  for (std::size_t i = 0; i < kByNames.size(); ++i) {
    const auto by = static_cast<By>(i);
    EXPECT_EQ(report.table({.by = by}), report.table({.by = std::string(name_of(by))})) << name_of(by);
    EXPECT_EQ(report.to_csv(by), report.to_csv(name_of(by))) << name_of(by);
  }
  std::vector<Phase> phases;
  for (const auto& row : report.group({By::phase, By::op})) {
    EXPECT_EQ(name_of(row.phase.value()), row.keys[0]);
    phases.push_back(*row.phase);
  }
  EXPECT_NE(std::ranges::find(phases, Phase::backward), phases.end());
  EXPECT_EQ(to_string(report.total().bound).find(name_of(report.total().bound.kind)), 0U);
  EXPECT_EQ(version(), ROOFPROF_VERSION);
}

}  // namespace
}  // namespace roofprof
