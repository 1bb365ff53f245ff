#include "observe/script_places.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>

#include "observe/script_tree.h"

namespace roofprof::observe {
namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

// "layer1(Sequential)::forward": the attribute's name, the class, the method. Of a function only the last is there.
struct Line {
  std::string name;
  std::string method;

  explicit Line(const std::string& text) {
    const auto method_at = text.rfind("::");
    const auto type_at = text.find('(');
    method = method_at == text.npos ? text : text.substr(method_at + 2);
    if (type_at != text.npos && type_at < method_at && text[type_at + 1] != ')') name = text.substr(0, type_at);
  }
};

// The attributes that lead from a method's `self` to that value; empty where none do.
std::vector<std::string> path_from_self(const Value* value) {
  std::vector<std::string> path;
  while (value->node()->kind() == c10::prim::GetAttr) {
    path.insert(path.begin(), value->node()->s(c10::attr::name));
    value = value->node()->input(0);
  }
  const bool is_self = value->node()->kind() == c10::prim::Param && value->offset() == 0;
  return is_self ? path : std::vector<std::string>{};
}

template <class Visit>
void for_each_node(const Block& block, const Visit& visit) {
  for (const Node* node : block.nodes()) {
    visit(*node);
    for (const Block* inner : node->blocks()) for_each_node(*inner, visit);
  }
}

}  // namespace

bool is_forward(std::string_view method) {
  constexpr std::string_view kForward = "forward";
  return method.starts_with(kForward) && method.find_first_not_of("0123456789", kForward.size()) == method.npos;
}

void ScriptPlaces::add(const torch::jit::Module& module, ModuleId place, const std::vector<Module>& tree) {
  if (!index_) index_.emplace(tree, std::vector<const void*>(tree.size()));
  std::unordered_map<std::string_view, ModuleId> by_path;
  for (std::size_t id = 0; id < tree.size(); ++id) by_path.emplace(tree[id].path, static_cast<ModuleId>(id));
  add_below(module, place, by_path, tree);
}

void ScriptPlaces::add_below(const torch::jit::Module& module, ModuleId place,
                             const std::unordered_map<std::string_view, ModuleId>& by_path,
                             const std::vector<Module>& tree) {
  index_->add(module._ivalue().get(), place);
  modules_.emplace(place, module);
  add_call_sites(module);
  const auto& path = tree[static_cast<std::size_t>(place)].path;
  std::vector<std::pair<torch::jit::Module, ModuleId>> siblings;
  for (const auto& child : module.named_children()) {
    const auto found = by_path.find(path.empty() ? child.name : path + "." + child.name);
    auto child_place = found == by_path.end() ? ModuleId{-1} : found->second;
    if (child_place < 0) {  // another name of a sibling
      for (const auto& [sibling, sibling_place] : siblings) {
        if (is_same_module(sibling, child.value)) child_place = sibling_place;
      }
    }
    if (child_place < 0) continue;
    siblings.emplace_back(child.value, child_place);
    children_[{place, child.name}] = child_place;
    add_below(child.value, child_place, by_path, tree);
  }
}

void ScriptPlaces::add_call_sites(const torch::jit::Module& module) {
  for (const auto& method : module.get_methods()) {
    const auto [entry, fresh] = call_sites_.try_emplace({module.type().get(), method.name()});
    if (!fresh) continue;
    for_each_node(*method.graph()->block(), [&sites = entry->second](const Node& node) {
      if (node.kind() != c10::prim::CallMethod) return;
      auto path = path_from_self(node.input(0));
      if (!path.empty()) sites.push_back({std::move(path), node.sourceRange()});
    });
  }
}

std::optional<ModuleId> ScriptPlaces::place_of(const void* object, const ThreadState& state) const {
  return index_ ? index_->place_of(object, state) : std::nullopt;
}

std::optional<ModuleId> ScriptPlaces::root_of(const std::string& line) const {
  std::optional<ModuleId> root;
  for (const auto& [place, module] : modules_) {
    if (!module.type()->name() || !line.starts_with("TOP(" + module.type()->name()->name() + ")::")) continue;
    if (root) return std::nullopt;
    root = place;
  }
  return root;
}

std::optional<ModuleId> ScriptPlaces::walk(ModuleId from, const std::vector<std::string>& path) const {
  for (const auto& name : path) {
    const auto child = children_.find({from, name});
    if (child == children_.end()) return std::nullopt;
    from = child->second;
  }
  return from;
}

// The interpreter names the last attribute alone, so "0" of several lists is told apart by the place of the call.
std::optional<ModuleId> ScriptPlaces::callee(ModuleId caller, const std::string& method, const std::string& name,
                                             bool& by_name) const {
  const auto sites = call_sites_.find({modules_.at(caller).type().get(), method});
  std::vector<const CallSite*> candidates;
  if (sites != call_sites_.end()) {
    for (const auto& site : sites->second) {
      if (site.path.back() == name) candidates.push_back(&site);
    }
  }
  if (candidates.empty()) return walk(caller, {name});
  const auto& first = candidates.front()->path;
  if (std::ranges::all_of(candidates, [&](const auto* site) { return site->path == first; })) {
    return walk(caller, first);
  }
  by_name = false;
  const auto stack = torch::jit::currentCallstack();
  for (const auto* site : candidates) {
    const auto is_here = [&](const torch::jit::StackEntry& entry) { return entry.range == site->range; };
    if (std::ranges::any_of(stack, is_here)) return walk(caller, site->path);
  }
  return std::nullopt;
}

ScriptPlace ScriptPlaces::find(const ScriptFrame& frame, const std::vector<std::string>& lines) const {
  ScriptPlace result{frame.place};
  if (!frame.module) return result;
  auto module = *frame.module;
  auto method = frame.method;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Line line(lines[i]);
    if (line.name.empty()) continue;  // a function: it has no place of its own
    if (line.name != "SELF") {
      const auto next = callee(module, method, line.name, result.by_lines_alone);
      if (!next) return result;
      module = *next;
    }
    method = line.method;
    if (is_forward(method)) result.module = module;
  }
  return result;
}

}  // namespace roofprof::observe
