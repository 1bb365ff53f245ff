#include "device/cupti/launch_ids.h"

#include <algorithm>

namespace roofprof::cupti {

LaunchIds::Stack& LaunchIds::stack() noexcept {
  static thread_local Stack mine;
  return mine;
}

void LaunchIds::begin(const Api& api, bool passed_on) {
  api_.store(&api, std::memory_order_relaxed);
  passed_on_.store(passed_on, std::memory_order_relaxed);
  refused_.store(0, std::memory_order_relaxed);
  trace_.fetch_add(1, std::memory_order_release);
}

void LaunchIds::drain(Stack& stack) noexcept {
  const Api* api = api_.load(std::memory_order_relaxed);
  for (std::size_t i = std::min(stack.depth, kDeepest); i-- > 0;) {
    std::uint64_t last = 0;
    if (stack.pushed[i]) api->cuptiActivityPopExternalCorrelationId(kOurIds, &last);
  }
  stack.depth = 0;
}

LaunchIds::Stack& LaunchIds::stack_of_this_trace() noexcept {
  Stack& mine = stack();
  const std::uint64_t trace = trace_.load(std::memory_order_acquire);
  if (mine.trace != trace) {
    drain(mine);
    mine.trace = trace;
  }
  return mine;
}

void LaunchIds::clear_this_thread() noexcept { drain(stack()); }

void LaunchIds::push(LaunchId id, LaunchLevel) noexcept {
  Stack& mine = stack_of_this_trace();
  if (mine.depth < kDeepest) {
    mine.ids[mine.depth] = id;
    mine.pushed[mine.depth] = passed_on_.load(std::memory_order_relaxed) && pass_on(id);
  }
  ++mine.depth;
}

bool LaunchIds::pass_on(LaunchId id) noexcept {
  const Api* api = api_.load(std::memory_order_relaxed);
  const bool taken = api->cuptiActivityPushExternalCorrelationId(kOurIds, id) == CUPTI_SUCCESS;
  if (!taken) refused_.fetch_add(1, std::memory_order_relaxed);
  return taken;
}

void LaunchIds::pop(LaunchLevel) noexcept {
  Stack& mine = stack_of_this_trace();
  if (mine.depth == 0) return;
  --mine.depth;
  if (mine.depth >= kDeepest || !mine.pushed[mine.depth]) return;
  std::uint64_t last = 0;
  api_.load(std::memory_order_relaxed)->cuptiActivityPopExternalCorrelationId(kOurIds, &last);
}

LaunchId LaunchIds::current() const noexcept {
  const Stack& mine = stack();
  if (mine.trace != trace_.load(std::memory_order_acquire) || mine.depth == 0) return kNoLaunch;
  return mine.ids[std::min(mine.depth, kDeepest) - 1];
}

}  // namespace roofprof::cupti
