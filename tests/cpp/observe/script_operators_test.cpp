// Every operator that TorchScript has for itself is costed, known to need no cost, or named when it is met.

#include "observe/script/script_calls.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <set>
#include <string>

#include "ops/registry.h"

namespace roofprof::observe {
namespace {

// No cost is known: they are named. What they run is on other machines (rpc), in a kernel that was fused, or in another
// runtime.
const std::set<std::string> kNamed = {"prim::FusionGroup",    "prim::StaticRuntimeCopyOuts",
                                      "prim::StaticSubgraph", "prim::rpc_async",
                                      "prim::rpc_remote",     "prim::rpc_sync"};

// A new torch that brings another one fails here: look at what it does, then give it a cost or a place in a list.
TEST(ScriptOperators, AreCostedOrKnownOrNamed) {
  for (const auto& op : torch::jit::getAllOperators()) {
    if (!works_unseen(*op)) continue;
    const std::string name = op->schema().name();
    const bool costed = ops::find_cost(name, op->schema().overload_name()) != nullptr;
    EXPECT_NE(costed, kNamed.contains(name)) << op->schema();
  }
}

TEST(ScriptOperators, OfTheDispatcherAreSeenThere) {
  for (const auto& op : torch::jit::getAllOperators()) {
    EXPECT_FALSE(op->isC10Op() && works_unseen(*op)) << op->schema();
  }
}

TEST(ScriptOperators, AreFoundInCode) {
  torch::jit::Graph graph;
  torch::jit::parseIR(R"(
    graph(%x : Tensor, %weight : Tensor, %bias : Tensor, %ones : int[], %groups : int):
      %y : Tensor = prim::mkldnn_convolution(%x, %weight, %bias, %ones, %ones, %ones, %groups)
      %z : Tensor = prim::MKLDNNHardSwish_(%y)
      %a : Tensor = aten::relu(%z)
      %sizes : int[] = aten::size(%a)
      return (%a, %sizes))",
                      &graph);
  std::vector<std::string> found;
  for (const auto* node : graph.nodes()) {
    if (const auto* op = unseen_operator(*node)) found.push_back(op->schema().name());
  }
  EXPECT_EQ(found, (std::vector<std::string>{"prim::mkldnn_convolution", "prim::MKLDNNHardSwish_"}));
}

}  // namespace
}  // namespace roofprof::observe
