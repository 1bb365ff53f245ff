#include "observe/script/script_calls.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "observe/script/script_places.h"

namespace roofprof::observe {

namespace {

using Names = std::set<std::string_view>;

// Torch's implementations of these call dispatched operators for all that they do with tensors.
const Names& dispatching() {
  static const Names kNames = {
      // a number out of a tensor (item)
      "aten::Bool", "aten::Complex", "aten::ComplexImplicit", "aten::Float", "aten::FloatImplicit", "aten::Int",
      "aten::IntImplicit", "aten::ScalarImplicit",
      // functional forms and overloads of operators of that name
      "aten::__interpolate", "aten::__upsample", "aten::__upsample_bilinear", "aten::__upsample_nearest",
      "aten::_grad_sum_to_size", "aten::_index_put_impl_", "aten::_ncf_unsqueeze", "aten::_ncf_view",
      "aten::_no_grad_embedding_renorm_", "aten::_no_grad_fill_", "aten::_no_grad_normal_", "aten::_no_grad_uniform_",
      "aten::_no_grad_zero_", "aten::_unsafe_index", "aten::_unsafe_index_put", "aten::as_tensor", "aten::copy_",
      "aten::cpu", "aten::cuda", "aten::dequantize", "aten::einsum", "aten::index", "aten::index_put",
      "aten::index_put_", "aten::mH", "aten::mT", "aten::matrix_H", "aten::numpy_T", "aten::split", "aten::to",
      "onnx::Reshape", "onnx::Shape", "prim::AutogradAdd", "prim::BroadcastMKLDNNTensors", "prim::ConstantChunk",
      "prim::FusedConcat", "prim::MMBatchSide", "prim::MMTreeReduce", "prim::NumToTensor", "prim::VarConcat",
      "prim::VarStack", "prim::abs", "prim::data", "prim::grad",
      // comparisons of tensors in lists
      "aten::__contains__", "aten::count", "aten::eq", "aten::ne", "aten::remove", "aten::sort", "aten::sorted",
      // autograd's engine, an interpreter of their own, a kernel with a record, or Python
      "aten::backward", "aten::dist_backward", "aten::grad", "prim::DifferentiableGraph", "prim::FallbackGraph",
      "prim::IgnoredPythonOp", "prim::PythonOp", "prim::TensorExprDynamicGroup", "prim::TensorExprGroup",
      "prim::oneDNNFusionGroup"};
  return kNames;
}

// They look at tensors, or hand them on.
const Names& idle() {
  static const Names kNames = {
      // sizes, types, flags
      "aten::element_size", "aten::is_non_overlapping_and_dense", "aten::is_strides_like_format", "aten::len",
      "aten::size", "aten::stride", "aten::sym_size", "aten::sym_stride", "prim::BroadcastSizes", "prim::ChunkSizes",
      "prim::device", "prim::dtype", "prim::is_cpu", "prim::is_cuda", "prim::is_ipu", "prim::is_maia", "prim::is_meta",
      "prim::is_mkldnn", "prim::is_mps", "prim::is_mtia", "prim::is_nested", "prim::is_quantized", "prim::is_sparse",
      "prim::is_sparse_csr", "prim::is_vulkan", "prim::is_xla", "prim::is_xpu", "prim::itemsize", "prim::layout",
      "prim::name", "prim::nbytes", "prim::requires_grad",
      // the executor's checks
      "aten::has_torch_function", "prim::AutogradAllNonZero", "prim::AutogradAllZero", "prim::AutogradAnyNonZero",
      "prim::AutogradZero", "prim::BailOut", "prim::Guard", "prim::RequiresGradCheck", "prim::TensorExprDynamicGuard",
      "prim::TypeCheck", "prim::oneDNNFusionGuard", "prim::profile", "prim::profile_ivalue",
      "profiler::_call_end_callbacks_on_jit_fut",
      // containers and text
      "aten::Delete", "aten::__getitem__", "aten::_pack_sequence", "aten::_set_item", "aten::clear", "aten::copy",
      "aten::dict", "aten::format", "aten::get", "aten::items", "aten::keys", "aten::percentFormat", "aten::pop",
      "aten::popitem", "aten::setdefault", "aten::update", "aten::values", "prim::IfThenElse",
      "prim::ModuleContainerIndex", "prim::Print", "prim::TupleIndex", "prim::TupleUnpack", "prim::Uninitialized",
      // constants, and numbers of the program made a tensor or taken out of one
      "aten::_list_to_tensor", "aten::_tensor_to_list", "aten::tensor", "prim::ConstantMKLDNNTensor", "prim::tolist"};
  return kNames;
}

bool holds_tensors(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType || type.kind() == c10::TypeKind::AnyType) return true;
  return std::ranges::any_of(type.containedTypes(), [](const auto& part) { return holds_tensors(*part); });
}

bool holds_tensors(const std::vector<c10::Argument>& arguments) {
  return std::ranges::any_of(arguments, [](const auto& argument) { return holds_tensors(*argument.type()); });
}

// Returns whether an operator of that kind may work unseen. Most kinds of nodes are dispatched in each of their forms:
// the kind decides, without a match of schemas.
bool may_work_unseen(c10::Symbol kind) {
  thread_local std::unordered_map<c10::Symbol, bool> known;
  const auto [found, fresh] = known.try_emplace(kind, false);
  if (fresh) {
    found->second =
        std::ranges::any_of(torch::jit::getAllOperatorsFor(kind), [](const auto& op) { return works_unseen(*op); });
  }
  return found->second;
}

}  // namespace

bool works_unseen(const torch::jit::Operator& op) {
  if (op.isC10Op()) return false;
  const auto& schema = op.schema();
  const bool takes_any = schema.is_vararg() || schema.is_varret();
  if (!takes_any && !holds_tensors(schema.arguments()) && !holds_tensors(schema.returns())) return false;
  const std::string_view name = schema.name();
  return !name.starts_with("roofprof::") && !dispatching().contains(name) && !idle().contains(name);
}

const torch::jit::Operator* unseen_operator(const torch::jit::Node& node) {
  if (!may_work_unseen(node.kind())) return nullptr;
  const auto* op = node.maybeOperator();
  return op != nullptr && works_unseen(*op) ? op : nullptr;
}

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
