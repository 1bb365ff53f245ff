#include "collect/cupti/module_ranges.h"

#include <algorithm>
#include <charconv>

namespace roofprof::cupti {

ModuleRanges::ModuleRanges(RangeSession& session) : session_(session) {}

void ModuleRanges::begin_pass() {
  const std::lock_guard lock(mutex_);
  passing_ = true;
  opened_.clear();
  move_to_top();
}

void ModuleRanges::end_pass() noexcept {
  const std::lock_guard lock(mutex_);
  if (!passing_) return;
  close();
  passing_ = false;
  scopes_.clear();
}

void ModuleRanges::check() const {
  if (failed_ != nullptr) throw CuptiError(failed_, failure_);
}

void ModuleRanges::push(LaunchId id, LaunchLevel level) noexcept {
  if (level != LaunchLevel::module) return;
  const std::lock_guard lock(mutex_);
  if (!passing_) return;
  const std::thread::id thread = std::this_thread::get_id();
  if (!scopes_.empty() && scopes_.back().thread != thread) threads_took_turns_ = true;
  scopes_.push_back({thread, id});
  move_to_top();
}

void ModuleRanges::pop(LaunchLevel level) noexcept {
  if (level != LaunchLevel::module) return;
  const std::lock_guard lock(mutex_);
  if (!passing_) return;
  const std::thread::id thread = std::this_thread::get_id();
  const auto innermost =
      std::find_if(scopes_.rbegin(), scopes_.rend(), [thread](const Scope& scope) { return scope.thread == thread; });
  if (innermost == scopes_.rend()) return;  // entered before the pass began
  scopes_.erase(std::next(innermost).base());
  move_to_top();
}

// The innermost scope's range is the open one. A module called by itself stays in its range.
void ModuleRanges::move_to_top() {
  const LaunchId top = scopes_.empty() ? kNoLaunch : scopes_.back().id;
  if (!opened_.empty()) {
    if (opened_.back() == top) return;
    close();
  }
  open(top);
}

void ModuleRanges::open(LaunchId id) {
  const std::string name = range_name(opened_.size(), id);
  opened_.push_back(id);
  note("cuptiRangeProfilerPushRange", session_.push(name.c_str()));
}

void ModuleRanges::close() { note("cuptiRangeProfilerPopRange", session_.pop()); }

void ModuleRanges::note(const char* function, CUptiResult result) {
  if (result == CUPTI_SUCCESS || failed_ != nullptr) return;
  failed_ = function;
  failure_ = result;
}

std::string range_name(std::size_t ordinal, LaunchId id) { return std::to_string(ordinal) + ":" + std::to_string(id); }

RangeName read_range_name(const std::string& name) {
  RangeName read;
  const char* const end = name.data() + name.size();
  std::from_chars_result parsed = std::from_chars(name.data(), end, read.ordinal);
  if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == ':') {
    parsed = std::from_chars(parsed.ptr + 1, end, read.id);
  }
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    throw CollectorError("CUPTI names a range '" + name + "', which roofprof did not ask for");
  }
  return read;
}

}  // namespace roofprof::cupti
