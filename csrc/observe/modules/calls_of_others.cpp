#include "observe/modules/calls_of_others.h"

#include <ATen/record_function.h>

#include <algorithm>

namespace roofprof::observe {

void CallsOfOthers::note(ModuleId place, bool inferred) {
  const std::lock_guard lock(mutex_);
  ++calls_[{at::RecordFunction::currentThreadId(), place}];
  all_.inferred |= inferred;
}

void CallsOfOthers::note_run(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  runs_.insert(number);
}

void CallsOfOthers::note_unclear() {
  const std::lock_guard lock(mutex_);
  ++all_.unclear;
}

void CallsOfOthers::note_helper() {
  const std::lock_guard lock(mutex_);
  helped_ = true;
  all_.helped = true;
}

void CallsOfOthers::end_pass(const std::function<std::int64_t(ModuleId)>& own_calls) {
  const std::lock_guard lock(mutex_);
  // Some models show only the calls of their modules. Each module then gives a number of calls of the model: its calls
  // on the thread, divided by its calls in one call of the model. The largest of these numbers counts.
  std::map<std::uint64_t, std::int64_t> by_thread;
  for (const auto& [call, count] : calls_) {
    const auto [thread, place] = call;
    const auto in_one = std::max<std::int64_t>(own_calls(place), 1);
    auto& calls = by_thread[thread];
    calls = std::max(calls, (count + in_one - 1) / in_one);
  }
  for (const auto& [thread, count] : by_thread) all_.calls += count;
  all_.calls += static_cast<std::int64_t>(runs_.size());
  all_.mixed |= helped_ && !calls_.empty();
  helped_ = false;
  calls_.clear();
  runs_.clear();
}

OtherCalls CallsOfOthers::all() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

}  // namespace roofprof::observe
