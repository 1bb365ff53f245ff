#include "observe/collectives/collective_log.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace roofprof::observe {

std::int64_t CollectiveLog::group(const std::string& name, const std::string& backend, std::int64_t ranks) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(seen_.groups, name, &ProcessGroup::name);
  if (known != seen_.groups.end()) return known - seen_.groups.begin();
  seen_.groups.push_back({name, backend, ranks});
  numbers_.push_back(0);
  return std::ssize(seen_.groups) - 1;
}

CollectiveLog::Id CollectiveLog::begin(std::int64_t group, Ticks begun, bool is_of_all) {
  const std::lock_guard lock(mutex_);
  if (std::ssize(seen_.timed) >= kCollectivesTimed) {
    ++seen_.left_out;
    return kNone;
  }
  auto& given = numbers_[static_cast<std::size_t>(group)];
  seen_.timed.push_back({.group = group, .sequence = is_of_all ? given++ : -1, .begin = begun});
  under_way_.fetch_add(1, std::memory_order_relaxed);
  return static_cast<Id>(seen_.timed.size());
}

void CollectiveLog::end_locked(Id id, Ticks ended, bool failed) {
  auto& call = seen_.timed[id - 1];
  if (call.end != 0) return;
  call.end = ended;
  call.failed = failed;
  last_end_.store(std::max(ended, last_end_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  under_way_.fetch_sub(1, std::memory_order_relaxed);
}

void CollectiveLog::end(Id id, Ticks ended, bool failed) {
  const std::lock_guard lock(mutex_);
  end_locked(id, ended, failed);
}

void CollectiveLog::end_when_released(Id id, const c10::intrusive_ptr<c10d::Work>& work) {
  const std::lock_guard lock(mutex_);
  polled_.emplace_back(id, work);
  polled_count_.store(static_cast<int>(polled_.size()), std::memory_order_relaxed);
}

void CollectiveLog::never_ends(Id id) {
  const std::lock_guard lock(mutex_);
  auto& call = seen_.timed[id - 1];
  call.told = false;
  end_locked(id, call.begin, false);
}

void CollectiveLog::count(Id id, std::int64_t group, Place place) {
  const std::lock_guard lock(mutex_);
  ++seen_.calls[{place, group}];
  if (id == kNone) return;
  auto& call = seen_.timed[id - 1];
  call.counted = true;
  call.place = place;
}

void CollectiveLog::poll(Ticks now) {
  std::vector<c10::intrusive_ptr<c10d::Work>> released_after_the_lock;
  const std::lock_guard lock(mutex_);
  std::erase_if(polled_, [&](const auto& polled) {
    const auto work = polled.second.lock();
    bool failed = false;
    if (work) {
      released_after_the_lock.push_back(work);
      try {
        if (!work->isCompleted()) return false;
      } catch (const std::exception&) {
        failed = true;
      }
    }
    end_locked(polled.first, now, failed);
    return true;
  });
  polled_count_.store(static_cast<int>(polled_.size()), std::memory_order_relaxed);
}

void CollectiveLog::settle(Ticks now) {
  constexpr std::chrono::milliseconds kLongest{10};
  if (wants_poll()) poll(now);
  const auto give_up = std::chrono::steady_clock::now() + kLongest;
  while (under_way_.load(std::memory_order_relaxed) > polled_count_.load(std::memory_order_relaxed) &&
         std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void CollectiveLog::computed(Ticks start, Ticks end) {
  const std::lock_guard lock(mutex_);
  if (seen_.computed.size() < kComputedKept) {
    seen_.computed.emplace_back(start, end);
  } else {
    seen_.computed_until = std::min(seen_.computed_until, start);
  }
}

void CollectiveLog::ran(const Owner& owner, Ticks start, Ticks end) {
  const std::lock_guard lock(mutex_);
  seen_.all_ran = seen_.all_ran && seen_.ran.size() < kComputedKept;
  if (seen_.all_ran) seen_.ran.push_back({owner, start, end});
}

CollectiveLog::Seen CollectiveLog::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

PassCollectives CollectiveLog::collect(const std::function<std::int64_t(Place)>& op_of,
                                       const std::function<std::int64_t(Ticks)>& to_ns) const {
  const Seen seen = this->seen();
  PassCollectives pass;
  pass.groups = seen.groups;
  pass.left_out = seen.left_out;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> counts;  // by op and group
  for (const auto& [key, calls] : seen.calls) {
    const auto op = op_of(key.first);
    if (op < 0) continue;
    const auto [count, fresh] = counts.try_emplace({op, key.second}, std::ssize(pass.counts));
    if (fresh) pass.counts.push_back({op, key.second, 0});
    pass.counts[static_cast<std::size_t>(count->second)].calls += calls;
  }
  for (const auto& call : seen.timed) {
    if (!call.counted) continue;
    const auto count = counts.find({op_of(call.place), call.group});
    if (count == counts.end()) continue;
    if (!call.told) {
      ++pass.untold;
    } else if (call.end == 0 || call.failed) {
      ++pass.unfinished;
    } else {
      pass.calls.push_back({count->second, call.sequence, to_ns(call.begin), to_ns(call.end)});
    }
  }
  for (const auto& ran : seen.ran) {
    pass.ran.push_back({ran.owner, to_ns(ran.start), to_ns(ran.end)});
  }
  pass.all_ran = seen.all_ran;
  for (const auto& [start, end] : seen.computed) pass.computed.push_back({to_ns(start), to_ns(end)});
  if (seen.computed_until != std::numeric_limits<Ticks>::max()) pass.computed_until = to_ns(seen.computed_until);
  return pass;
}

}  // namespace roofprof::observe
