// CUDA graphs: one launch, many kernels, told apart by their nodes.
#include <gtest/gtest.h>

#include <thread>

#include "device/cupti/traced.h"

namespace roofprof::cupti {
namespace {

class Graphs : public Traced {
 protected:
  // As instantiating a graph does: the nodes that run are clones, 1000 higher here.
  static void instantiate(std::initializer_list<unsigned long long> nodes) {
    for (const auto node : nodes) fake_graph_node(node + 1000, node);
  }

  // One launch from this thread that runs all of the nodes.
  static void launch(std::initializer_list<unsigned long long> nodes) {
    unsigned correlation = 0;
    for (const auto node : nodes) {
      const std::string name = "node" + std::to_string(node);
      FakeLaunch kernel{};
      kernel.name = name.c_str();
      kernel.duration_ns = 10;
      kernel.graph = 1;
      kernel.graph_node = node;
      kernel.correlation = correlation;
      correlation = fake_launch(&kernel);
    }
  }
};

class ClonedGraphs : public Graphs, public testing::WithParamInterface<int> {};

TEST_P(ClonedGraphs, NodesBelongToTheModuleThatCapturedThem) {
  fake_set("clones_are_created", GetParam());
  Tracer traced = tracer();
  traced.start();
  LaunchMarker* marker = traced.marker();
  {
    const Under first(marker, 11);
    fake_graph_node(1, 0);
    fake_graph_node(2, 0);
  }
  std::thread backward([&] {
    const Under second(marker, 12);
    fake_graph_node(3, 0);
  });
  backward.join();
  fake_graph_node(4, 0);  // outside of every module
  {
    const Under instantiating(marker, 13);
    instantiate({1, 2, 3, 4, 5});
  }
  {
    const Under launcher(marker, 20);
    launch({1001, 1002, 1003, 1004, 1005});  // the last was captured when nobody looked
  }
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(places(trace),
            (std::map<std::string, LaunchId>{
                {"node1001", 11}, {"node1002", 11}, {"node1003", 12}, {"node1004", 20}, {"node1005", 20}}));
  for (const KernelRecord& record : trace.records) EXPECT_EQ(record.correlation, trace.records[0].correlation);
  EXPECT_EQ(trace.records[1].graph_node, 1002U);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_EQ(trace.notes[0].text,
            "launches of CUDA graphs: 1, which ran 5 kernels and copies; 3 belong to the module that captured them; 2 "
            "belong to the module that launched the graph, as they were captured before the trace or outside of every "
            "module");
}

INSTANTIATE_TEST_SUITE_P(ToldOfInAnyOrder, ClonedGraphs, testing::Values(0, 1, 2));

TEST_F(Graphs, LaunchesAreCounted) {
  Tracer traced = tracer();
  traced.start();
  const Under launcher(traced.marker(), 20);
  launch({1, 2, 3});
  launch({1, 2, 3});
  fake_kernel("plain", 0, 7, 10);
  const DeviceTrace trace = traced.stop();
  ASSERT_EQ(trace.records.size(), 7U);
  for (const KernelRecord& record : trace.records) EXPECT_EQ(record.launch, 20U);
  EXPECT_NE(all_notes(trace).find("launches of CUDA graphs: 2, which ran 6 kernels and copies"), std::string::npos)
      << all_notes(trace);
}

TEST_F(Graphs, AFillThatTheDriverRunsAsAKernelIsAFill) {
  Tracer traced = tracer();
  traced.start();
  const Under launcher(traced.marker(), 20);
  FakeLaunch fill{};
  fill.name = "memset32";
  fill.duration_ns = 10;
  fill.graph = 1;
  fill.graph_node = 3;
  fake_launch(&fill);
  fake_kernel("memset32", 0, 7, 10);  // a program's own
  const DeviceTrace trace = traced.stop();
  ASSERT_EQ(trace.records.size(), 2U);
  EXPECT_EQ(trace.records[0].kind, KernelKind::fill);
  EXPECT_EQ(trace.records[0].graph_node, 3U);
  EXPECT_EQ(trace.records[0].launch, 20U);
  EXPECT_EQ(trace.records[1].kind, KernelKind::kernel);
}

TEST_F(Graphs, IdsAreOfOneTrace) {
  Tracer traced = tracer();
  traced.start();
  {
    const Under module(traced.marker(), 11);
    fake_graph_node(1, 0);
  }
  instantiate({1});
  traced.stop();
  fake_graph_node(2, 0);  // nobody is called
  traced.start();
  {
    const Under launcher(traced.marker(), 20);
    launch({1001});
  }
  EXPECT_EQ(only(traced.stop()).launch, 20U) << "11 stands for something else in this trace";
}

TEST_F(Graphs, WithoutTheCallbacksTheLaunchersModuleHasThem) {
  Api older = api();
  older.cuptiEnableCallback = nullptr;
  Tracer traced(older, [] {});
  traced.start();
  {
    const Under module(traced.marker(), 11);
    fake_graph_node(1, 0);
    const Under launcher(traced.marker(), 20);
    launch({1});
  }
  const DeviceTrace trace = traced.stop();
  EXPECT_EQ(only(trace).launch, 20U);
  EXPECT_NE(all_notes(trace).find("CUPTI did not tell of captures"), std::string::npos) << all_notes(trace);
}

}  // namespace
}  // namespace roofprof::cupti
