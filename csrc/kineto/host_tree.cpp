#include "kineto/host_tree.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace roofprof::kineto {
namespace {

// Traces of 2021 have whole microseconds.
constexpr std::int64_t kResolutionNs = 1000;
// So many of the ops around another are looked at for its name.
constexpr std::size_t kOpsAround = 32;

// Of events with the same times: what is around the others comes first.
int rank_of(HostKind kind) {
  if (kind == HostKind::launch) return 2;
  return kind == HostKind::op ? 1 : 0;
}

}  // namespace

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
      // It begins at what is left of the other, by the clock's resolution.
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

}  // namespace roofprof::kineto
