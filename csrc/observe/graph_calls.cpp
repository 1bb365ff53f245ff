#include "observe/graph_calls.h"

#include <chrono>
#include <utility>

#include "observe/operators/op_info.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

using GraphClock = std::chrono::steady_clock;

struct OpenGraph {
  GraphCall call;
  int depth = 0;  // graphs that are open inside one another: the outermost is kept
  const at::RecordFunction* range = nullptr;
  GraphClock::time_point begin;
};

OpenGraph& open_graph() {
  thread_local OpenGraph open;
  return open;
}

}  // namespace

void enter_graph(Session& session, std::int64_t graph) {
  auto& open = open_graph();
  const auto& state = thread_state();
  if (open.depth == 0 && (!session.active() || !state.is_observed() || state.is_paused())) return;
  if (open.depth++ > 0) return;
  const bool in_region = !state.ops.empty() && state.ops.back().op == compiled_region();
  open.call = {.graph = graph, .owner = in_region ? state.ops.back().key.owner : state.now(), .ranges = {}};
  open.range = nullptr;
}

void leave_graph(Session& session) {
  auto& open = open_graph();
  if (open.depth == 0) return;
  --open.depth;
  if (open.depth > 0) return;
  session.keep_graph_call(std::exchange(open.call, {}));
}

bool in_graph() { return open_graph().depth > 0; }

void begin_in_graph(const at::RecordFunction& fn) {
  auto& open = open_graph();
  if (open.range != nullptr || fn.scope() != at::RecordScope::FUNCTION) return;
  open.range = &fn;
  open.begin = GraphClock::now();
}

void end_in_graph(const at::RecordFunction& fn) {
  auto& open = open_graph();
  if (open.range != &fn) return;
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(GraphClock::now() - open.begin).count();
  open.call.ranges.push_back({fn.name(), ns});
  open.range = nullptr;
}

}  // namespace roofprof::observe
