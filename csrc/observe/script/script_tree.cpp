#include "observe/script/script_tree.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "core/phrases.h"
#include "observe/modules/parameters.h"
#include "observe/operators/tensor_format.h"

namespace roofprof::observe {

namespace {

using torch::jit::Block;
using torch::jit::Node;

// Modules that may be the same have the same key.
using Key = std::pair<const void*, const void*>;
Key key_of(const torch::jit::Module& module) {
  for (const at::Tensor& parameter : module.parameters()) return {module.type().get(), parameter.unsafeGetTensorImpl()};
  return {module.type().get(), module._ivalue().get()};
}

// Adds what the module itself holds. The weights that it packs are parameters, though TorchScript does not list them.
void add_sizes(const torch::jit::Module& module, ModuleId place, SubtreeSizes& sizes) {
  OwnTensors own;
  for (const at::Tensor& parameter : module.parameters(/*recurse=*/false)) own.parameters.push_back(parameter);
  for (const at::Tensor& buffer : module.buffers(/*recurse=*/false)) own.buffers.push_back(buffer);
  sizes.add(place, own);
  for (const c10::IValue& weight : packed_weights(module, /*recurse=*/false)) {
    auto identity = identity_of_packed(weight);  // no other object begins within the packed weight
    for (const at::Tensor& tensor : unpacked(weight)) sizes.add_copy(place, tensor, identity++);
  }
}

using Places = std::map<Key, std::pair<torch::jit::Module, ModuleId>>;

Module describe(const torch::jit::Module& module, std::string path, ModuleId parent) {
  Module row;
  row.path = std::move(path);
  const auto type = module.type()->name();
  row.type = type ? type->name() : "Module";
  row.parent = parent;
  // The forward of what holds torch.ao's packed weights is a formality.
  const bool holds_weights = row.type == "LinearPackedParams" || row.type == "EmbeddingPackedParams";
  row.has_forward = module.find_method("forward").has_value() && !holds_weights;
  return row;
}

void add_children(const torch::jit::Module& module, ModuleId place, ModelTree& tree, SubtreeSizes& sizes,
                  Places& first_places) {
  std::vector<torch::jit::Module> siblings;
  for (const auto& child : module.named_children()) {
    const auto is_child = [&](const auto& sibling) { return is_same_module(sibling, child.value); };
    if (std::ranges::any_of(siblings, is_child)) continue;  // a second name under the same parent
    siblings.push_back(child.value);
    auto row = describe(child.value, tree.path_below(place, child.name), place);
    const auto first = first_places.find(key_of(child.value));
    if (first != first_places.end() && is_same_module(first->second.first, child.value)) {
      row.same_as = first->second.second;
    }
    const auto added = tree.add(std::move(row), child.value._ivalue().get());
    first_places.try_emplace(key_of(child.value), child.value, added);
    add_sizes(child.value, added, sizes);
    add_children(child.value, added, tree, sizes, first_places);
  }
}

// Returns the constant tensor of a node. Undefined for other nodes, and for a constant that passes left behind without
// a use.
at::Tensor constant_tensor(const Node& node) {
  if (node.outputs().size() != 1 || !node.output()->hasUses()) return {};
  static const auto kOfMkldnn = c10::Symbol::fromQualString("prim::ConstantMKLDNNTensor");
  if (node.kind() == kOfMkldnn) return node.t(c10::attr::value);
  if (node.kind() != c10::prim::Constant || node.output()->type()->kind() != c10::TypeKind::TensorType) return {};
  const auto value = torch::jit::toIValue(node.output());
  return value && value->isTensor() ? value->toTensor() : at::Tensor();
}

void collect_constants(const Block& block, std::unordered_set<const void*>& seen, std::int64_t& elements) {
  for (const Node* node : block.nodes()) {
    const auto tensor = constant_tensor(*node);
    if (tensor.defined() && tensor.dim() > 0 && seen.insert(tensor.unsafeGetTensorImpl()).second) {
      elements += tensor.numel();
    }
    for (const Block* inner : node->blocks()) collect_constants(*inner, seen, elements);
  }
}

}  // namespace

bool is_same_module(const torch::jit::Module& a, const torch::jit::Module& b) {
  if (a._ivalue() == b._ivalue()) return true;
  if (a.type() != b.type()) return false;
  const auto of_a = a.parameters();
  const auto end = of_a.end();
  auto left = of_a.begin();
  auto right = b.parameters().begin();
  if (!(left != end)) return false;
  for (; left != end && right != end; ++left, ++right) {
    if (!(*left).is_same(*right)) return false;
  }
  return !(left != end) && !(right != end);
}

ModelTree tree_of(const torch::jit::Module& model) {
  auto tree = ModelTree::with_roots();
  tree.modules[kModel] = describe(model, "", -1);
  tree.objects[kModel] = model._ivalue().get();
  Places first_places;
  first_places.try_emplace(key_of(model), model, kModel);
  SubtreeSizes sizes;
  add_sizes(model, kModel, sizes);
  add_children(model, kModel, tree, sizes, first_places);
  sizes.write_to(tree.modules);
  return tree;
}

std::vector<c10::IValue> packed_weights(const torch::jit::Module& module, bool recurse) {
  std::vector<c10::IValue> weights;
  std::unordered_set<std::uint64_t> seen;
  for (const c10::IValue& attribute : module.attributes(recurse)) {
    if (!attribute.isObject() || !is_packed_weight(*attribute.type())) continue;
    if (seen.insert(identity_of_packed(attribute)).second) weights.push_back(attribute);
  }
  return weights;
}

std::optional<Note> frozen_note(const torch::jit::Module& model, const std::string& path) {
  const auto forward = model.find_method("forward");
  // Freezing takes the attribute `training` away as well.
  if (!forward || model.hasattr("training") || model.children().size() > 0 || model.parameters().size() > 0) {
    return std::nullopt;
  }
  std::unordered_set<const void*> seen;
  std::int64_t elements = 0;
  collect_constants(*forward->graph()->block(), seen, elements);
  if (elements == 0) return std::nullopt;
  return make_note("script-frozen",
                   "frozen TorchScript (" + display_path(path) +
                       "): freezing made one graph of its modules, so they have no rows, and constants of its "
                       "parameters (tensors with " +
                       std::to_string(elements) + " elements), which are not counted as parameters",
                   {path});
}

namespace {

std::vector<c10::IValue> items_of(const c10::IValue& value) {
  if (value.isList()) return value.toListRef().vec();
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (value.isObject()) return value.toObjectRef().slots();
  std::vector<c10::IValue> items;
  if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      items.push_back(entry.key());
      items.push_back(entry.value());
    }
  }
  return items;
}

