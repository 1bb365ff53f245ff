// What is left of the public types when they are moved from, outlive others, or end in another order or on another
// thread than they began.

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/script.h>

#include <concepts>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "quick.h"
#include "roofprof/op_costs.h"
#include "roofprof/profiler.h"
#include "roofprof/scope.h"

namespace roofprof {
namespace {

using testing::input;
using testing::kLinearMacs;
using testing::quick;

// Of a temporary all is by value, of a constant one too.
template <class Of>
concept GivesValues = requires(Of&& report) {
  requires !std::is_reference_v<decltype(std::move(report).rows())>;
  requires !std::is_reference_v<decltype(std::move(report).parents())>;
  requires !std::is_reference_v<decltype(std::move(report).total())>;
  requires !std::is_reference_v<decltype(std::move(report).row(""))>;
  requires !std::is_reference_v<decltype(std::move(report).regions())>;
  requires !std::is_reference_v<decltype(std::move(report).kernels())>;
  requires !std::is_reference_v<decltype(std::move(report).memory_at_peak())>;
  requires !std::is_reference_v<decltype(std::move(report).ranks())>;
  requires !std::is_reference_v<decltype(std::move(report).missing_ranks())>;
  requires !std::is_reference_v<decltype(std::move(report).coverage())>;
  requires !std::is_reference_v<decltype(std::move(report).ceilings())>;
  requires !std::is_reference_v<decltype(std::move(report).environment())>;
  requires !std::is_reference_v<decltype(std::move(report).step_times_ns())>;
  requires !std::is_reference_v<decltype(std::move(report).run_times_ns())>;
  requires !std::is_reference_v<decltype(std::move(report).bare_times_ns())>;
};
static_assert(GivesValues<Report> && GivesValues<const Report>);
static_assert(std::is_lvalue_reference_v<decltype(std::declval<const Report&>().rows())>);
static_assert(!std::is_pointer_v<decltype(std::declval<Ceilings>().compute_for(DType::fp32))>);
static_assert(!std::is_pointer_v<decltype(std::declval<Ceilings>().memory_for(1))>);
static_assert(!std::is_pointer_v<decltype(std::declval<Ceilings>().memory_level("DRAM"))>);
static_assert(!std::is_reference_v<decltype(std::declval<Siblings>().mean())>);
static_assert(std::is_nothrow_move_constructible_v<Report> && std::is_nothrow_move_assignable_v<Report>);
static_assert(std::is_nothrow_move_constructible_v<RooflineProfiler<torch::nn::Linear>>);

// What every function of a report gives, as one text.
std::string all_of(const Report& report) {
  std::ostringstream out;
  out << report << report.brief() << report.markdown() << report.to_json() << report.to_csv() << report.prediction();
  for (const auto* by : {"kernel", "scope", "collective", "memory", "op, phase"}) out << report.table({.by = by});
  out << report.rows().size() << report.parents().size() << report.total().macs << report.row("").macs
      << report.siblings().size() << report.findings().size() << report.group({"op"}).size()
      << report.by_operator().size() << report.by_module().size() << report.by_module_and_operator().size()
      << report.by_phase().size() << report.regions().size() << report.language_model().size()
      << report.flops_utilization().has_value() << report.kernels().size() << report.memory_at_peak().size()
      << report.memory_timeline().size() << report.collectives().size() << report.ranks().size()
      << report.missing_ranks().size() << report.coverage().notes.size() << report.ceilings().device
      << report.environment().size() << report.partial() << report.steps().value_or(-1) << report.step_times().size()
      << report.step_statistics().has_value() << report.run_times().size() << report.bare_times().size()
      << report.predict(*quick().ceilings).total().macs;
  return out.str();
}

TEST(Lifetimes, AReportThatWasMovedFromIsTheSameReport) {
  torch::nn::Sequential model(torch::nn::Linear(16, 8), torch::nn::ReLU());
  Report report = RooflineProfiler(model, quick()).run(input());
  const auto expected = all_of(report);
  // NOLINTBEGIN(bugprone-use-after-move,performance-move-const-arg,clang-diagnostic-self-move,clang-diagnostic-self-assign-overloaded)
  Report moved = std::move(report);
  EXPECT_EQ(all_of(report), expected);
  EXPECT_EQ(all_of(moved), expected);
  Report other = count(model, input());
  other = std::move(moved);
  EXPECT_EQ(all_of(other), expected);
  EXPECT_EQ(all_of(moved), expected);
  auto& same = report;
  report = std::move(same);
  report = same;
  EXPECT_EQ(all_of(report), expected);
  std::vector<Report> several(3, report);
  several.push_back(std::move(report));
  several.erase(several.begin());
  std::swap(several.front(), other);
  EXPECT_EQ(all_of(several.back()), expected);
  EXPECT_EQ(all_of(report), expected);
  std::optional<Report> last = std::move(other);
  EXPECT_EQ(all_of(*last), expected);
  // NOLINTEND(bugprone-use-after-move,performance-move-const-arg,clang-diagnostic-self-move,clang-diagnostic-self-assign-overloaded)
  const auto make = [&]() -> const Report { return *last; };  // NOLINT(readability-const-return-type)
  std::int64_t macs = 0;
  for (const auto& row : make().rows()) macs += row.self.macs;
  EXPECT_EQ(macs, kLinearMacs);
}

TEST(Lifetimes, AProfilerSurvivesItsOwnMove) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  auto& same = prof;
  prof = std::move(same);
  EXPECT_EQ(prof.count(input()).total().macs, kLinearMacs);
}

// The profiler goes first, with the last handle of the model.
template <class Model>
void outlive(Model model) {
  auto prof = std::make_unique<RooflineProfiler<Model>>(std::move(model), quick());
  auto block = std::make_unique<Block>(*prof);
  static_cast<void>(input().add(1));
  prof.reset();
  static_cast<void>(input().add(1));
  block->step();
  block.reset();
  EXPECT_FALSE(at::hasGlobalCallbacks());
}

TEST(Lifetimes, ABlockKeepsTheModelOfItsProfiler) {
  outlive(torch::nn::Linear(16, 8));
  outlive(torch::nn::Sequential(torch::nn::Linear(16, 8), torch::nn::ReLU()));
  outlive(torch::nn::AnyModule(torch::nn::Linear(16, 8)));
  outlive(std::make_shared<torch::nn::LinearImpl>(16, 8));
  torch::jit::Module script("M");
  script.define("def forward(self, x):\n  return x + 1\n");
  outlive(std::move(script));
  // By reference, of a module that has owners.
  auto owned = std::make_shared<torch::nn::LinearImpl>(16, 8);
  std::optional<RooflineProfiler<torch::nn::LinearImpl>> prof(std::in_place, *owned, quick());
  std::optional<Block> block(std::in_place, *prof);
  owned.reset();
  prof.reset();
  block.reset();
}

TEST(Lifetimes, ABlockMayEndOnAnotherThread) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  auto block = std::make_unique<Block>(prof);
  model->forward(input());
  std::thread([&] { block.reset(); }).join();
  EXPECT_EQ(prof.report().row("").macs, kLinearMacs);
  EXPECT_FALSE(at::hasGlobalCallbacks());
  // This thread is free again, and so is another.
  EXPECT_EQ(prof.run(input()).total().macs, kLinearMacs);
  std::thread([&] { EXPECT_EQ(prof.run(input()).total().macs, kLinearMacs); }).join();
}

