// What calls tell of themselves: shapes and memory of what goes in and comes out, a module that calls itself, modules
// that come while the model runs.

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "run/interpose/profiled.h"

namespace roofprof::testing {
namespace {

using namespace torch::nn;
using Shapes = std::vector<std::vector<std::int64_t>>;

Shapes shapes_of(const std::vector<torch::Tensor>& tensors) {
  Shapes shapes;
  for (const auto& tensor : tensors) shapes.push_back(tensor.sizes().vec());
  return shapes;
}

std::int64_t bytes_of(const std::vector<torch::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

void expect_shapes(const RooflineRow& row, const std::vector<torch::Tensor>& inputs,
                   const std::vector<torch::Tensor>& outputs) {
  EXPECT_EQ(row.input_shapes, shapes_of(inputs)) << row.path;
  EXPECT_EQ(row.output_shapes, shapes_of(outputs)) << row.path;
  EXPECT_EQ(row.output_bytes, bytes_of(outputs)) << row.path;
}

struct ReportedCalls : Module {
  Conv2d conv = register_module("conv", Conv2d(3, 4, 3));
  BatchNorm2d norm = register_module("norm", BatchNorm2d(4));
  Linear fc = register_module("fc", Linear(6, 5));
  LSTM lstm = register_module("lstm", LSTM(5, 7));
  ModuleList list = register_module("list", ModuleList());
  std::vector<torch::Tensor> seen;

  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x) {
    ROOFPROF_SCOPE(*this);
    const auto y = conv(x);
    const auto z = norm(y);
    const auto w = fc(z.flatten(1).slice(1, 0, 6));
    const auto [out, state] = lstm(w.unsqueeze(0));
    seen = {x, y, z, w, out, std::get<0>(state), std::get<1>(state)};
    return {out, w};
  }
};

TEST(Shapes, AreThoseOfTheLastCall) {
  const auto model = std::make_shared<ReportedCalls>();
  const auto x = torch::rand({2, 3, 8, 8});
  for (const bool closure : {false, true}) {
    RooflineProfiler prof(model, quick());
    const Report report = closure ? prof.run([&] { model->forward(x); }) : prof.run(x);
    const auto& seen = model->seen;
    expect_shapes(report.row("conv"), {x}, {seen[1]});
    expect_shapes(report.row("norm"), {seen[1]}, {seen[2]});
    EXPECT_EQ(report.row("fc").input_shapes, (Shapes{{2, 6}}));
    EXPECT_EQ(report.row("fc").output_bytes, 2 * 5 * 4);
    expect_shapes(report.row("lstm"), {seen[3].unsqueeze(0)}, {seen[4], seen[5], seen[6]});
    EXPECT_TRUE(report.row("list").input_shapes.empty());
    if (!closure) {
      expect_shapes(report.row(""), {x}, {seen[4], seen[3]});
    } else {  // nobody tells what a module of the user's takes there
      EXPECT_TRUE(report.row("").input_shapes.empty());
      EXPECT_EQ(report.row("").output_bytes, std::nullopt);
    }
  }
}

// ---- a module that calls itself

struct Recursive : Module {
  Linear fc = register_module("fc", Linear(8, 8));
  torch::Tensor forward(const torch::Tensor& x, int depth) {
    ROOFPROF_SCOPE(*this);
    const auto y = fc(x);
    return depth > 1 ? forward(y, depth - 1) : y;
  }
};

TEST(Recursion, CountsEachCallOfItself) {
  const auto model = std::make_shared<Recursive>();
  const auto x = torch::rand({2, 8});
  EXPECT_EQ(count(model, x, 5).row("").calls, 5);
  RooflineProfiler prof(model, quick());
  const Report report = prof.run([&] { model->forward(x, 60); });
  EXPECT_EQ(report.row("").calls, 60);
  EXPECT_EQ(report.row("fc").calls, 60);
  EXPECT_EQ(report.row("").macs, 60 * 2 * 8 * 8);
}

// ---- what marks take

struct Inner : Module {
  torch::Tensor forward(const torch::Tensor& x) { return x.relu(); }
};
TORCH_MODULE_IMPL(InnerHolder, Inner);

struct Marks : Module {
  InnerHolder holder = register_module("holder", InnerHolder());
  std::shared_ptr<Inner> pointer = register_module("pointer", std::make_shared<Inner>());
  torch::Tensor forward(const torch::Tensor& x) {
    ROOFPROF_SCOPE(this);
    {
      ROOFPROF_SCOPE(holder);
      static_cast<void>(x.tanh());
    }
    ROOFPROF_SCOPE(pointer);
    return x.tanh();
  }
};

TEST(Marks, TakePointersAndHolders) {
  const Report report = count(std::make_shared<Marks>(), torch::rand({3}));
  for (const auto* path : {"", "holder", "pointer"}) EXPECT_EQ(report.row(path).calls, 1) << path;
  EXPECT_GT(report.row("holder").self.flops, 0);
  EXPECT_EQ(report.row("holder").self.flops, report.row("pointer").self.flops);
  EXPECT_THROW({ ROOFPROF_SCOPE(InnerHolder(nullptr)); }, std::invalid_argument);
  EXPECT_THROW({ ROOFPROF_SCOPE(std::shared_ptr<Inner>()); }, std::invalid_argument);
}

// ---- modules that come late

struct Late : Module {
  Linear fc{nullptr};
  torch::Tensor forward(const torch::Tensor& x) {
    if (!fc) fc = register_module("fc", Linear(16, 32));
    return fc(x);
  }
};

TEST(Late, ModulesAreNamedInANote) {
  for (const bool closure : {false, true}) {
    const auto model = std::make_shared<Late>();
    const auto x = torch::rand({4, 16});
    RooflineProfiler prof(model, quick());
    const auto run = [&] { return closure ? prof.run([&] { model->forward(x); }) : prof.run(x); };
    const Report first = run();
    const auto added = [](const Report& report) {
      return std::ranges::find(report.coverage().notes, "modules-added", &Note::code);
    };
    ASSERT_NE(added(first), first.coverage().notes.end());
    EXPECT_EQ(added(first)->where, std::vector<std::string>{"fc"});
    EXPECT_EQ(first.total().macs, 4 * 16 * 32);
    const Report second = run();  // it is there from the start
    EXPECT_EQ(added(second), second.coverage().notes.end());
    EXPECT_EQ(second.row("fc").macs, 4 * 16 * 32);
    EXPECT_EQ(second.row("").params, 16 * 32 + 32);
  }
}

}  // namespace
}  // namespace roofprof::testing
