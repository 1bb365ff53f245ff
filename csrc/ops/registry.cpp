#include "ops/registry.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/forks.h"
#include "ops/counting.h"

namespace roofprof::ops {

namespace {

using Lines = std::unordered_map<std::string_view, const OpCost*>;

Lines lines_of_all_families() {
  Lines lines;
  for (const auto& family : families()) {
    for (const auto& line : family.costs) {
      if (!lines.emplace(line.op, &line).second) {
        throw LogicError("two cost lines for " + std::string(line.op));
      }
    }
  }
  return lines;
}

// Returns a line for each operator of a table.
std::vector<OpCost> lines_of(std::span<const OpCost> table) {
  std::vector<OpCost> lines;
  for (const auto& alike : table) {
    for (std::string_view names = alike.op; !names.empty();) {
      lines.push_back(alike);
      lines.back().op = names.substr(0, names.find(' '));
      names.remove_prefix(std::min(lines.back().op.size() + 1, names.size()));
    }
  }
  return lines;
}

// Returns the line that a trait stands for.
const OpCost* line_of(Trait trait) {
  static constexpr OpCost kView{"view", no_operations, 0, no_bytes, "", "free", ""};
  static constexpr OpCost kViewCopy{"view_copy", no_operations, 0, part_copied_bytes, "", "what is viewed is copied",
                                    ""};
  static constexpr OpCost kPointwise{"pointwise", per_output, 1, nullptr, "", "1 per output element", ""};
  static constexpr OpCost kReduction{"reduction", per_input, 1, nullptr, "", "1 per input element", ""};
  switch (trait) {
    case Trait::view:
      return &kView;
    case Trait::view_copy:
      return &kViewCopy;
    case Trait::pointwise:
      return &kPointwise;
    case Trait::reduction:
      return &kReduction;
    case Trait::none:
      break;
  }
  return nullptr;
}

// A formula that went wrong must not end as a strange figure in a report.
void require_plausible(const OpCall& call, const Work& work) {
  if (work.has_negative_count()) throw LogicError(call.name + ": its cost is negative");
  if (work.causal_macs > work.macs) throw LogicError(call.name + ": more causal MACs than dense ones");
}

Work evaluate_plain(const OpCall& call, const OpCost& line) {
  Work work;
  if (line.own != nullptr) {
    compulsory_bytes(call, work);
    (*line.own)(call, work);
  } else {
    line.operations(call, line.weight, work);
    (line.bytes != nullptr ? line.bytes : compulsory_bytes)(call, work);
  }
  work.updated_bytes = std::min({work.updated_bytes, work.read_bytes, work.write_bytes});
  require_plausible(call, work);
  return work;
}

bool is_known(const Argument& argument) {
  return !argument.unknown && std::ranges::all_of(argument.tensors, &TensorDesc::is_known);
}

Work evaluate(const OpCall& call, const OpCost& line) {
  if (is_free(line)) return {};
  if (!std::ranges::all_of(call.arguments, is_known) || !std::ranges::all_of(call.results, is_known)) {
    throw std::domain_error("a size of it is not known");
  }
  const std::vector<OpCall> on_components = calls_on_components(call);
  if (on_components.empty()) return evaluate_plain(call, line);
  Work work;
  for (const auto& component : on_components) work += evaluate_plain(component, line);
  return work;
}

}  // namespace

std::span<const Family> families() {
  static const std::array kFamilies = {
      Family{"matmul", lines_of(matmul_costs())},
      Family{"convolution", lines_of(convolution_costs())},
      Family{"attention", lines_of(attention_costs())},
      Family{"recurrent", lines_of(recurrent_costs())},
      Family{"normalization", lines_of(normalization_costs())},
      Family{"activation", lines_of(activation_costs())},
      Family{"elementwise", lines_of(elementwise_costs())},
      Family{"reduction", lines_of(reduction_costs())},
      Family{"linalg", lines_of(linalg_costs())},
      Family{"spectral", lines_of(spectral_costs())},
      Family{"pooling", lines_of(pooling_costs())},
      Family{"indexing", lines_of(indexing_costs())},
      Family{"movement", lines_of(movement_costs())},
      Family{"quantized", lines_of(quantized_costs())},
      Family{"sparse", lines_of(sparse_costs())},
      Family{"nested", lines_of(nested_costs())},
      Family{"vision", lines_of(vision_costs())},
      Family{"communication", lines_of(communication_costs())},
      Family{"serving", lines_of(serving_costs())},
  };
  return kFamilies;
}

const OpCost* find_cost(std::string_view op, std::string_view overload) {
  static const Lines kLines = lines_of_all_families();
  // A line holds for the in-place form too, unless that form has a separate line.
  for (const bool in_place : {false, true}) {
    if (in_place) {
      if (!op.ends_with('_')) break;
      op.remove_suffix(1);
    }
    if (const auto* own = find_own_cost(op, overload)) return own;
    if (const auto found = kLines.find(op); found != kLines.end()) return found->second;
  }
  return nullptr;
}

bool computes(const OpCost& line) { return line.operations != no_operations; }

bool is_free(const OpCost& line) { return line.operations == no_operations && line.bytes == no_bytes; }

std::optional<Work> cost_of(const OpCall& call) { return cost_of(call, find_cost(call.name, call.overload)); }

std::optional<Work> cost_of(const OpCall& call, const OpCost* line) {
  if (line == nullptr) line = line_of(call.trait);
  if (line == nullptr) return std::nullopt;
  if (call.declared_scalars == line->scalars) return evaluate(call, *line);
  OpCall declared = call;
  declared.declared_scalars = line->scalars;
  return evaluate(declared, *line);
}

}  // namespace roofprof::ops