void put(const c10::IValue& container, const std::vector<c10::IValue>& items) {
  if (container.isList()) {
    const auto list = container.toList();
    list.clear();
    for (const auto& item : items) list.push_back(item);
  } else if (container.isGenericDict()) {
    const auto dict = container.toGenericDict();
    dict.clear();
    for (std::size_t i = 0; i < items.size(); i += 2) dict.insert(items[i], items[i + 1]);
  } else if (container.isObject()) {
    for (std::size_t slot = 0; slot < items.size(); ++slot) container.toObjectRef().setSlot(slot, items[slot]);
  }
}

}  // namespace

ScriptValues::ScriptValues(std::vector<c10::IValue> roots) {
  c10::IValue::HashAliasedIValues seen;
  auto& pending = roots;
  while (!pending.empty()) {
    const auto value = std::move(pending.back());
    pending.pop_back();
    if (value.isTensor()) {
      if (value.toTensor().defined()) tensors_.push_back(value.toTensor());
      continue;
    }
    const bool holds = value.isList() || value.isTuple() || value.isGenericDict() || value.isObject();
    if (!holds || !seen.insert(value).second) continue;
    auto items = items_of(value);
    pending.insert(pending.end(), items.begin(), items.end());
    if (!value.isTuple()) containers_.push_back({value, std::move(items)});
  }
}

void ScriptValues::restore() const {
  for (const auto& [container, items] : containers_) {
    const auto same = [](const c10::IValue& a, const c10::IValue& b) { return a.is(b); };
    if (!std::ranges::equal(items_of(container), items, same)) put(container, items);
  }
}

}  // namespace roofprof::observe
