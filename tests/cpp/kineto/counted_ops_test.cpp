// Which of a trace's ops count, and whose a launch is.

#include "kineto/counted_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kineto/trace_builder.h"

namespace roofprof::kineto {
namespace {

using testing::FakeCosts;
using testing::TraceText;

// By event, in the order of their begin: "name < owner's name", where it has one.
std::vector<std::string> owners_of(const TraceText& text) {
  auto trace = text.trace();
  const auto tree = host_tree(trace.host);
  FakeCosts costs;
  const auto counted = counted_ops(trace, tree, costs);
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
  // Autocast and subclasses dispatch an op again; what counts is the one that does the work.
  EXPECT_EQ(owners_of(TraceText().op("aten::mm", 0, 50).op("aten::add", 5, 5).op("aten::mm", 20, 20).launch(1, 25)),
            (Lines{"aten::mm", "aten::add counts", "aten::mm counts", "cudaLaunchKernel < aten::mm"}));
  // One without a cost is listed once, unless its work is counted inside; a view explains no launch.
  EXPECT_EQ(owners_of(TraceText().op("vllm::outer", 0, 50).op("vllm::inner", 5, 30).launch(1, 10)),
            (Lines{"vllm::outer", "vllm::inner counts", "cudaLaunchKernel < vllm::inner"}));
  EXPECT_EQ(owners_of(TraceText().op("vllm::linear", 0, 50).op("aten::mm", 5, 30)),
            (Lines{"vllm::linear", "aten::mm counts"}));
  EXPECT_EQ(owners_of(TraceText().op("vllm::norm", 0, 50).op("aten::view", 5, 3).launch(1, 20)),
            (Lines{"vllm::norm counts", "aten::view counts", "cudaLaunchKernel < vllm::norm"}));
  EXPECT_EQ(owners_of(TraceText().module("Net_0", 0, 50).range("mine", 1, 40).op("aten::mm", 2, 10).launch(1, 20)),
            (Lines{"Net_0", "mine", "aten::mm counts", "cudaLaunchKernel"}));
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

// ---- what ran inside what, on a thread whose events have whole microseconds or nanoseconds

HostEvent event(std::int64_t begin_ns, std::int64_t end_ns, std::uint32_t name, HostKind kind = HostKind::op,
                std::uint32_t thread = 0, std::uint64_t external_id = 0) {
  HostEvent result;
  result.begin_ns = begin_ns;
  result.end_ns = end_ns;
  result.name = name;
  result.kind = kind;
  result.thread = thread;
  result.correlation = external_id;
  return result;
}

// The parent's name by an event's own; -1: none.
std::vector<std::int32_t> parents_by_name(std::vector<HostEvent> events) {
  const auto tree = host_tree(events);
  std::vector<std::int32_t> parents(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto parent = tree.parents[i];
    parents[events[i].name] = parent == kNone ? kNone : static_cast<std::int32_t>(events[at(parent)].name);
  }
  return parents;
}

using Parents = std::vector<std::int32_t>;

TEST(HostTree, TheInnermostAroundIsTheParentInAnyOrder) {
  std::vector<HostEvent> events = {event(0, 100'000, 0),     event(10'000, 40'000, 1), event(10'000, 20'000, 2),
                                   event(20'000, 40'000, 3), event(50'000, 60'000, 4), event(100'000, 120'000, 5)};
  std::vector<std::size_t> order(events.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    std::vector<HostEvent> shuffled;
    for (const auto i : order) shuffled.push_back(events[i]);
    ASSERT_EQ(parents_by_name(shuffled), (Parents{-1, 0, 1, 1, 0, -1}));
  } while (std::ranges::next_permutation(order).found);
}

// Of equal times, modules and ranges are around ops, ops around launches, and ops with lower ids around others.
TEST(HostTree, OfEqualTimesTheKindDecides) {
  EXPECT_EQ(parents_by_name({event(0, 1'000, 3, HostKind::launch), event(0, 1'000, 2, HostKind::op, 0, 9),
                             event(0, 1'000, 1, HostKind::op, 0, 8), event(0, 1'000, 0, HostKind::module)}),
            (Parents{-1, 0, 1, 2}));
}

TEST(HostTree, TimesAreWholeMicroseconds) {
  EXPECT_EQ(parents_by_name({event(0, 5'000, 0), event(2'000, 2'000, 1), event(5'000, 5'000, 2), event(0, 0, 3)}),
            (Parents{-1, 0, 0, 0}));
  // An op seems to begin in the last one of the op before it.
  EXPECT_EQ(parents_by_name({event(0, 10'000, 0), event(1'000, 5'500, 1), event(5'000, 9'000, 2)}),
            (Parents{-1, 0, 0}));
}

TEST(HostTree, WhatCrossesTheEndIsTakenToEndThere) {
  std::vector<HostEvent> events = {event(0, 10'000, 0), event(5'000, 20'000, 1), event(12'000, 15'000, 2)};
  const auto tree = host_tree(events);
  EXPECT_EQ(tree.parents, (Parents{-1, 0, -1}));
  EXPECT_EQ(events[1].end_ns, 10'000);
}

TEST(HostTree, AnOpThatIsDispatchedAgain) {
  std::vector<HostEvent> events = {event(0, 10'000, 7), event(1'000, 2'000, 8), event(3'000, 9'000, 7),
                                   event(4'000, 5'000, 7, HostKind::launch), event(20'000, 30'000, 7)};
  EXPECT_EQ(host_tree(events).dispatched_again, (std::vector<bool>{true, false, false, false, false}));
}

}  // namespace
}  // namespace roofprof::kineto
