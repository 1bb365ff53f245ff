#include "observe/graph_calls.h"

#include <utility>

#include "observe/operators/op_info.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {

void enter_graph(Session& session, std::int64_t graph) {
  auto& state = thread_state();
  auto& open = state.graph;
  if (open.depth == 0 && (!session.active() || !state.is_observed() || state.is_paused())) return;
  if (open.depth++ > 0) return;
  const bool in_region = !state.ops.empty() && state.ops.back().op == compiled_region();
  open.call = {.graph = graph, .owner = in_region ? state.ops.back().key.owner : state.now(), .ranges = {}};
  open.range = nullptr;
}

void leave_graph(Session& session) {
  auto& open = thread_state().graph;
  if (open.depth == 0) return;
  if (--open.depth > 0) return;
  session.graph_calls.keep(std::exchange(open.call, {}));
}

void OpenGraph::begin_range(const at::RecordFunction& fn) {
  if (range != nullptr || fn.scope() != at::RecordScope::FUNCTION) return;
  range = &fn;
  begin = std::chrono::steady_clock::now();
}

void OpenGraph::end_range(const at::RecordFunction& fn) {
  if (range != &fn) return;
  const auto took = std::chrono::steady_clock::now() - begin;
  call.ranges.push_back({fn.name(), std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()});
  range = nullptr;
}

}  // namespace roofprof::observe
