#include "kineto/counted_ops.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace roofprof::kineto {

namespace {

// The resolution of traces of 2021, which have whole microseconds.
constexpr std::int64_t kResolutionNs = 1000;
// The number of ops around another that are searched for its name.
constexpr std::size_t kOpsAround = 32;

// Orders events with the same times: an event that is around the others comes first.
int rank_of(HostKind kind) {
  if (kind == HostKind::launch) return 2;
  return kind == HostKind::op ? 1 : 0;
}

}  // namespace

std::int32_t innermost_op(const std::vector<HostEvent>& events, const HostTree& tree, std::int32_t event) {
  while (event != kNone && events[at(event)].kind != HostKind::op) event = tree.parents[at(event)];
  return event;
}

HostTree host_tree(std::vector<HostEvent>& events) {
  std::ranges::stable_sort(events, {}, [](const HostEvent& event) {
    return std::tuple(event.begin_ns, -event.end_ns, rank_of(event.kind),
                      event.kind == HostKind::op ? event.correlation : 0);
  });
  HostTree tree;
  tree.parents.assign(events.size(), kNone);
  tree.dispatched_again.assign(events.size(), false);
  std::vector<std::vector<std::int32_t>> open;  // by thread, the innermost last
  for (std::size_t i = 0; i < events.size(); ++i) {
    auto& event = events[i];
    if (event.thread >= open.size()) open.resize(event.thread + 1);
    auto& stack = open[event.thread];
    const auto ends_before = [&](std::int32_t around) {
      const auto& outer = events[at(around)];
      if (outer.end_ns <= event.begin_ns) return outer.end_ns < event.begin_ns || event.end_ns > event.begin_ns;
      // It begins within the clock's resolution of the other's end.
      return event.end_ns > outer.end_ns && outer.end_ns - event.begin_ns < kResolutionNs;
    };
    while (!stack.empty() && ends_before(stack.back())) stack.pop_back();
    if (!stack.empty()) {
      tree.parents[i] = stack.back();
      event.end_ns = std::min(event.end_ns, events[at(stack.back())].end_ns);
    }
    if (event.kind == HostKind::op) {
      const auto transparent = static_cast<std::ptrdiff_t>(std::min(stack.size(), kOpsAround));
      for (auto around = stack.end() - transparent; around != stack.end(); ++around) {
        const auto& outer = events[at(*around)];
        if (outer.kind == HostKind::op && outer.name == event.name) {
          tree.dispatched_again[at(*around)] = true;
        }
      }
    }
    stack.push_back(static_cast<std::int32_t>(i));
  }
  return tree;
}

namespace {

using observe::OpClass;
using observe::OpKind;
using observe::WorkInside;

constexpr std::int32_t kInterrupted = -2;  // in place of an owner: the op that it is, or is in, did no work

bool is_operator(std::string_view name) {
  return name.find("::") != name.npos && !name.starts_with("autograd::") && !name.starts_with("torch::");
}

class Rule {
 public:
  Rule(const Trace& trace, const HostTree& tree, CallCosts& known)
      : trace_(trace), tree_(tree), known_(known), classes_(trace.calls.size()), costed_(trace.calls.size()) {
    result_.owners.assign(trace.host.size(), kNone);
    for (const auto& record : trace.device.records) launches_.insert(record.correlation);
    for (const auto captured : trace.captured) {
      if (captured != 0) launches_.insert(captured);
    }
    result_.costs.resize(trace.calls.size());
  }

  CountedOps run() && {
    for (std::size_t i = 0; i < trace_.host.size(); ++i) count(i);
    leave_out_interrupted();
    list_uncosted();
    // Ops inside an op that is listed are its work.
    for (std::size_t i = 0; i < trace_.host.size(); ++i) {
      if (result_.owners[i] == kInterrupted) {
        result_.owners[i] = kNone;
        continue;
      }
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

  // Leaves out the last op of a recomputation. Checkpointing (not the reentrant one) stops it by an exception as soon
  // as everything is saved again, while the last op saves its inputs, before it computes. So that op did nothing,
  // unless recorded kernels show that it did.
  void leave_out_interrupted() {
    std::vector<std::int32_t> recomputation(trace_.host.size(), kNone);  // by event: the innermost that it is in
    std::unordered_map<std::int32_t, std::int32_t> last;                 // by recomputation: the last op with work
    std::vector<bool> launches(trace_.host.size(), false);               // by op that counts
    for (std::size_t i = 0; i < trace_.host.size(); ++i) {
      const auto& event = trace_.host[i];
      if (tree_.parents[i] != kNone) recomputation[i] = recomputation[at(tree_.parents[i])];
      if (event.kind == HostKind::recompute) recomputation[i] = static_cast<std::int32_t>(i);
      const auto owner = result_.owners[i];
      if (owner == kNone) continue;
      if (event.kind == HostKind::launch && launches_.contains(event.correlation)) launches[at(owner)] = true;
      if (recomputation[i] == kNone || std::cmp_not_equal(owner, i)) continue;
      if (result_.costs[at(event.call)].work != Work{}) last[recomputation[i]] = owner;
    }
    std::vector<bool> interrupted(trace_.host.size(), false);
    for (const auto& [_, op] : last) interrupted[at(op)] = !launches[at(op)];
    for (auto& owner : result_.owners) {
      if (owner != kNone && interrupted[at(owner)]) owner = kInterrupted;
    }
  }

  void list_uncosted() {
    std::vector<WorkInside> inside(trace_.host.size());
    std::vector<bool> launched(trace_.host.size(), false);  // by the op itself
    for (auto i = trace_.host.size(); i-- > 0;) {
      const auto& event = trace_.host[i];
      const auto owner = result_.owners[i];
      const auto parent = tree_.parents[i];
      if (std::cmp_equal(owner, i)) {
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

std::vector<std::string> fused_ops(std::string_view kernel, CallCosts& known) {
  constexpr std::string_view kFused = "_fused_";
  const auto begin = kernel.find(kFused);
  if (!kernel.starts_with("triton_") || begin == kernel.npos) return {};
  auto text = kernel.substr(begin + kFused.size());
  const auto last = text.find_last_not_of("0123456789");
  if (last == text.npos) return {};  // a number alone
  if (text[last] == '_') text = text.substr(0, last);
  if (text.empty()) return {};
  // Indexed by where a name may begin: the length of the name there; npos: the text from there on cannot be read.
  std::vector<std::size_t> length(text.size() + 2, text.npos);
  length[text.size() + 1] = 0;
  for (std::size_t from = text.size(); from-- > 0;) {
    if (from > 0 && text[from - 1] != '_') continue;
    for (auto end = text.size(); end > from; --end) {
      if ((end < text.size() && text[end] != '_') || length[end + 1] == text.npos) continue;
      if (!known.is_operator("aten::" + std::string(text.substr(from, end - from)))) continue;
      length[from] = end - from;
      break;
    }
  }
  if (text.empty() || length[0] == text.npos) return {std::string(text)};
  std::vector<std::string> ops;
  for (std::size_t from = 0; from < text.size(); from += length[from] + 1) {
    ops.push_back("aten::" + std::string(text.substr(from, length[from])));
  }
  return ops;
}

CountedOps counted_ops(const Trace& trace, const HostTree& tree, CallCosts& known) {
  return Rule(trace, tree, known).run();
}

}  // namespace roofprof::kineto
