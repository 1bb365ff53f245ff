#include "device/cupti/module_ranges.h"

#include <algorithm>
#include <charconv>
#include <memory>

namespace roofprof::cupti {

ModuleRanges::ModuleRanges(RangeSession& session, std::size_t first) : session_(session), first_(first) {}

bool ModuleRanges::is_counted(std::size_t ordinal) const {
  return ordinal >= first_ && ordinal - first_ < session_.rooms();
}

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
  if (is_counted(opened_.size() - 1)) note("cuptiRangeProfilerPushRange", session_.push(name.c_str()));
}

void ModuleRanges::close() {
  if (is_counted(opened_.size() - 1)) note("cuptiRangeProfilerPopRange", session_.pop());
}

void ModuleRanges::note(const char* function, CUptiResult result) {
  if (result == CUPTI_SUCCESS || failed_ != nullptr) return;
  failed_ = function;
  failure_ = result;
}

std::string range_name(std::size_t ordinal, LaunchId id) { return std::to_string(ordinal) + ":" + std::to_string(id); }

std::optional<RangeName> read_range_name(std::string_view name) {
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  RangeName read;
  const char* const begin = std::to_address(name.begin());
  const char* const end = begin + name.size();
  std::from_chars_result parsed = std::from_chars(begin, end, read.ordinal);
  if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == ':') {
    parsed = std::from_chars(parsed.ptr + 1, end, read.id);
  }
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return read;
}

}  // namespace roofprof::cupti
