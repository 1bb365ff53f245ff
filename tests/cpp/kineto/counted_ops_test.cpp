// Which of a trace's ops count, and whose a launch is.

#include "kineto/counted_ops.h"

#include <gtest/gtest.h>

#include "kineto/trace_builder.h"

namespace roofprof::kineto {
namespace {

using testing::FakeCosts;
using testing::TraceText;

// By event, in the order of their begin: "name < owner's name", where it has one.
std::vector<std::string> owners_of(const TraceText& text, std::int64_t* asked = nullptr) {
  auto trace = text.trace();
  const auto tree = host_tree(trace.host);
  FakeCosts costs;
  const auto counted = counted_ops(trace, tree, costs);
  if (asked != nullptr) *asked = costs.asked;
  std::vector<std::string> result;
  for (std::size_t i = 0; i < trace.host.size(); ++i) {
    auto line = trace.names[trace.host[i].name];
    const auto owner = counted.owners[i];
    if (owner == static_cast<std::int32_t>(i)) {
      line += " counts";
    } else if (owner != kNone) {
      line += " < " + trace.names[trace.host[at(owner)].name];
    }
    result.push_back(line);
  }
  return result;
}

using Lines = std::vector<std::string>;

TEST(CountedOps, TheOutermostWithACostCounts) {
  EXPECT_EQ(owners_of(TraceText()
                          .op("aten::linear", 0, 50)
                          .op("aten::t", 1, 3)
                          .op("aten::addmm", 10, 30)
                          .op("aten::mm", 12, 10)
                          .launch(1, 15)
                          .op("aten::add", 60, 10)),
            (Lines{"aten::linear", "aten::t counts", "aten::addmm counts", "aten::mm < aten::addmm",
                   "cudaLaunchKernel < aten::addmm", "aten::add counts"}));
}

TEST(CountedOps, EqualCallsAreCostedOnce) {
  std::int64_t asked = 0;
  owners_of(TraceText().op("aten::mm", 0, 5).op("aten::mm", 10, 5).op("aten::mm", 20, 5).op("aten::add", 30, 5),
            &asked);
  EXPECT_EQ(asked, 2);
}

// Autocast and subclasses dispatch an op again; what counts is the one that does the work.
TEST(CountedOps, AnOpOfTheSameNameInsideCounts) {
  EXPECT_EQ(owners_of(TraceText().op("aten::mm", 0, 50).op("aten::add", 5, 5).op("aten::mm", 20, 20).launch(1, 25)),
            (Lines{"aten::mm", "aten::add counts", "aten::mm counts", "cudaLaunchKernel < aten::mm"}));
}

TEST(CountedOps, OneWithoutACostIsListedOnce) {
  EXPECT_EQ(owners_of(TraceText().op("vllm::outer", 0, 50).op("vllm::inner", 5, 30).launch(1, 10)),
            (Lines{"vllm::outer", "vllm::inner counts", "cudaLaunchKernel < vllm::inner"}));
}

TEST(CountedOps, OneWhoseWorkIsCountedInsideIsNotListed) {
  EXPECT_EQ(owners_of(TraceText().op("vllm::linear", 0, 50).op("aten::mm", 5, 30)),
            (Lines{"vllm::linear", "aten::mm counts"}));
}

// The launch of an op without a cost is its own, also where a view stands in it.
TEST(CountedOps, AViewExplainsNothing) {
  EXPECT_EQ(owners_of(TraceText().op("vllm::norm", 0, 50).op("aten::view", 5, 3).launch(1, 20)),
            (Lines{"vllm::norm counts", "aten::view counts", "cudaLaunchKernel < vllm::norm"}));
}

// Kernels of Triton's have the kernel's name; functions of autograd's that of the class.
TEST(CountedOps, WhatIsNoOperatorIsListedWhereItLaunches) {
  EXPECT_EQ(owners_of(TraceText()
                          .op("triton_poi_fused_0", 0, 10)
                          .launch(1, 2)
                          .kernel("triton_poi_fused_0", 1, 5, 2)
                          .op("FlashFunction", 20, 10)
                          .op("aten::mm", 22, 3)
                          .launch(2, 23)
                          .kernel("gemm", 2, 30, 2)
                          .op("NothingBackward", 40, 10)),
            (Lines{"triton_poi_fused_0 counts", "cudaLaunchKernel < triton_poi_fused_0", "FlashFunction",
                   "aten::mm counts", "cudaLaunchKernel < aten::mm", "NothingBackward"}));
  // Calls of the runtime that nothing ran for (waits, events) are no launches.
  EXPECT_EQ(owners_of(TraceText().op("SyncFunction", 0, 10).launch(1, 2)), (Lines{"SyncFunction", "cudaLaunchKernel"}));
}

TEST(CountedOps, AGeneratedKernelsNameListsItsOps) {
  FakeCosts known;
  EXPECT_EQ(fused_ops("triton_poi_fused__native_batch_norm_legit_add_max_pool2d_with_indices_relu_3", known),
            (Lines{"aten::_native_batch_norm_legit", "aten::add", "aten::max_pool2d_with_indices", "aten::relu"}));
  EXPECT_EQ(fused_ops("triton_red_fused_addmm_12", known), Lines{"aten::addmm"}) << "not add and mm";
  EXPECT_EQ(fused_ops("triton_per_fused_my_own_relu_0", known), Lines{"my_own_relu"});
  EXPECT_EQ(fused_ops("sm90_xmma_fprop", known), Lines{});
}

TEST(CountedOps, AGeneratedKernelsBucketHasItsOpsAndItsFile) {
  const auto observed = observed_of(
      TraceText()
          .op("triton_poi_fused_add_relu_0", 0, 10, R"("kernel_backend": "triton", "kernel_file": "/tmp/cab.py")")
          .launch(1, 2)
          .kernel("triton_poi_fused_add_relu_0", 1, 5, 2));
  ASSERT_EQ(observed.counting.ops.size(), 1);
  EXPECT_EQ(observed.counting.ops[0].fused, (Lines{"aten::add", "aten::relu"}));
  EXPECT_EQ(observed.counting.ops[0].code, "/tmp/cab.py");
  EXPECT_TRUE(testing::note_of(observed.notes, "compiled-kernels").starts_with("1 generated kernel of compiled code"));
}

// Checkpointing stops its recomputation inside the last op that saves something, before that computes.
TEST(CountedOps, TheLastOpOfARecomputationThatStopsDidNothing) {
  const auto trace = [] {
    return TraceText()
        .node("UnpackBackward", 1, 0, 100, "1")
        .event("python_function", "torch/utils/checkpoint.py(1500): recompute_fn", 1, 50)
        .op("aten::mm", 2, 3)
        .op("aten::add", 10, 3)
        .op("aten::mm", 60, 3);
  };
  const std::string node = "autograd::engine::evaluate_function: UnpackBackward";
  EXPECT_EQ(owners_of(trace()), (Lines{node, "torch/utils/checkpoint.py(1500): recompute_fn", "aten::mm counts",
                                       "aten::add", "aten::mm counts"}));
  // It ran where it launched a kernel: the recomputation was not stopped.
  EXPECT_EQ(owners_of(trace().launch(1, 11).kernel("add", 1, 20, 5)),
            (Lines{node, "torch/utils/checkpoint.py(1500): recompute_fn", "aten::mm counts", "aten::add counts",
                   "cudaLaunchKernel < aten::add", "aten::mm counts"}));
}

// An autograd function's own kernel beside ops: the kernel is the function's, the ops' work theirs.
TEST(CountedOps, OpsInOneThatLaunchesItself) {
  const auto lines = owners_of(TraceText().op("FlashFunction", 0, 50).op("aten::mm", 5, 10).launch(1, 7).launch(2, 30));
  EXPECT_EQ(lines[1], "aten::mm counts");
  EXPECT_EQ(lines[2], "cudaLaunchKernel < aten::mm");
}

TEST(CountedOps, ModulesAndRangesCountNothing) {
  EXPECT_EQ(owners_of(TraceText().module("Net_0", 0, 50).range("mine", 1, 40).op("aten::mm", 2, 10).launch(1, 20)),
            (Lines{"Net_0", "mine", "aten::mm counts", "cudaLaunchKernel"}));
}

TEST(CountedOps, AHundredThousandInEachOther) {
  constexpr std::int64_t kOps = 100'000;
  TraceText text;
  for (std::int64_t i = 0; i < kOps; ++i) text.op("vllm::op" + std::to_string(i), i, 2 * kOps - 2 * i);
  const auto lines = owners_of(text);
  EXPECT_EQ(std::ranges::count_if(lines, [](const auto& line) { return line.ends_with(" counts"); }), 1);
  EXPECT_TRUE(lines.back().ends_with(" counts"));
}

}  // namespace
}  // namespace roofprof::kineto
