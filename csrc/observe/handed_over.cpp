#include "observe/handed_over.h"

#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {

std::shared_ptr<LaterPlace> place_for_later() {
  const auto& state = thread_state();
  if (!state.is_observed() || state.is_paused()) return nullptr;
  return std::make_shared<LaterPlace>(LaterPlace{state.session, state.pass, state.now()});
}

RunsAtPlace::RunsAtPlace(const std::shared_ptr<LaterPlace>& place) {
  const auto session = place->session.lock();
  if (!session || session->pass() != place->pass) return;
  auto& state = thread_state();
  if (!state.open(*session, place->owner.module, place->owner.phase, FrameKind::region, this)) return;
  if (state.frames.size() == 1) state.region = place->owner.region;
}

RunsAtPlace::~RunsAtPlace() { thread_state().close(this); }

namespace {

const auto kProfiler = c10::DebugInfoKind::PROFILER_STATE;

bool is_on_top(c10::DebugInfoKind kind, const c10::DebugInfoBase* info) {
  if (info == nullptr || c10::ThreadLocalDebugInfo::get(kind) != info) return false;
  try {
    return c10::ThreadLocalDebugInfo::_peek(kind).get() == info;
  } catch (const c10::Error&) {  // of another kind is the one on top
    return false;
  }
}

// While this lives, the states of torch's profiler that are on top are not there.
class WithoutProfiler {
 public:
  WithoutProfiler() {
    while (is_on_top(kProfiler, c10::ThreadLocalDebugInfo::get(kProfiler))) {
      states_.push_back(c10::ThreadLocalDebugInfo::_pop(kProfiler));
    }
  }
  ~WithoutProfiler() {
    for (; !states_.empty(); states_.pop_back()) {
      c10::ThreadLocalDebugInfo::_push(kProfiler, std::move(states_.back()));
    }
  }
  WithoutProfiler(const WithoutProfiler&) = delete;
  WithoutProfiler& operator=(const WithoutProfiler&) = delete;

 private:
  std::vector<std::shared_ptr<c10::DebugInfoBase>> states_;
};

}  // namespace

void hand_over(c10::DebugInfoKind kind, std::shared_ptr<c10::DebugInfoBase> info) {
  if (thread_has_ended()) return;
  const WithoutProfiler below;
  c10::ThreadLocalDebugInfo::_push(kind, std::move(info));
}

c10::DebugInfoBase* handed_over(c10::DebugInfoKind kind) {
  return thread_has_ended() ? nullptr : c10::ThreadLocalDebugInfo::get(kind);
}

bool end_handover(c10::DebugInfoKind kind, const c10::DebugInfoBase* info) {
  if (thread_has_ended()) return false;
  const WithoutProfiler below;
  if (!is_on_top(kind, info)) return false;
  c10::ThreadLocalDebugInfo::_pop(kind);
  return true;
}

void end_handovers() {
  const WithoutProfiler below;
  for (bool found = true; found;) {
    found = false;
    for (const auto kind : {c10::DebugInfoKind::TEST_INFO, c10::DebugInfoKind::TEST_INFO_2}) {  // torch's tests' alone
      for (; is_on_top(kind, handed_over(kind)); found = true) c10::ThreadLocalDebugInfo::_pop(kind);
    }
  }
}

}  // namespace roofprof::observe
