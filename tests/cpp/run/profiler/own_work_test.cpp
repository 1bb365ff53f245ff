// What users tell the profiler from C++: costs of their ops, regions, declared work.

#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/nn.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "quick.h"
#include "roofprof/fmt.h"
#include "roofprof/op_costs.h"
#include "roofprof/profiler.h"
#include "roofprof/scope.h"

namespace roofprof {
namespace {

at::Tensor shifted(const at::Tensor& x, std::int64_t by) { return x + by; }

using Batch = c10::Dict<std::string, at::Tensor>;
using TensorPair = std::tuple<at::Tensor, at::Tensor>;
at::Tensor gathered(const Batch& batch, const TensorPair& pair) { return batch.at("x") + std::get<0>(pair); }

TORCH_LIBRARY(own_test, library) {
  library.def("shifted(Tensor x, int by) -> Tensor", shifted);
  library.def("program(Tensor x, int by) -> Tensor", shifted);
  library.def("other(Tensor x, int by) -> Tensor", shifted);
  library.def("gathered(Dict(str, Tensor) batch, (Tensor, Tensor) pair) -> Tensor", gathered);
}

at::Tensor call(const char* op, const at::Tensor& x, std::int64_t by) {
  return torch::Dispatcher::singleton()
      .findSchemaOrThrow(op, "")
      .typed<at::Tensor(const at::Tensor&, std::int64_t)>()
      .call(x, by);
}

Report profile(const std::function<void()>& body) {
  torch::nn::Identity model;
  RooflineProfiler prof(model, {.ceilings = Ceilings{}});  // measuring takes seconds
  return prof.run(body);
}

std::int64_t calls_of(const Report& report, const std::string& op) {
  for (const auto& group : report.group(std::vector<std::string>{"op"})) {
    if (group.keys.front() == op) return group.calls;
  }
  return 0;
}

TEST(OwnOps, CountByTheirFunctionOncePerShape) {
  int evaluations = 0;
  OpCosts::add("own_test::shifted", [&](const OpCall& op, Work& work) {
    ++evaluations;
    work.add_macs(op.tensor("x").numel() * op.integer("by", 0), op.compute_dtype());
  });
  const auto x = torch::rand({2, 3});
  const Report report = profile([&] {
    for (int i = 0; i < 5; ++i) call("own_test::shifted", x, 4);
    call("own_test::shifted", x, 5);
  });
  EXPECT_EQ(evaluations, 2);
  EXPECT_EQ(report.total().macs, 6 * (5 * 4 + 5));
  EXPECT_EQ(report.total().bytes, 6 * 2 * 24);
  EXPECT_EQ(calls_of(report, "own_test::shifted"), 6);
  EXPECT_EQ(calls_of(report, "aten::add"), 0);
}

TEST(OwnOps, SeeTheTensorsOfDictsAndTuples) {
  OpCosts::add("own_test::gathered", [](const OpCall& op, Work& work) {
    for (const auto* name : {"batch", "pair"}) {
      for (const auto& tensor : op.tensors(name)) work.add_macs(tensor.numel(), op.compute_dtype());
    }
  });
  const auto op = torch::Dispatcher::singleton()
                      .findSchemaOrThrow("own_test::gathered", "")
                      .typed<at::Tensor(const Batch&, const TensorPair&)>();
  for (const std::int64_t width : {3, 5}) {
    Batch batch;
    batch.insert("x", torch::rand({2, width}));
    batch.insert("y", torch::rand({4, width}));
    const TensorPair pair{torch::rand({2, width}), torch::rand({width})};
    const Report report = profile([&] { op.call(batch, pair); });
    EXPECT_EQ(report.total().macs, (2 + 4 + 2 + 1) * width);
    EXPECT_EQ(report.total().bytes, 4 * (2 + 4 + 2 + 1 + 2) * width);  // all that goes in, and what comes out
  }
}

TEST(OwnOps, MayGetTheirCostAfterTheyWereSeen) {
  const auto x = torch::rand({2, 3});
  const auto run = [&] { call("own_test::other", x, 1); };
  EXPECT_EQ(calls_of(profile(run), "aten::add"), 1);
  OpCosts::add("own_test::other", [](const OpCall&, Work& work) { work.add_macs(11, DType::fp32); });
  EXPECT_EQ(profile(run).total().macs, 11);
  OpCosts::add("own_test::other", [](const OpCall&, Work&) { throw std::runtime_error("no idea"); });
  const Report failed = profile(run);
  EXPECT_EQ(failed.coverage().uncosted.at("own_test::other"), 1);
  EXPECT_TRUE(failed.total().incomplete);
  const auto& notes = failed.coverage().notes;
  EXPECT_NE(std::ranges::find(notes, "no cost for own_test::other: no idea", &Note::text), notes.end());
  OpCosts::remove("own_test::other");
  EXPECT_EQ(calls_of(profile(run), "aten::add"), 1);
}

TEST(Regions, HaveRowsBelowWhereTheyWereOpened) {
  const auto x = torch::rand({2, 3});
  const auto inner = [&] {
    ROOFPROF_SCOPE("inner");
    x.add(1);
  };
  const Report report = profile([&] {
    ROOFPROF_SCOPE("step");
    x.mul(2);
    inner();
    inner();
    RECORD_USER_SCOPE("torchs");
    x.sub(1);
  });
  EXPECT_EQ(report.row("(outside).step").flops, 4 * 6);
  EXPECT_EQ(report.row("(outside).step").self.flops, 6);
  EXPECT_EQ(report.row("(outside).step.inner").flops, 2 * 6);
  EXPECT_EQ(report.row("inner").calls, 2);
  EXPECT_EQ(report.row("torchs").flops, 6);
  EXPECT_EQ(report.row("torchs").type, "region");
  EXPECT_EQ(report.total().flops, 4 * 6);
}

TEST(Regions, DoNothingOutsideAProfileOrOnOtherThreads) {
  ROOFPROF_SCOPE("before");
  const Report report = profile([] {
    std::thread([] {
      ROOFPROF_SCOPE("elsewhere");
      torch::rand({2}).add(1);
    }).join();
  });
  EXPECT_THROW(report.row("before"), std::out_of_range);
  EXPECT_THROW(report.row("elsewhere"), std::out_of_range);
}

TEST(Bypass, IsNotLookedForAndTheReportSaysSo) {
  struct Loop : torch::nn::Module {
    torch::Tensor forward(const torch::Tensor& x) {
      auto y = torch::empty_like(x);
      for (std::int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 2 * x.data_ptr<float>()[i];
      return y;
    }
  } model;
  const Report report = RooflineProfiler(model, testing::quick()).run(torch::rand({2, 3}));
  EXPECT_EQ(report.total().flops, 0);
  const auto words = "work that bypasses it is not looked for in C++";
  EXPECT_NE(report.table({.width = 200}).find(words), std::string::npos) << report;
  report.write_json(::testing::TempDir() + "bypass.json");
  EXPECT_NE(Report::from_json(::testing::TempDir() + "bypass.json").table({.width = 200}).find(words),
            std::string::npos);
}

Work two_macs() {
  Work work;
  work.add_macs(2, DType::fp16);
  work.read_bytes = 100;
  return work;
}

TEST(DeclaredWorkTest, CountsInsteadOfWhatIsDispatchedInside) {
  const auto x = torch::rand({2, 3});
  const Report report = profile([&] {
    for (int i = 0; i < 3; ++i) {
      ROOFPROF_SCOPE("sparse");
      ROOFPROF_WORK("spconv", two_macs());
      ROOFPROF_WORK("spconv", two_macs());  // part of the first
      x.add(1);
    }
    x.add(1);
  });
  EXPECT_EQ(calls_of(report, "spconv"), 3);
  EXPECT_EQ(calls_of(report, "aten::add"), 1);
  EXPECT_EQ(report.row("sparse").macs, 6);
  EXPECT_EQ(report.row("sparse").operations_by_dtype[static_cast<std::size_t>(DType::fp16)], 12);
  EXPECT_EQ(report.row("sparse").bytes, 300);
  EXPECT_GT(report.row("sparse").op_time_ns.value_or(0), 0);
}

TEST(DeclaredWorkTest, RefusesNegativeCounts) {
  Work negative;
  negative.read_bytes = -1;
  EXPECT_THROW(DeclaredWork("x", negative), std::invalid_argument);
  Work causal;
  causal.causal_macs = 1;
  EXPECT_THROW(DeclaredWork("x", causal), std::invalid_argument);
}

}  // namespace
}  // namespace roofprof
