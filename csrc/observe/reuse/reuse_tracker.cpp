#include "observe/reuse/reuse_tracker.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace roofprof::observe {
namespace {

std::int64_t length(std::uintptr_t begin, std::uintptr_t end) { return static_cast<std::int64_t>(end - begin); }

// Returns the bytes of an interval that lie in a part of it.
std::int64_t share(std::int64_t bytes, std::int64_t part, std::int64_t whole) {
  if (bytes == whole) return part;
  return static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

// The interval that is just that memory; the end where there is none.
ReuseTracker::Intervals::iterator ReuseTracker::find(const TouchedMemory& memory) {
  auto& found = found_[slot_of(memory.begin)];
  if (found.begin != memory.begin || memory.begin == 0) {
    const auto interval = intervals_.find(memory.begin);
    if (interval == intervals_.end()) return interval;
    found = {memory.begin, interval};
  }
  return found.interval->second.end == memory.end ? found.interval : intervals_.end();
}

ReuseTracker::Intervals::const_iterator ReuseTracker::erase(Intervals::const_iterator interval) {
  auto& found = found_[slot_of(interval->first)];
  if (found.begin == interval->first) found.begin = 0;
  return intervals_.erase(interval);
}

// The first interval that ends behind `begin`.
ReuseTracker::Intervals::const_iterator ReuseTracker::first_behind(std::uintptr_t begin) const {
  auto interval = intervals_.upper_bound(begin);
  if (interval != intervals_.begin() && std::prev(interval)->second.end > begin) --interval;
  return interval;
}

std::int64_t ReuseTracker::touched_since(std::size_t op) const {
  std::int64_t before = 0;
  for (std::size_t i = op - 1; i > 0; i &= i - 1) before += sums_[i];
  return total_ - before;
}

void ReuseTracker::add_to_tree(std::size_t op, std::int64_t bytes) {
  for (std::size_t i = op; i < sums_.size(); i += i & (~i + 1)) sums_[i] += bytes;
}

void ReuseTracker::forget(std::size_t op, std::int64_t bytes) {
  total_ -= bytes;
  if (op == op_) {
    of_this_op_ -= bytes;
  } else {
    add_to_tree(op, -bytes);
  }
}

void ReuseTracker::look_up(const TouchedMemory& memory, std::vector<Part>& parts) {
  if (const auto known = find(memory); known != intervals_.end()) {
    parts.push_back({memory, touched_since(known->second.op)});
    return;
  }
  const std::int64_t whole = length(memory.begin, memory.end);
  const auto add_part = [&](std::uintptr_t begin, std::uintptr_t end, std::int64_t distance) {
    parts.push_back({{begin, end, share(memory.bytes, length(begin, end), whole)}, distance});
  };
  const std::int64_t unknown = forgot_ ? total_ : kNever;
  std::uintptr_t at = memory.begin;
  auto interval = first_behind(memory.begin);
  for (; interval != intervals_.end() && interval->first < memory.end; ++interval) {
    const auto begin = std::max(interval->first, memory.begin);
    const auto end = std::min(interval->second.end, memory.end);
    if (begin > at) add_part(at, begin, unknown);
    add_part(begin, end, touched_since(interval->second.op));
    at = end;
  }
  if (at < memory.end) add_part(at, memory.end, unknown);
}

void ReuseTracker::touch(const TouchedMemory& memory) {
  if (memory.end <= memory.begin) return;
  std::int64_t covered = 0;
  auto interval = find(memory);
  if (interval != intervals_.end()) {
    covered = interval->second.bytes;
    forget(interval->second.op, covered);
  } else {
    auto next = first_behind(memory.begin);
    while (next != intervals_.end() && next->first < memory.end) {
      const std::uintptr_t begin = next->first;
      const Interval known = next->second;
      next = erase(next);
      const auto keep = [&](std::uintptr_t from, std::uintptr_t to) {
        const auto bytes = share(known.bytes, length(from, to), length(begin, known.end));
        next = std::next(intervals_.emplace_hint(next, from, Interval{to, bytes, known.op}));
        return bytes;
      };
      std::int64_t kept = 0;
      if (begin < memory.begin) kept += keep(begin, memory.begin);
      if (known.end > memory.end) kept += keep(memory.end, known.end);
      forget(known.op, known.bytes - kept);
      covered += known.bytes - kept;
    }
    interval = intervals_.emplace_hint(next, memory.begin, Interval{memory.end, 0, 0});
  }
  // Memory that was touched in the gaps of a view still counts.
  interval->second.bytes = std::min(std::max(memory.bytes, covered), length(memory.begin, memory.end));
  interval->second.op = op_;
  of_this_op_ += interval->second.bytes;
  total_ += interval->second.bytes;
}

void ReuseTracker::next_op() {
  if (of_this_op_ == 0) return;
  add_to_tree(op_, std::exchange(of_this_op_, 0));
  ++op_;
  if (op_ >= sums_.size() || intervals_.size() > kMost) renumber();
}

// Ops whose memory was touched again since need no number.
void ReuseTracker::renumber() {
  std::vector<Intervals::iterator> by_op;
  by_op.reserve(intervals_.size());
  for (auto interval = intervals_.begin(); interval != intervals_.end(); ++interval) by_op.push_back(interval);
  std::ranges::stable_sort(by_op, {}, [](const auto& interval) { return interval->second.op; });
  if (by_op.size() > kMost) {
    const auto kept = by_op.end() - static_cast<std::ptrdiff_t>(kMost / 2);
    for (auto old = by_op.begin(); old != kept; ++old) {
      total_ -= (*old)->second.bytes;
      erase(*old);
    }
    by_op.erase(by_op.begin(), kept);
    forgot_ = true;
  }
  std::size_t before = 0;
  op_ = 0;
  for (const auto& interval : by_op) {
    if (std::exchange(before, interval->second.op) != interval->second.op) ++op_;
    interval->second.op = op_;
  }
  ++op_;
  sums_.assign(2 * op_ > sums_.size() ? 2 * sums_.size() : sums_.size(), 0);
  for (const auto& interval : by_op) add_to_tree(interval->second.op, interval->second.bytes);
}

}  // namespace roofprof::observe
