#include "backward_runs.h"

#include <ATen/SequenceNumber.h>

#include <memory>
#include <mutex>

namespace roofprof::python {

BackwardRuns& BackwardRuns::instance() {
  static auto* runs = new BackwardRuns;  // outlives every thread
  return *runs;
}

void BackwardRuns::watch() {
  {
    const std::lock_guard lock(mutex_);
    if (callback_) return;
  }
  const auto begins = [](const at::RecordFunction& node) -> std::unique_ptr<at::ObserverContext> {
    instance().ran(node.forwardThreadId(), node.seqNr());
    return nullptr;
  };
  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback(begins).scopes({at::RecordScope::BACKWARD_FUNCTION}));
  const std::lock_guard lock(mutex_);
  callback_ = handle;
}

void BackwardRuns::ignore() {
  std::optional<at::CallbackHandle> handle;
  {
    const std::lock_guard lock(mutex_);
    handle.swap(callback_);
  }
  if (handle) at::removeCallback(*handle);
}

std::int64_t BackwardRuns::next_node() { return static_cast<std::int64_t>(at::sequence_number::peek()); }

std::int64_t BackwardRuns::add(std::int64_t first) {
  const auto end = next_node();
  if (end <= first) return -1;
  const std::lock_guard lock(mutex_);
  const auto thread = at::RecordFunction::currentThreadId();
  const auto number = forgotten_ + static_cast<std::int64_t>(calls_.size());
  calls_.push_back({.thread = thread, .first = first, .end = end});
  by_end_[{thread, end}] = number;
  return number;
}

bool BackwardRuns::reached(std::int64_t call) const {
  const std::lock_guard lock(mutex_);
  return call >= forgotten_ && calls_[static_cast<std::size_t>(call - forgotten_)].reached;
}

void BackwardRuns::forget_before(std::int64_t call) {
  const std::lock_guard lock(mutex_);
  for (; forgotten_ < call && !calls_.empty(); ++forgotten_) {
    by_end_.erase({calls_.front().thread, calls_.front().end});
    calls_.pop_front();
  }
}

std::int64_t BackwardRuns::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

void BackwardRuns::ran(std::uint64_t thread, std::int64_t node) {
  const std::lock_guard lock(mutex_);
  ++nodes_;
  if (node < 0) return;  // it accumulates a gradient
  const auto call = by_end_.upper_bound({thread, node});
  if (call == by_end_.end() || call->first.first != thread) return;
  auto& found = calls_[static_cast<std::size_t>(call->second - forgotten_)];
  if (found.first <= node) found.reached = true;
}

}  // namespace roofprof::python
