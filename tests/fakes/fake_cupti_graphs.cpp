// A simulated libcupti.so.13: what it tells of the nodes of CUDA graphs.
#include <cuda.h>
#include <cupti.h>

#include "fake_cupti.h"
#include "fake_state.h"

namespace {

// A node's handle is its number.
void tell_of_node(CUpti_CallbackIdResource callback, unsigned long long node, unsigned long long original) {
  CUpti_GraphData graph{};
  graph.node = reinterpret_cast<CUgraphNode>(node);
  graph.originalNode = reinterpret_cast<CUgraphNode>(original);
  CUpti_ResourceData data{};
  data.resourceDescriptor = &graph;
  fake::tell_subscriber(CUPTI_CB_DOMAIN_RESOURCE, callback, &data);
}

// The callbacks that the real library makes while a graph is captured or instantiated.
void node_made(unsigned long long node, unsigned long long original) {
  const long long created = original == 0 ? 1 : fake_get("clones_are_created");
  if (created == 1) tell_of_node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node, 0);
  if (original != 0) tell_of_node(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, node, original);
  if (created == 2) tell_of_node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node, 0);
}

const bool listening = (fake::on_graph_node(node_made), true);

}  // namespace

extern "C" {

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* id) {
  FAKE(CUptiResult, cuptiGetGraphNodeId);
  if (node == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = reinterpret_cast<std::uint64_t>(node);
  return CUPTI_SUCCESS;
}
}