// ---- Costs that users give for operators, of their own or of others.

namespace roofprof {
namespace ops {
namespace {

struct OwnCost {
  std::string op;
  OpCosts::Function function;
  std::string formula;
  OpCost line;
};

struct OwnCosts {
  ForkMutex mutex;
  std::map<std::string, const OwnCost*, std::less<>> by_name;
  // Keeps the replaced ones as well: another thread may be evaluating one.
  std::vector<std::unique_ptr<const OwnCost>> all;
  std::atomic<std::uint64_t> generation{0};
};

OwnCosts& own() {
  static auto* instance = new OwnCosts;  // outlives every thread, and functions that belong to an interpreter
  return *instance;
}

}  // namespace

const OpCost* find_own_cost(std::string_view op, std::string_view overload) {
  auto& costs = own();
  if (costs.generation.load(std::memory_order_acquire) == 0) return nullptr;
  const std::string name(op);
  const std::lock_guard lock(costs.mutex);
  auto found = costs.by_name.find(name + "." + (overload.empty() ? "default" : std::string(overload)));
  if (found == costs.by_name.end()) found = costs.by_name.find(name);
  return found == costs.by_name.end() ? nullptr : &found->second->line;
}

std::vector<OpCost> own_costs() {
  auto& costs = own();
  const std::lock_guard lock(costs.mutex);
  std::vector<OpCost> lines;
  lines.reserve(costs.by_name.size());
  for (const auto& [name, cost] : costs.by_name) lines.push_back(cost->line);
  return lines;
}

std::uint64_t cost_generation() { return own().generation.load(std::memory_order_acquire); }

}  // namespace ops

void OpCosts::add(const std::string& op, Function function, std::string formula) {
  const auto colons = op.find("::");
  if (colons == std::string::npos || colons == 0 || colons + 2 == op.size() || op.back() == '.') {
    throw InvalidArgument("'" + op + "' names no operator; write its qualified name, such as \"mylib::op\"");
  }
  if (!function) throw InvalidArgument("the cost of " + op + " is an empty function");
  auto cost = std::make_unique<ops::OwnCost>(ops::OwnCost{op, std::move(function), std::move(formula), {}});
  cost->line = {cost->op, ops::no_operations, 0, nullptr, "*", cost->formula, "", &cost->function};
  auto& costs = ops::own();
  const std::lock_guard lock(costs.mutex);
  costs.by_name[op] = cost.get();
  costs.all.push_back(std::move(cost));
  costs.generation.fetch_add(1, std::memory_order_acq_rel);
}

void OpCosts::remove(const std::string& op) {
  auto& costs = ops::own();
  const std::lock_guard lock(costs.mutex);
  if (costs.by_name.erase(op) > 0) costs.generation.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace roofprof
