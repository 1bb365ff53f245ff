// Costs that users give for operators, of their own or of others.

#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>

#include "core/forks.h"
#include "ops/counting.h"
#include "ops/registry.h"

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
    throw std::invalid_argument("'" + op + "' names no operator; write its qualified name, such as \"mylib::op\"");
  }
  if (!function) throw std::invalid_argument("the cost of " + op + " is an empty function");
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
