// Where things ran: modules by instance, phases, regions; and how long each was open.

#include "kineto/places.h"

#include <gtest/gtest.h>

#include "kineto/trace_builder.h"

namespace roofprof::kineto {
namespace {

using testing::TraceText;

struct Placed {
  Trace trace;
  HostTree tree;
  Places places;

  explicit Placed(const TraceText& text, std::int64_t length = 1000, const CalledModel* model = nullptr)
      : trace(text.trace()), tree(host_tree(trace.host)) {
    constexpr auto kBegin = testing::kTraceBeginUs * 1000;
    places = places_of(trace, tree, kBegin, kBegin + length * 1000, model);
  }

  std::vector<std::string> paths() const {
    std::vector<std::string> result;
    for (const auto& module : places.modules) result.push_back(module.path);
    return result;
  }
  // Where the only event of that name ran: "path phase region", the region by its name.
  std::string of(const std::string& name) const {
    for (std::size_t i = 0; i < trace.host.size(); ++i) {
      if (trace.names[trace.host[i].name] != name) continue;
      return shown(places.of_event[i]);
    }
    return "no event " + name;
  }
  std::string shown(const Owner& place) const {
    const auto id = index_of(place.module);
    const auto path = id < places.modules.size() ? places.modules[id].path
                                                 : "scope " + places.regions[id - places.modules.size()].name;
    constexpr std::array<std::string_view, 4> kPhases = {"forward", "backward", "recompute", "optimizer"};
    const auto phase = std::string(kPhases.at(static_cast<std::size_t>(place.phase)));
    const auto region =
        place.region == kNoRegion ? "" : " in " + places.region_paths[static_cast<std::size_t>(place.region) - 1].name;
    return (path.empty() ? "model" : path) + " " + phase + region;
  }
  // The time of a place's own code in microseconds, by its text above; -1: it has no clock.
  std::int64_t self(const std::string& wanted) const {
    for (const auto& clock : places.clocks) {
      if (shown(clock.owner) == wanted) return clock.self_ns / 1000;
    }
    return -1;
  }
  std::int64_t all_self() const {
    std::int64_t sum = 0;
    for (const auto& clock : places.clocks) sum += clock.self_ns;
    return sum / 1000;
  }
};

using Paths = std::vector<std::string>;

TEST(Places, OneRootIsTheModel) {
  const Placed net(
      TraceText().module("Net_0", 0, 500).module("Block_0", 10, 100).module("Linear_0", 20, 50).op("aten::mm", 30, 5));
  EXPECT_EQ(net.paths(), (Paths{"", "(outside)", "(optimizer)", "Block_0", "Block_0.Linear_0"}));
  EXPECT_EQ(net.places.model, "Net");
  EXPECT_EQ(net.places.modules[4].type, "Linear");
  EXPECT_EQ(net.places.modules[4].parent, 3);
  EXPECT_EQ(net.of("aten::mm"), "Block_0.Linear_0 forward");
  EXPECT_EQ(net.self("Block_0.Linear_0 forward"), 50);
  EXPECT_EQ(net.self("model forward"), 400);
  EXPECT_EQ(net.self("(outside) forward"), 500);
  EXPECT_EQ(net.all_self(), 1000);
}

TEST(Places, SeveralRootsStandBesideEachOther) {
  const Placed net(TraceText().module("Net_0", 0, 100).module("Loss_0", 200, 50).module("Net_0", 300, 100));
  EXPECT_EQ(net.paths(), (Paths{"", "(outside)", "(optimizer)", "Net_0", "Loss_0"}));
  EXPECT_EQ(net.self("Net_0 forward"), 200);
  EXPECT_EQ(net.self("Loss_0 forward"), 50);
  EXPECT_EQ(net.places.clocks[0].calls + net.places.clocks[1].calls + net.places.clocks[2].calls, 3);
}

TEST(Places, ASharedInstanceStandsWhereItWasFirstCalled) {
  TraceText text;
  text.module("Net_0", 0, 500).module("A_0", 10, 100).module("Act_0", 20, 30).module("B_0", 200, 100);
  text.module("Act_0", 210, 40);
  const Placed net(text);
  EXPECT_EQ(net.paths(), (Paths{"", "(outside)", "(optimizer)", "A_0", "A_0.Act_0", "B_0"}));
  EXPECT_EQ(net.self("A_0.Act_0 forward"), 70);
  EXPECT_EQ(net.self("B_0 forward"), 60);
}

// LBFGS calls the model itself, in the closure that its step is given.
TEST(Places, WhatAnOptimizersClosureCallsIsForward) {
  TraceText text;
  text.range("Optimizer.step#LBFGS.step", 0, 200).module("Net_0", 10, 80).module("Linear_0", 20, 50);
  text.op("aten::mm", 30, 5).op("aten::dot", 150, 5);
  const Placed net(text);
  EXPECT_EQ(net.of("aten::mm"), "Linear_0 forward");
  EXPECT_EQ(net.of("aten::dot"), "(optimizer) optimizer");
}

// The forward of a layer, its backward on autograd's thread, AccumulateGrad behind it, and the optimizer.
TEST(Places, TheFourPhases) {
  TraceText text;
  text.module("Net_0", 0, 200).module("Linear_0", 10, 80).op("aten::linear", 20, 10, R"("Sequence number": 5)");
  text.module("Block_0", 100, 80).op("aten::add", 110, 10, R"("Sequence number": 6)").node("AddBackward0", 6, 300, 20);
  text.module("Block_0", 301, 10, "2").op("aten::sub", 302, 3, "", "2").node("AddmmBackward0", 5, 330, 20);
  text.op("aten::mm", 335, 10, "", "2");
  text.event("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 360, 10, "", "2");
  text.op("aten::detach", 362, 3, "", "2").node("LostBackward0", 99, 380, 10).op("aten::mul", 381, 3, "", "2");
  text.range("Optimizer.step#SGD.step", 500, 50).op("aten::_foreach_add_", 510, 10);
  const Placed net(text);
  EXPECT_EQ(net.of("aten::linear"), "Linear_0 forward");
  EXPECT_EQ(net.of("aten::mm"), "Linear_0 backward");
  EXPECT_EQ(net.of("aten::sub"), "Block_0 recompute");
  EXPECT_EQ(net.of("aten::detach"), "Linear_0 backward");
  EXPECT_EQ(net.of("aten::mul"), "(outside) backward");
  EXPECT_EQ(net.of("aten::_foreach_add_"), "(optimizer) optimizer");
  EXPECT_EQ(net.places.unknown_backward_nodes, 1);
  EXPECT_EQ(net.self("Linear_0 backward"), 30);
  EXPECT_EQ(net.self("Block_0 recompute"), 10);
  // The main thread's time, and that of autograd's thread where nodes ran.
  EXPECT_EQ(net.all_self(), 1000 + 20 + 20 + 10 + 10);
}

// Checkpointing runs the forward again inside a node: its modules are roots there, and known by instance.
TEST(Places, RecomputeOfACheckpoint) {
  TraceText text;
  text.module("Net_0", 0, 200).module("Layer_0", 10, 100).op("CheckpointFunction", 15, 50, R"("Sequence number": 3)");
  text.module("Linear_0", 20, 30).node("CheckpointFunctionBackward", 3, 300, 200);
  text.event("python_function", "torch/utils/checkpoint.py(99): recompute_fn", 310, 80, "", "2");
  text.op("aten::sin", 315, 5, "", "2").module("Linear_0", 330, 40, "2");
  text.op("aten::addmm", 340, 10, R"("Sequence number": 8)", "2");
  text.event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 400, 50,
             R"("Sequence number": 8, "Fwd thread id": 2)", "2");
  text.op("aten::mm", 410, 10, "", "2");
  const Placed net(text);
  EXPECT_EQ(net.of("aten::sin"), "Layer_0 recompute");
  EXPECT_EQ(net.of("aten::addmm"), "Layer_0.Linear_0 recompute");
  EXPECT_EQ(net.of("aten::mm"), "Layer_0.Linear_0 backward");
  EXPECT_EQ(net.all_self(), 1000 + 200);
}

TEST(Places, RegionsAreTheUsersRanges) {
  TraceText text;
  text.range("## forward ##", 0, 200).module("Net_0", 10, 100).range("inner", 20, 50).op("aten::mm", 30, 5);
  text.range("ProfilerStep#4", 300, 100).op("aten::add", 310, 5);
  text.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 500, 60).op("aten::stack", 510, 5);
  text.range("Optimizer.zero_grad#SGD.zero_grad", 600, 20).op("aten::zero_", 605, 5);
  const Placed net(text);
  EXPECT_EQ(net.of("Net_0"), "model forward in ## forward ##");
  EXPECT_EQ(net.of("aten::mm"), "scope inner forward in inner");
  EXPECT_EQ(net.of("aten::add"), "(outside) forward");
  EXPECT_EQ(net.of("aten::stack"), "scope (data loading) forward in (data loading)");
  EXPECT_EQ(net.of("aten::zero_"), "(outside) forward");
  EXPECT_EQ(net.self("scope ## forward ## forward in ## forward ##"), 100);
  EXPECT_EQ(net.all_self(), 1000);
  ASSERT_EQ(net.places.region_clocks.size(), 3);
  EXPECT_EQ(net.places.region_clocks[0].wall_ns, 200'000);
  EXPECT_EQ(net.places.region_clocks[0].calls, 1);
}

// What autograd's thread runs belongs to the region that is open on the thread that waits for it.
TEST(Places, TheRegionOfTheBackwardOnAnotherThread) {
  TraceText text;
  text.module("Net_0", 0, 100).op("aten::mm", 10, 5, R"("Sequence number": 1)").range("backward pass", 200, 300);
  text.op("aten::ones_like", 210, 5).node("MmBackward0", 1, 300, 50).op("aten::bmm", 310, 10, "", "2");
  text.node("MmBackward0", 1, 600, 50).op("aten::dot", 610, 10, "", "2");
  const Placed net(text);
  EXPECT_EQ(net.of("aten::bmm"), "model backward in backward pass");
  EXPECT_EQ(net.of("aten::dot"), "model backward");
}

// Hooks of nodes queue work behind them, as DDP's copies of gradients: the thread stays autograd's in all steps.
TEST(Places, TheRegionOfTheBackwardBehindWorkOfHooks) {
  TraceText text;
  text.module("Net_0", 0, 50);
  for (const int step : {0, 1, 2}) {
    const auto at = 100 + 300 * step;
    text.op("aten::mm", at, 5, R"("Sequence number": )" + std::to_string(step))
        .range("backward pass", at + 10, 200)
        .node("MmBackward0", step, at + 20, 50)
        .op("aten::bmm" + std::to_string(step), at + 30, 10, "", "2")
        .op("copy_bucket_to_grad", at + 100, 10, "", "2");
  }
  const Placed net(text);
  for (const auto* op : {"aten::bmm0", "aten::bmm1", "aten::bmm2"}) {
    EXPECT_TRUE(net.of(op).ends_with(" backward in backward pass")) << net.of(op);
  }
}

// A thread of the user's that works beside the main one is in (outside) for as long as it does, and no longer.
TEST(Places, OtherThreadsCountWhatTheyDo) {
  const Placed net(
      TraceText().module("Net_0", 0, 800).op("aten::add", 100, 30, "", "5").op("aten::mul", 200, 20, "", "6"));
  EXPECT_EQ(net.self("model forward"), 800);
  EXPECT_EQ(net.self("(outside) forward"), 200 + 30 + 20);
  EXPECT_EQ(net.all_self(), 1000 + 50);
}

TEST(Places, StepNumbers) {
  EXPECT_EQ(step_number("ProfilerStep#12"), 12);
  for (const auto* name :
       {"ProfilerStep#", "ProfilerStep#1x", "ProfilerStep#99999999999999999999", "my ProfilerStep#1"})
    EXPECT_EQ(step_number(name), kNone) << name;
}

// A model of two layers, wrapped by DDP: rows are the model's, what is around and beside it is outside, as in a live
// profile.
TEST(Places, RowsOfTheGivenModel) {
  auto model = testing::model_of_a_layer("encoder.proj");
  const auto text = TraceText()
                        .module("DistributedDataParallel_0", 0, 300)
                        .module("Net_0", 10, 200)
                        .module("Linear_7", 20, 100)
                        .op("aten::mm", 30, 5)
                        .module("Loss_0", 400, 100)
                        .op("aten::add", 410, 5);
  const Placed net(text, 1000, &model);
  EXPECT_EQ(net.places.unaligned, "");
  EXPECT_EQ(net.places.model, "Net");
  EXPECT_EQ(net.paths(), (Paths{"", "(outside)", "(optimizer)", "encoder.proj", "(outside).DistributedDataParallel_0",
                                "(outside).Loss_0"}));
  EXPECT_EQ(net.of("aten::mm"), "encoder.proj forward");
  EXPECT_EQ(net.of("aten::add"), "(outside).Loss_0 forward");
  model.modules[3].type = "Conv2d";
  const Placed other(text, 1000, &model);
  EXPECT_EQ(other.places.unaligned, "where the model calls encoder.proj (Conv2d), the trace has a Linear");
  EXPECT_EQ(other.of("aten::mm"), "DistributedDataParallel_0.Net_0.Linear_7 forward");
}

// More than paths can be made of, and more regions than get rows: what is deeper counts in what is around it.
TEST(Places, DeepAndWideTracesAreRead) {
  constexpr std::int64_t kMany = 20'000;
  TraceText deep;
  TraceText regions;
  TraceText threads;
  for (std::int64_t i = 0; i < kMany; ++i) {
    deep.module("M_" + std::to_string(i), i, 2 * kMany - 2 * i);
    regions.range("r" + std::to_string(i), 2 * i, 1);
    threads.range("r", 0, kMany, std::to_string(i + 10)).node("N", 1, i, 1);
  }
  EXPECT_EQ(Placed(deep, 2 * kMany).all_self(), 2 * kMany);
  const Placed many(regions, 2 * kMany);
  EXPECT_TRUE(many.places.more_regions);
  EXPECT_EQ(many.all_self(), 2 * kMany);
  EXPECT_EQ(Placed(threads, kMany).all_self(), kMany * kMany + kMany);
}

}  // namespace
}  // namespace roofprof::kineto
