#include "observe/script/script_calls.h"

#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>

#include "observe/operators/script_operators.h"
#include "observe/script/script_places.h"

namespace roofprof::observe {
namespace {

using torch::jit::Block;
using torch::jit::Graph;

void add_unseen(const void* module, const std::string& op, std::vector<UnseenNodes>& all) {
  const auto same = [&](const auto& nodes) { return nodes.module == module && nodes.op == op; };
  const auto found = std::ranges::find_if(all, same);
  if (found == all.end()) {
    all.push_back({module, op, 1});
  } else {
    ++found->count;
  }
}

// `self`: whose method the graph is; `module`: whose forward runs.
void add_unseen(const Block& block, const Graph& graph, const torch::jit::Module* self, const void* module,
                std::vector<UnseenNodes>& all) {
  for (const auto* node : block.nodes()) {
    if (const auto* op = unseen_operator(*node)) add_unseen(module, op->schema().name(), all);
    for (const auto* inner : node->blocks()) add_unseen(*inner, graph, self, module, all);
    if (node->kind() == c10::prim::fork) {
      const auto& forked = *node->g(c10::attr::Subgraph);
      add_unseen(*forked.block(), forked, nullptr, module, all);
    }
    const auto* callee = function_called(*const_cast<torch::jit::Node*>(node), graph, self);
    if (callee == nullptr) continue;
    const bool of_module = node->kind() == c10::prim::CallMethod;
    const auto called = of_module ? module_behind(node->input(0), graph, self) : std::nullopt;
    const bool is_call = called && is_forward(callee->name());
    const auto& code = *callee->graph();
    add_unseen(*code.block(), code, called ? &*called : nullptr, is_call ? called->_ivalue().get() : module, all);
  }
}

}  // namespace

std::optional<torch::jit::Module> module_behind(const torch::jit::Value* value, const Graph& graph,
                                                const torch::jit::Module* self) {
  const auto* node = value->node();
  if (node->kind() == c10::prim::unchecked_cast) return module_behind(node->input(0), graph, self);
  if (node->kind() == c10::prim::GetAttr) {
    const auto owner = module_behind(node->input(0), graph, self);
    const auto& name = node->s(c10::attr::name);
    if (!owner || !owner->hasattr(name) || !owner->attr(name).isModule()) return std::nullopt;
    return owner->attr(name).toModule();
  }
  if (node->kind() == c10::prim::Param && !graph.inputs().empty() && value == graph.inputs()[0] && self) return *self;
  return std::nullopt;
}

torch::jit::GraphFunction* function_called(torch::jit::Node& node, const Graph& graph, const torch::jit::Module* self) {
  if (node.kind() != c10::prim::CallMethod && node.kind() != c10::prim::CallFunction) return nullptr;
  auto* known = torch::jit::tryToGraphFunction(&node);
  if (known != nullptr || node.kind() != c10::prim::CallMethod) return known;
  if (node.input(0)->type()->kind() != c10::TypeKind::InterfaceType) return nullptr;
  const auto module = module_behind(node.input(0), graph, self);
  const auto method = module ? module->find_method(node.s(c10::attr::name)) : std::nullopt;
  return method ? torch::jit::tryToGraphFunction(method->function()) : nullptr;
}

std::vector<UnseenNodes> unseen_nodes(const torch::jit::Module& module, const torch::jit::GraphFunction& method) {
  std::vector<UnseenNodes> all;
  const auto& code = *method.graph();
  add_unseen(*code.block(), code, &module, is_forward(method.name()) ? module._ivalue().get() : nullptr, all);
  return all;
}

}  // namespace roofprof::observe
