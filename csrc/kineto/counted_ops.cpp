#include "kineto/counted_ops.h"

#include <optional>
#include <string_view>
#include <unordered_set>

namespace roofprof::kineto {
namespace {

using observe::OpClass;
using observe::OpKind;
using observe::WorkInside;

bool is_operator(std::string_view name) {
  return name.find("::") != name.npos && !name.starts_with("autograd::") && !name.starts_with("torch::");
}

class Rule {
 public:
  Rule(const Trace& trace, const HostTree& tree, CallCosts& known)
      : trace_(trace), tree_(tree), known_(known), classes_(trace.calls.size()), costed_(trace.calls.size()) {
    result_.owners.assign(trace.host.size(), kNone);
    for (const auto& record : trace.device.records) launches_.insert(record.correlation);
    result_.costs.resize(trace.calls.size());
  }

  CountedOps run() && {
    for (std::size_t i = 0; i < trace_.host.size(); ++i) count(i);
    list_uncosted();
    // What is inside an op that is listed is its work.
    for (std::size_t i = 0; i < trace_.host.size(); ++i) {
      if (result_.owners[i] == kNone && tree_.parents[i] != kNone)
        result_.owners[i] = result_.owners[at(tree_.parents[i])];
    }
    return std::move(result_);
  }

 private:
  const OpClass& class_of(std::int32_t call) {
    auto& known = classes_[at(call)];
    if (!known) known = known_.class_of(trace_.calls[at(call)]);
    return *known;
  }

  const ops::Costed& cost_of(std::int32_t call) {
    if (!costed_[at(call)]) {
      result_.costs[at(call)] = known_.cost_of(trace_.calls[at(call)]);
      costed_[at(call)] = true;
    }
    return result_.costs[at(call)];
  }

  void count(std::size_t i) {
    const auto& event = trace_.host[i];
    if (const auto parent = tree_.parents[i]; parent != kNone) result_.owners[i] = result_.owners[at(parent)];
    if (event.kind != HostKind::op || result_.owners[i] != kNone || tree_.dispatched_again[i]) return;
    const auto kind = class_of(event.call).kind;
    if (kind != OpKind::counted && kind != OpKind::view) return;
    cost_of(event.call);
    result_.owners[i] = static_cast<std::int32_t>(i);
  }

  void list_uncosted() {
    std::vector<WorkInside> inside(trace_.host.size());
    std::vector<bool> launched(trace_.host.size(), false);  // by the op itself
    for (auto i = trace_.host.size(); i-- > 0;) {
      const auto& event = trace_.host[i];
      const auto owner = result_.owners[i];
      const auto parent = tree_.parents[i];
      if (owner == static_cast<std::int32_t>(i)) {
        const auto& cost = result_.costs[at(event.call)];
        if (cost.costed)
          inside[i].add(cost.work);
        else
          inside[i].uncosted = true;
      } else if (owner == kNone && event.kind == HostKind::op && is_listed(event, inside[i], launched[i])) {
        result_.owners[i] = static_cast<std::int32_t>(i);
        inside[i].uncosted = true;
      } else if (owner == kNone && event.kind == HostKind::launch && parent != kNone &&
                 launches_.contains(event.correlation)) {
        launched[at(parent)] = true;
      }
      if (parent != kNone) inside[at(parent)].add(inside[i]);
    }
  }

  bool is_listed(const HostEvent& event, const WorkInside& inside, bool launched) {
    const auto& known = class_of(event.call);
    if (known.kind != OpKind::unknown) return false;
    if (!is_operator(trace_.names[event.name])) return launched && !inside.any();
    return !inside.any() && !observe::is_explained(known, inside);
  }

  const Trace& trace_;
  const HostTree& tree_;
  CallCosts& known_;
  std::vector<std::optional<OpClass>> classes_;
  std::vector<bool> costed_;
  std::unordered_set<std::uint64_t> launches_;  // correlations that something ran on a device for
  CountedOps result_;
};

}  // namespace

CountedOps counted_ops(const Trace& trace, const HostTree& tree, CallCosts& known) {
  return Rule(trace, tree, known).run();
}

}  // namespace roofprof::kineto
