// One call counted and nothing timed; arguments in braces; what is refused before anything runs.

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/script.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "quick.h"
#include "roofprof/profiler.h"
#include "roofprof/scope.h"

namespace roofprof {
namespace {

using testing::input;
using testing::kLinearMacs;
using testing::quick;

struct Counted : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    ++calls;
    return linear(x);
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(16, 8));
  int calls = 0;
};

torch::jit::Module scripted() {
  torch::jit::Module module("Scaled");
  module.define("def forward(self, x, by: int = 1):\n  return torch.mm(x, x.t()) * by\n");
  return module;
}

// As a report of Python's count.
void expect_counted(const Report& report) {
  EXPECT_TRUE(report.run_times_ns().empty());
  EXPECT_TRUE(report.ceilings().empty());
  EXPECT_FALSE(report.total().time().has_value());
  EXPECT_FALSE(report.partial());
  const bool goes_back = report.table().find("one call, forward and backward, counted only") != std::string::npos;
  EXPECT_TRUE(goes_back || report.table().find("one call, counted only") != std::string::npos);
}

TEST(Count, IsOneCallWithoutTimesAndRoofs) {
  Counted model;
  const Report counted = count(model, input());
  EXPECT_EQ(model.calls, 1);
  EXPECT_EQ(counted.total().macs, kLinearMacs);
  expect_counted(counted);
  RooflineProfiler prof(model, quick());
  EXPECT_EQ(prof.count(input()).total().macs, kLinearMacs);
  EXPECT_EQ(prof.report().total().macs, kLinearMacs);
  EXPECT_EQ(model.calls, 2);
  expect_counted(prof.report());
}

TEST(Count, TakesHandlesTemporariesClosuresAndTorchScript) {
  torch::nn::Linear linear(16, 8);
  EXPECT_EQ(count(linear, input()).total().macs, kLinearMacs);
  EXPECT_EQ(count(torch::nn::Linear(16, 8), input()).total().macs, kLinearMacs);
  EXPECT_EQ(count(std::make_shared<Counted>(), input()).total().macs, kLinearMacs);
  EXPECT_EQ(count(Counted(), input()).total().macs, kLinearMacs);
  EXPECT_EQ(count(scripted(), torch::rand({4, 16})).total().macs, 4 * 16 * 4);
  int runs = 0;
  const Report step = count(linear, [&] {
    ++runs;
    linear->forward(input()).sum().backward();
  });
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(step.total().macs, 2 * kLinearMacs);
  expect_counted(step);
}

TEST(Count, AllocatesNothingOnTheMetaDevice) {
  const auto meta = torch::TensorOptions().device(torch::kMeta);
  struct OnMeta : torch::nn::Module {
    torch::Tensor forward(const torch::Tensor& x) { return torch::linear(x, weight); }
    torch::Tensor weight = register_parameter("weight", torch::empty({8, 16}, torch::kMeta));
  };
  const Report report = count(OnMeta(), torch::empty({1 << 20, 1 << 10, 16}, meta));
  EXPECT_EQ(report.total().macs, (std::int64_t{1} << 30) * 16 * 8);
  expect_counted(report);
}

// As docs/cpp.md says: of input with three dimensions LibTorch adds the bias by an operator of its own.
TEST(Count, OfALinearLayerHasTheBytesOfWhatLibTorchRuns) {
  torch::nn::Linear model(16, 8);
  constexpr std::int64_t kProduct = 2560 + 512 + 1280;
  const Report deep = count(model, torch::rand({4, 10, 16}));
  EXPECT_EQ(deep.total().bytes, kProduct + 1280 + 1280 + 32);
  EXPECT_EQ(deep.by_operator().at("aten::add_").bytes, 1280 + 1280 + 32);
  const Report flat = count(model, torch::rand({40, 16}));
  EXPECT_EQ(flat.total().bytes, kProduct + 32);
  EXPECT_EQ(flat.total().flops, deep.total().flops);
  EXPECT_EQ(flat.total().macs, deep.total().macs);
}

// ---- arguments in braces

struct Listed : torch::nn::Module {
  torch::Tensor forward(const std::vector<torch::Tensor>& parts) { return torch::cat(parts).mm(weight); }
  torch::Tensor weight = register_parameter("weight", torch::rand({16, 8}));
};

