#include "observe/collectives/collective_log.h"

#include <ATen/core/ivalue.h>
#include <torch/custom_class.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "observe/operators/operands.h"

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
  call.tells_end = false;
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
    if (!call.tells_end) {
      ++pass.without_end;
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

namespace {

template <class Class, class Values>
c10::intrusive_ptr<Class> object_in(const Values& values) {
  for (const auto& value : values) {
    if (!value.isObject()) continue;
    if (*value.type() == *c10::getCustomClassType<c10::intrusive_ptr<Class>>())
      return value.template toCustomClass<Class>();
  }
  return {};
}

// A group may have a backend for each kind of device.
std::string backend_of(c10d::ProcessGroup& group, c10::ArrayRef<const c10::IValue> inputs) {
  std::optional<c10::DeviceType> device;
  for (const auto& value : inputs) {
    for_each_tensor(value, [&](const at::TensorImpl& tensor, std::size_t) { device = tensor.device_type(); });
    if (device) break;
  }
  try {
    return device ? group.getBackend(*device)->getBackendName() : group.getBackendName();
  } catch (const std::exception&) {
    return group.getBackendName();
  }
}

c10::intrusive_ptr<c10::ivalue::Future> future_of(c10d::Work& work) {
  try {
    return work.getFuture();
  } catch (const std::exception&) {
    return {};
  }
}

bool is_between_two(std::string_view op) { return op.starts_with("c10d::send") || op.starts_with("c10d::recv"); }

}  // namespace

void begin_collective(CollectiveLog& log, const at::RecordFunction& fn, RunningCollective& running, Ticks now) {
  const auto group = object_in<c10d::ProcessGroup>(fn.inputs());
  if (!group) return;
  const auto backend = backend_of(*group, fn.inputs());
  running.group = log.group(group->getGroupName(), backend, group->getSize());
  running.record = &fn;
  // torch's fake backend stands for ranks that do not exist: nothing is sent.
  if (backend != "fake") running.call = log.begin(running.group, now, !is_between_two(fn.name()));
}

void follow_collective(const std::shared_ptr<CollectiveLog>& log, const at::RecordFunction& fn,
                       const RunningCollective& running) {
  if (running.call == CollectiveLog::kNone) return;
  const auto call = running.call;
  const auto work = object_in<c10d::Work>(fn.outputs());
  // Inside a coalescing block there is one Work for all of its calls, at its end; an op that raised has none.
  if (!work) {
    log->never_ends(call);
    return;
  }
  const auto future = future_of(*work);
  if (!future) {
    log->end_when_released(call, work);
  } else if (!future->devices().empty()) {
    log->never_ends(call);  // it is complete when it is enqueued on a stream: kernels tell its time
  } else {
    future->addCallback([log, call](c10::ivalue::Future& done) { log->end(call, now_ticks(), done.hasError()); });
  }
}

}  // namespace roofprof::observe
