#include "observe/script/script_places.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>

#include "observe/script/script_tree.h"

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

// Returns the attributes that lead from a method's `self` to that value; empty where none do.
std::vector<std::string> path_from_self(const Value* value) {
  std::vector<std::string> path;
  while (value->node()->kind() == c10::prim::GetAttr) {
    path.insert(path.begin(), value->node()->s(c10::attr::name));
    value = value->node()->input(0);
  }
  const bool is_self = value->node()->kind() == c10::prim::Param && value->offset() == 0;
  return is_self ? path : std::vector<std::string>{};
}

struct NoScope {
  ModuleId module = kNoModule;
};

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
  if (!method.starts_with(kForward)) return false;
  method.remove_prefix(kForward.size());
  if (method.starts_with("__")) method.remove_prefix(2);
  return method.find_first_not_of("0123456789") == method.npos;
}

bool was_frozen(const torch::jit::Module& module) {
  if (module.children().size() > 0) return false;
  bool inlined = false;
  for (const auto& method : module.get_methods()) {
    for_each_node(*method.graph()->block(), [&](const Node& node) { inlined |= node.callstack().has_value(); });
  }
  return inlined;
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
  index_->add(module._ivalue().get(), place);  // NOLINT(bugprone-unchecked-optional-access): add() made it
  modules_.emplace(place, module);
  if (was_frozen(module)) frozen_.insert(place);
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

std::shared_ptr<const ScriptPlaces> ScriptPlaces::around(const torch::jit::Module& module) const {
  const std::lock_guard lock(mutex_);
  const auto [known, fresh] = around_.try_emplace(module._ivalue().get());
  if (fresh) {
    auto places = std::make_shared<ScriptPlaces>();
    places->modules_ = modules_;
    places->children_ = children_;
    places->call_sites_ = call_sites_;
    places->add_around(module, --places->last_around_, *this);
    known->second = std::move(places);
  }
  const bool has_some = std::ranges::any_of(known->second->children_, [](const auto& child) {
    return child.first.first < kNoModule && child.second > kNoModule;
  });
  if (!has_some) return nullptr;
  called_from_around_.store(true, std::memory_order_relaxed);
  return known->second;
}

void ScriptPlaces::add_around(const torch::jit::Module& module, ModuleId place, const ScriptPlaces& tree) {
  modules_.emplace(place, module);
  add_call_sites(module);
  for (const auto& child : module.named_children()) {
    auto below = tree.place_of(child.value._ivalue().get(), std::vector<NoScope>{});
    if (!below) {
      below = --last_around_;
      add_around(child.value, *below, tree);
    }
    children_[{place, child.name}] = *below;
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

std::optional<ModuleId> ScriptPlaces::root_of(const std::string& line) const {
  std::optional<ModuleId> root;
  for (const auto& [place, module] : modules_) {
    const auto type = module.type()->name();
    if (!type || !line.starts_with("TOP(" + type->name() + ")::")) continue;
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

// Returns the calls of modules of that name in a method, in their order.
std::vector<const ScriptPlaces::CallSite*> ScriptPlaces::sites_of(ModuleId caller, const std::string& method,
                                                                  const std::string& name) const {
  std::vector<const CallSite*> result;
  const auto sites = call_sites_.find({modules_.at(caller).type().get(), method});
  if (sites == call_sites_.end()) return result;
  for (const auto& site : sites->second) {
    if (site.path.back() == name) result.push_back(&site);
  }
  return result;
}

// Finds the module that a line names. The interpreter names the last attribute alone, so the place of the call in the
// source distinguishes "0" of several lists; where the source has no place, as in traced code, the order of the calls
// does.
std::optional<ModuleId> ScriptPlaces::callee(ScriptFrame& frame, ModuleId caller, const std::string& method,
                                             const std::string& name, bool& by_range) const {
  const auto sites = sites_of(caller, method, name);
  if (sites.empty()) return walk(caller, {name});
  const auto is_same = [&](const auto* site) { return site->path == sites.front()->path; };
  if (std::ranges::all_of(sites, is_same)) return walk(caller, sites.front()->path);
  const auto is_known_by_range = [&](const auto* site) {
    return std::ranges::none_of(
        sites, [&](const auto* other) { return other->path != site->path && other->range == site->range; });
  };
  if (std::ranges::all_of(sites, is_known_by_range)) {
    by_range = true;
    const auto stack = torch::jit::currentCallstack();
    for (const auto* site : sites) {
      const auto is_here = [&](const torch::jit::StackEntry& entry) { return entry.range == site->range; };
      if (std::ranges::any_of(stack, is_here)) return walk(caller, site->path);
    }
    return std::nullopt;
  }
  auto& visits = frame.visits[{caller, method + "." + name}];
  return walk(caller, sites[visits++ % sites.size()]->path);
}

ModuleId ScriptPlaces::find(ScriptFrame& frame, std::vector<std::string> lines, KnownScriptPlace& known) const {
  const auto same = std::ranges::mismatch(known.lines, lines).in1 - known.lines.begin();
  known.steps.resize(std::min({static_cast<std::size_t>(same), known.certain, known.steps.size()}));
  known.lines = std::move(lines);
  known.certain = known.lines.size();
  if (known.steps.empty()) known.steps.push_back({frame.module.value_or(kNoModule), frame.place});
  while (known.steps.size() < known.lines.size()) {
    const auto level = known.steps.size();
    auto step = known.steps.back();
    const Line line(known.lines[level]);
    if (step.module != kNoModule && !line.name.empty()) {  // a function runs at its caller's place
      const auto caller_method = level == 1 ? frame.method : Line(known.lines[level - 1]).method;
      bool by_range = false;
      if (line.name != "SELF") {
        step.module = callee(frame, step.module, caller_method, line.name, by_range).value_or(kNoModule);
      }
      if (by_range) known.certain = std::min(known.certain, level);
      if (step.module >= 0 && is_forward(line.method)) step.place = step.module;
    }
    known.steps.push_back(step);
  }
  return known.steps.back().place;
}

}  // namespace roofprof::observe
