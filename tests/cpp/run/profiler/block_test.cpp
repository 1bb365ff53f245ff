// Blocks, steps, and marks in the user's code.

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

#include "quick.h"
#include "roofprof/profiler.h"
#include "roofprof/scope.h"

namespace roofprof {
namespace {

using testing::input;
using testing::kLinearMacs;
using testing::quick;

static_assert(!std::is_copy_constructible_v<Block> && !std::is_move_constructible_v<Block>);
static_assert(!std::is_copy_assignable_v<Block> && !std::is_move_assignable_v<Block>);
static_assert(std::is_nothrow_destructible_v<Block>);

std::string refusal_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "none";
}

TEST(Regions, ArePartsOfARunWhateverModulesRunInThem) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  const Report report = prof.run([&] {
    {
      ROOFPROF_SCOPE("prefill");
      for (int i = 0; i < 5; ++i) model->forward(input());
    }
    ROOFPROF_SCOPE("decode");
    for (int i = 0; i < 3; ++i) {
      ROOFPROF_SCOPE("step");
      model->forward(input());
    }
  });
  EXPECT_EQ(report.within("prefill").row("").macs, 5 * kLinearMacs);
  EXPECT_EQ(report.within("decode").total().macs, 3 * kLinearMacs);
  EXPECT_EQ(report.within("decode/step").total().macs, 3 * kLinearMacs);
  ASSERT_GE(report.regions().size(), 3);
  EXPECT_EQ(report.regions()[2].path, "decode/step");
  EXPECT_EQ(report.regions()[2].calls, 3);
  EXPECT_EQ(report.within("prefill").total().wall_ns, report.regions()[0].wall_ns);
  EXPECT_THROW(static_cast<void>(report.within("prefil")), std::out_of_range);
  const auto again = Report::from_json_text(report.to_json());
  EXPECT_EQ(again.within("decode").to_json(), report.within("decode").to_json());
  EXPECT_NE(report.table({.by = "scope"}).find("decode/step"), std::string::npos);
}

TEST(Blocks, TimeTheirSteps) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  int steps = 0;
  const Report report = prof.run_steps(4, [&] {
    model->forward(input());
    std::this_thread::sleep_for(std::chrono::milliseconds(++steps == 3 ? 20 : 1));
  });
  const auto& times = report.step_times_ns();
  ASSERT_EQ(times.size(), 4);
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_GE(times[i], i == 2 ? 20'000'000 : 1'000'000);
  const auto statistics = report.step_statistics().value();
  EXPECT_EQ(statistics.count, 4);
  const auto slowest = std::ranges::max_element(times);  // on a busy machine it may be any
  EXPECT_EQ(statistics.slowest_index, slowest - times.begin());
  EXPECT_EQ(statistics.slowest_ns, *slowest);
  EXPECT_LE(statistics.mean_ns * 4, static_cast<double>(*report.total().wall_ns));
}

TEST(Blocks, AreObservedOnceAsTheyAre) {
  torch::nn::Linear model(16, 8);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  RooflineProfiler prof(model, quick());
  const auto before = model->weight.detach().clone();
  {
    const Block block(prof);
    model->forward(input()).sum().backward();
    optimizer.step();
  }
  const Report report = prof.report();
  EXPECT_FALSE(torch::equal(model->weight, before));
  EXPECT_EQ(report.total().macs, 2 * kLinearMacs);
  EXPECT_EQ(report.row("").macs, 2 * kLinearMacs);
  EXPECT_GT(report.row("(optimizer)").flops, 0);
  EXPECT_GT(report.total().time()->count(), 0);
  EXPECT_EQ(report.ceilings(), *quick().ceilings);
  EXPECT_FALSE(report.steps().has_value());
  EXPECT_FALSE(report.partial());
  EXPECT_NE(report.table().find("a block: "), std::string::npos);
  // The same again, and anew.
  EXPECT_EQ(prof.report().to_json(), report.to_json());
  {
    const Block block(prof);
    model->forward(input());
  }
  EXPECT_EQ(prof.report().total().macs, kLinearMacs);
}

TEST(Blocks, EndWithAnExceptionAndAPartialReport) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  EXPECT_THROW(
      {
        Block block(prof);
        model->forward(input());
        block.step();
        throw 7;
      },
      int);
  EXPECT_TRUE(prof.report().partial());
  EXPECT_EQ(prof.report().total().macs, kLinearMacs);
  EXPECT_EQ(prof.report().steps(), 1);
  EXPECT_GT(prof.report().total().time_ns.value_or(0), 0);
  EXPECT_FALSE(at::hasGlobalCallbacks());
  EXPECT_EQ(prof.run(input()).total().macs, kLinearMacs);
}

TEST(Blocks, DoNotNest) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler prof(model, quick());
  RooflineProfiler other(model, quick());
  const std::string nested =
      "roofprof: this thread is already inside a profiler's block or run; profilers do not nest, so end that one first";
  {
    const Block block(prof);
    model->forward(input());
    EXPECT_EQ(refusal_of([&] { const Block inner(prof); }), nested);
    EXPECT_EQ(refusal_of([&] { const Block inner(other); }), nested);
    EXPECT_EQ(refusal_of([&] { prof.run(input()); }), nested);
    EXPECT_EQ(refusal_of([&] { static_cast<void>(prof.report()); }),
              "roofprof: a run or block of this profiler is still under way; ask for its report after it");
    std::thread([&] {
      EXPECT_EQ(refusal_of([&] { const Block elsewhere(prof); }),
                "roofprof: a run of this profiler is still under way; let it end first, or use a profiler for each "
                "thread");
    }).join();
    model->forward(input());
  }
  EXPECT_EQ(prof.report().total().macs, 2 * kLinearMacs);
  EXPECT_EQ(refusal_of([&] { static_cast<void>(other.report()); }),
            "roofprof: nothing was profiled yet; call run(...) or open a Block first");
}

// ---- marks

struct Part : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    ROOFPROF_SCOPE(*this);
    return norm(linear(x));
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(16, 8));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(8));
};

struct Declares : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    ROOFPROF_SCOPE(*this);
    Work work;
    work.add_macs(1000, DType::fp32);
    torch::Tensor y;
    {
      ROOFPROF_WORK("fused", work);
      y = part->forward(x);
    }
    return last(y);
  }
  std::shared_ptr<Part> part = register_module("part", std::make_shared<Part>());
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8, 2));
};

TEST(Marks, ModulesCalledInsideDeclaredWorkWereCalled) {
  Declares model;
  const Report report = count(model, input());
  EXPECT_TRUE(report.coverage().uncalled_modules.empty()) << report;
  EXPECT_EQ(report.row("part").calls, 1);
  EXPECT_EQ(report.row("part.linear").calls, 1);
  EXPECT_EQ(report.row("part.norm").calls, 1);
  EXPECT_EQ(report.row("part").macs, 0);
  EXPECT_EQ(report.row("").self.macs, 1000);
  EXPECT_EQ(report.row("last").macs, 4 * 8 * 2);
  EXPECT_EQ(report.total().macs, 1000 + 4 * 8 * 2);
}

}  // namespace
}  // namespace roofprof