TEST(Braces, AreOneArgumentOfTorchNnAndAllOfTorchScripts) {
  torch::nn::Linear linear(16, 8);
  RooflineProfiler prof(linear, quick());
  const auto x = input();
  EXPECT_EQ(prof.run({x}).total().macs, kLinearMacs);
  EXPECT_EQ(prof.count({x}).total().macs, kLinearMacs);
  EXPECT_EQ(count(linear, {x}).total().macs, kLinearMacs);
  EXPECT_THROW(prof.run({x, x}), std::invalid_argument);

  Listed listed;
  RooflineProfiler of_list(listed, quick());
  EXPECT_EQ(of_list.run({x, x, x}).total().macs, 3 * kLinearMacs);
  EXPECT_EQ(of_list.run({x}).total().macs, kLinearMacs);

  RooflineProfiler script(scripted(), testing::quick_script());
  EXPECT_EQ(script.run({x}).total().macs, 4 * 16 * 4);
  EXPECT_EQ(script.run({x, 3}).total().macs, 4 * 16 * 4);
  EXPECT_EQ(script.count({x, 3}).total().macs, 4 * 16 * 4);
  EXPECT_EQ(script.run(std::vector<torch::jit::IValue>{x, 3}).total().macs, 4 * 16 * 4);
  EXPECT_EQ(count(scripted(), {x}).total().macs, 4 * 16 * 4);
}

// ---- refused in one sentence, before anything runs

template <class Thrown, class Call>
void expect_refused(const std::string& sentence, Call call) {
  try {
    call();
    FAIL() << "not refused: " << sentence;
  } catch (const Thrown& error) {
    EXPECT_EQ(error.what(), sentence);
  }
}

TEST(Refused, OptionsThatMakeNoSense) {
  torch::nn::Linear model(16, 8);
  const auto make = [&](ProfilerOptions options) { return [&model, options] { RooflineProfiler(model, options); }; };
  for (const std::string device : {"tpu:9", "gpuu"}) {
    expect_refused<std::invalid_argument>(
        "roofprof: device must be one of torch's, such as \"cpu\" or \"cuda:0\", not \"" + device + "\"",
        make({.device = device}));
  }
  expect_refused<std::invalid_argument>("roofprof: repeat must be 0 or more, not -1", make({.repeat = -1}));
  Ceilings negative{"by hand", {}, {{"DRAM", -1, 0, {"given", "test", "", {}}}}};
  expect_refused<std::invalid_argument>(
      "roofprof: ceilings are not usable: bytes_per_second of DRAM is -1, not a positive number",
      make({.ceilings = negative}));
  Ceilings none{"by hand", {{DType::fp32, 0, {"given", "test", "", {}}}}, {}};
  expect_refused<std::invalid_argument>(
      "roofprof: ceilings are not usable: operations_per_second of fp32 is 0, not a positive number",
      make({.ceilings = none}));
  EXPECT_THROW(RooflineProfiler(model, {.ceilings = Ceilings::load("/no/such/file")}), std::runtime_error);
}

TEST(Refused, WhatWasMovedFrom) {
  torch::nn::Linear model(16, 8);
  RooflineProfiler from(model, quick());
  RooflineProfiler to(std::move(from));
  const std::string sentence = "roofprof: this profiler was moved from; use the one that it was moved to";
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  expect_refused<std::logic_error>(sentence, [&] { from.run(input()); });
  expect_refused<std::logic_error>(sentence, [&] { from.run([] {}); });
  expect_refused<std::logic_error>(sentence, [&] { from.count(input()); });
  expect_refused<std::logic_error>(sentence, [&] { from.run_steps(1, [] {}); });
  expect_refused<std::logic_error>(sentence, [&] { Block block(from); });
  expect_refused<std::logic_error>(sentence, [&] { static_cast<void>(from.report()); });
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(to.run(input()).total().macs, kLinearMacs);
}

// ---- roofs that whoever starts the program gives

struct Variable {
  Variable(const char* name, const std::string& value) : name(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  const char* name;
};

TEST(GivenRoofs, AreTakenInPlaceOfTheMachines) {
  torch::nn::Linear model(16, 8);
  const auto path = (std::filesystem::temp_directory_path() / "roofprof_given_roofs.json").string();
  const Ceilings roofs = *quick().ceilings;
  roofs.save(path);
  std::string progress;
  const auto measures = [&](std::string_view line) { progress += line; };
  {
    const Variable given("ROOFPROF_CEILINGS", path);
    RooflineProfiler prof(model, {.warmup = 0, .repeat = 1, .progress = measures});
    EXPECT_EQ(prof.run(input()).ceilings(), roofs);
    // An option of the program's own comes first.
    RooflineProfiler own(model, {.warmup = 0, .repeat = 1, .ceilings = Ceilings{}});
    EXPECT_TRUE(own.run(input()).ceilings().empty());
  }
  {
    const Variable given("ROOFPROF_CEILINGS", "off");
    RooflineProfiler prof(model, {.warmup = 0, .repeat = 1, .progress = measures});
    const Report report = prof.run(input());
    EXPECT_TRUE(report.ceilings().empty());
    EXPECT_TRUE(report.total().time().has_value());
  }
  std::filesystem::remove(path);
  const Variable given("ROOFPROF_CEILINGS", path);
  expect_refused<std::runtime_error>("ROOFPROF_CEILINGS must name a file of roofs or be \"off\": cannot read '" + path +
                                         "': No such file or directory",
                                     [&] { RooflineProfiler prof(model); });
  EXPECT_EQ(progress, "");
}

}  // namespace
}  // namespace roofprof
