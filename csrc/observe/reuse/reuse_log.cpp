#include "observe/reuse/reuse_log.h"

#include <algorithm>
#include <iterator>
#include <tuple>
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

// Returns the interval that is just that memory; the end where there is none.
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

// Returns the first interval that ends behind `begin`.
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

namespace {

// More operands than this (foreach lists) are not compared with each other: the comparison is quadratic.
constexpr std::size_t kMostCompared = 32;

// Returns the bytes that the op moves of this operand.
ReusedBytes moved_of(const Operand& operand, const Work& work) {
  const std::int64_t bytes = operand.memory.bytes;
  const bool is_written = operand.kind != Operand::Kind::input;
  const bool is_read =
      operand.kind == Operand::Kind::input || (operand.kind == Operand::Kind::written_input && work.updated_bytes > 0);
  ReusedBytes moved;
  if (is_read) moved.read_bytes = std::min(bytes, work.read_bytes);
  if (is_written) moved.write_bytes = std::min(bytes, work.write_bytes);
  if (is_read && is_written) {
    moved.updated_bytes = std::min({moved.read_bytes, moved.write_bytes, work.updated_bytes});
  }
  return moved;
}

// Returns the share `part` of `whole` of the moved bytes, at that distance.
ReusedBytes part_of(const ReusedBytes& moved, std::int64_t part, std::int64_t whole, std::int64_t distance) {
  const auto of = [&](std::int64_t bytes) {
    if (part == whole) return bytes;
    return static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(part) /
                                     static_cast<double>(whole));
  };
  return {distance, of(moved.read_bytes), of(moved.write_bytes), of(moved.updated_bytes)};
}

}  // namespace

ReuseTracker& ReuseLog::tracker_of(std::int32_t device) {
  for (auto& [known, tracker] : trackers_) {
    if (known == device) return tracker;
  }
  return trackers_.emplace_back(device, ReuseTracker()).second;
}

Reuse& ReuseLog::reuse_at(Place place) {
  auto& buckets = by_table_[place.first];
  if (place.second >= buckets.size()) buckets.resize(place.second + 64);
  return buckets[place.second];
}

void ReuseLog::count(Place place, std::span<const Operand> operands, const Work& work) {
  if (work.bytes() <= 0) return;
  const std::lock_guard guard(mutex_);
  moved_.clear();
  for (const auto& operand : operands) {
    if (operand.device == Operand::kNowhere) continue;
    const auto bytes = moved_of(operand, work);
    const auto touched = std::max(bytes.read_bytes, bytes.write_bytes);
    if (touched <= 0) continue;
    const auto is_same = [&](const Moved& other) {  // a repeated view moves once
      return other.device == operand.device && other.memory.begin == operand.memory.begin &&
             other.memory.end == operand.memory.end;
    };
    if (moved_.size() <= kMostCompared && std::ranges::any_of(moved_, is_same)) continue;
    moved_.push_back({{operand.memory.begin, operand.memory.end, touched}, operand.device, bytes});
  }
  move(place, true);
}

void ReuseLog::touch(std::span<const Operand> operands) {
  const std::lock_guard guard(mutex_);
  moved_.clear();
  for (const auto& operand : operands) {
    if (operand.device != Operand::kNowhere) moved_.push_back({operand.memory, operand.device, {}});
  }
  move({}, false);
}

void ReuseLog::move(Place place, bool counts) {
  if (moved_.empty()) return;
  ++op_;
  if (counts) {
    auto& reuse = reuse_at(place);
    for (const auto& [memory, device, bytes] : moved_) {
      parts_.clear();
      tracker_of(device).look_up(memory, parts_);
      for (const auto& part : parts_) {
        const auto moved = part_of(bytes, part.memory.bytes, memory.bytes, part.distance);
        if (part.distance == ReuseTracker::kNever) {
          first_touches_.push_back({op_, place, {part.memory, device, moved}});
        } else {
          add_reuse(reuse, moved);
        }
      }
    }
  }
  for (const auto& moved : moved_) tracker_of(moved.device).touch(moved.memory);
  for (auto& [device, tracker] : trackers_) tracker.next_op();
}

void ReuseLog::collect(std::vector<Pass::Op>& ops, const std::function<std::int64_t(Place)>& op_of) {
  const std::lock_guard guard(mutex_);
  // The beginning of the next pass: of what an op touches there, all but the first touches is what the pass touched
  // since, again.
  for (auto first = first_touches_.begin(); first != first_touches_.end();) {
    const auto next = std::find_if(first, first_touches_.end(), [&](const auto& of) { return of.op != first->op; });
    for (auto touch = first; touch != next; ++touch) {
      auto& tracker = tracker_of(touch->moved.device);
      parts_.clear();
      tracker.look_up(touch->moved.memory, parts_);
      for (const auto& part : parts_) {
        const auto distance = part.distance == ReuseTracker::kNever ? tracker.total() : part.distance;
        add_reuse(reuse_at(touch->place),
                  part_of(touch->moved.bytes, part.memory.bytes, touch->moved.memory.bytes, distance));
      }
    }
    for (; first != next; ++first) tracker_of(first->moved.device).touch(first->moved.memory);
    for (auto& [device, tracker] : trackers_) tracker.next_op();
  }
  first_touches_.clear();
  // An op's parts of several tables, which are in no order: a sum depends on that of its parts.
  std::map<std::int64_t, Reuse> parts;
  for (const auto& [table, buckets] : by_table_) {
    for (std::uint32_t bucket = 0; bucket < buckets.size(); ++bucket) {
      if (buckets[bucket].empty()) continue;
      const auto op = op_of({table, bucket});
      if (op >= 0) std::ranges::copy(buckets[bucket], std::back_inserter(parts[op]));
    }
  }
  for (auto& [op, reuse] : parts) {
    std::ranges::sort(reuse, {}, [](const ReusedBytes& part) {
      return std::tuple(part.distance_bytes, part.read_bytes, part.write_bytes, part.updated_bytes);
    });
    add_reuse(ops[static_cast<std::size_t>(op)].reuse, reuse);
  }
}

}  // namespace roofprof::observe