TEST(Lifetimes, MarksMayEndInAnyOrder) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  Work work;
  work.add_macs(10, DType::fp32);
  auto before = std::make_unique<Scope>("before");
  std::unique_ptr<Scope> behind;
  std::unique_ptr<DeclaredWork> declared_behind;
  const Report report = prof.run([&] {
    auto outer = std::make_unique<Scope>("outer");
    auto inner = std::make_unique<Scope>("inner");
    outer.reset();
    model->forward(input());  // outside of both
    inner.reset();
    before.reset();
    auto module = std::make_unique<torch::nn::LinearImpl>(2, 2);
    auto call = std::make_unique<Scope>(*module);
    module.reset();
    call.reset();
    auto first = std::make_unique<DeclaredWork>("first", work);
    auto second = std::make_unique<DeclaredWork>("second", work);
    first.reset();
    second.reset();
    declared_behind = std::make_unique<DeclaredWork>("behind", work);
    behind = std::make_unique<Scope>("behind");
  });
  behind.reset();
  declared_behind.reset();
  EXPECT_EQ(report.within("outer").total().macs, 0);
  EXPECT_EQ(report.row("").macs, kLinearMacs);
  EXPECT_EQ(prof.run(input()).total().macs, kLinearMacs);
}

// ---- what ends after main

// `body` is all that a process of its own does; its destructors are what is tested. A fork of this one would have this
// one's pools, without their threads.
void expect_clean_end(const std::function<void()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT((body(), std::exit(0)), ::testing::ExitedWithCode(0), "");  // NOLINT(concurrency-mt-unsafe)
}

TEST(Lifetimes, AllMayEndAfterMain) {
  expect_clean_end([] {
    static torch::nn::Linear model(16, 8);
    static RooflineProfiler prof(model, quick());
    static std::optional<Report> report;
    report = prof.run(input());
    static const Block block(prof);
    static const Scope region("region");
    static const Scope call(model);
    static Work work;
    work.add_macs(10, DType::fp32);
    static const DeclaredWork declared("declared", work);
  });
}

}  // namespace
}  // namespace roofprof
