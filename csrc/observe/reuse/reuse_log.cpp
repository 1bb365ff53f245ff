#include "observe/reuse/reuse_log.h"

#include <algorithm>

namespace roofprof::observe {
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
  for (const auto& operand : operands) moved_.push_back({operand.memory, operand.device, {}});
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
  for (const auto& [table, buckets] : by_table_) {
    for (std::uint32_t bucket = 0; bucket < buckets.size(); ++bucket) {
      if (buckets[bucket].empty()) continue;
      const auto op = op_of({table, bucket});
      if (op >= 0) add_reuse(ops[static_cast<std::size_t>(op)].reuse, buckets[bucket]);
    }
  }
}

}  // namespace roofprof::observe
