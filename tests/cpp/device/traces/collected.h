#pragma once
// Delivers to the collector what CUPTI would have delivered while the program of a trace ran.

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <cupti.h>

#include "core/run_record.h"
#include "device/cupti/tracer.h"
#include "device/nvidia/driver.h"
#include "kineto/counted_ops.h"
#include "support/fake_libraries.h"

namespace roofprof::testing {

// Threads by number. Each keeps its own launch ids, as the threads of the recorded program did.
class Threads {
 public:
  // Returns when that thread has done the work.
  void run(std::uint32_t thread, const std::function<void()>& work) {
    auto& worker = workers_[thread];
    if (!worker) worker = std::make_unique<Worker>();
    worker->run(work);
  }

 private:
  class Worker {
   public:
    ~Worker() {
      give(nullptr, true);
      thread_.join();
    }
    void run(const std::function<void()>& work) {
      give(&work, false);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return work_ == nullptr; });
    }

   private:
    void give(const std::function<void()>* work, bool last) {
      {
        const std::lock_guard lock(mutex_);
        work_ = work;
        last_ = last;
      }
      changed_.notify_all();
    }
    void loop() {
      std::unique_lock lock(mutex_);
      while (true) {
        changed_.wait(lock, [this] { return work_ != nullptr || last_; });
        if (last_) return;
        (*work_)();
        work_ = nullptr;
        changed_.notify_all();
      }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* work_ = nullptr;
    bool last_ = false;
    std::thread thread_{[this] { loop(); }};
  };
  std::map<std::uint32_t, std::unique_ptr<Worker>> workers_;
};

// The way in which CUPTI delivers its records.
struct Delivery {
  long long room = 0;              // bytes used of each buffer; 0: all
  long long kernel_bytes = 224;    // of a kernel's record: 208 of CUPTI 12, 216 of 13.0, 224 of 13.1 and later
  long long copy_bytes = 88;       // of a copy's
  bool reversed = false;           // the last record comes first
  bool on_its_own_thread = false;  // not on one that launches
  std::size_t buffer_bytes = std::size_t{1} << 20;
  long long drop_every = 0;  // n: every n-th kernel, copy or fill has no room
  bool by_ids = false;       // another client has the callbacks
};

// One step of the recorded program.
struct Moment {
  enum class What : std::uint8_t { enter, leave, call, done };
  std::int64_t at_ns = 0;
  What what = What::enter;
  std::uint32_t thread = 0;
  LaunchId id = kNoLaunch;            // that is pushed; of a call: under which it launches
  unsigned correlation = 0;           // of a call
  const KernelRecord* ran = nullptr;  // of work that is done
};

// Ids of ops and modules that launch nothing by themselves: an observer pushes theirs too.
inline constexpr LaunchId kOfNoLaunch = 1'000'000'000;

// Ops and modules begin and end, calls of CUDA's are made, in time order; each thread's are nested. `under`: the id
// that stands for what launched, by correlation.
inline std::vector<Moment> moments_of(std::vector<kineto::HostEvent> host,
                                      const std::unordered_map<std::uint64_t, LaunchId>& under) {
  using kineto::HostKind;
  const auto tree = kineto::host_tree(host);
  std::map<std::uint32_t, std::vector<Moment>> by_thread;
  std::map<std::uint32_t, std::vector<std::int32_t>> open;
  const auto close_until = [&](std::uint32_t thread, std::int32_t around) {
    auto& stack = open[thread];
    auto& moments = by_thread[thread];
    while (!stack.empty() && stack.back() != around) {
      const auto end = std::max(host[kineto::at(stack.back())].end_ns, moments.back().at_ns);
      moments.push_back({end, Moment::What::leave, thread});
      stack.pop_back();
    }
  };
  for (std::size_t i = 0; i < host.size(); ++i) {
    const auto& event = host[i];
    if (event.kind == HostKind::range || event.kind == HostKind::recompute) continue;
    auto around = tree.parents[i];
    while (around != kineto::kNone &&
           (host[kineto::at(around)].kind == HostKind::range || host[kineto::at(around)].kind == HostKind::recompute ||
            host[kineto::at(around)].kind == HostKind::launch)) {
      around = tree.parents[kineto::at(around)];
    }
    close_until(event.thread, around);
    auto& moments = by_thread[event.thread];
    const auto begin = moments.empty() ? event.begin_ns : std::max(event.begin_ns, moments.back().at_ns);
    if (event.kind == HostKind::launch) {
      const auto id = under.find(event.correlation);
      moments.push_back({begin, Moment::What::call, event.thread, id == under.end() ? kNoLaunch : id->second,
                         static_cast<unsigned>(event.correlation)});
    } else {
      moments.push_back({begin, Moment::What::enter, event.thread, kOfNoLaunch + i});
      open[event.thread].push_back(static_cast<std::int32_t>(i));
    }
  }
  std::vector<Moment> all;
  for (auto& [thread, moments] : by_thread) {
    close_until(thread, kineto::kNone);
    all.insert(all.end(), moments.begin(), moments.end());
  }
  return all;
}

inline int memory_kind(Memory memory) {
  switch (memory) {
    case Memory::pageable:
      return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    case Memory::pinned:
      return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    case Memory::device:
      return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    case Memory::managed:
      return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
    case Memory::unknown:
      break;
  }
  return CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN;
}

inline int copy_kind(const KernelRecord& copy) {
  const bool from = copy.from == Memory::device;
  const bool to = copy.to == Memory::device;
  if (copy.to_device != copy.device) return CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  if (from) return to ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  return to ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD : CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
}

inline void run_on_device(const KernelRecord& record, const std::vector<std::string>& names) {
  FakeLaunch launch{};
  launch.kind = static_cast<int>(record.kind);
  if (record.kind == KernelKind::kernel) launch.name = names.at(record.name).c_str();
  launch.device = record.device;
  launch.stream = record.stream;
  launch.start_ns = record.start_ns;
  launch.duration_ns = record.end_ns - record.start_ns;
  for (int axis = 0; axis < 3; ++axis) {
    launch.grid[axis] = record.grid[static_cast<std::size_t>(axis)];
    launch.block[axis] = record.block[static_cast<std::size_t>(axis)];
  }
  launch.bytes = static_cast<unsigned long long>(record.bytes);
  launch.graph = record.graph_node != 0 ? 1 : 0;
  launch.graph_node = record.graph_node;
  launch.correlation = static_cast<unsigned>(record.correlation);
  if (record.kind == KernelKind::copy) {
    launch.copy_kind = copy_kind(record);
    launch.to_device = record.to_device;
    launch.from_memory = memory_kind(record.from);
  }
  launch.to_memory = memory_kind(record.to);
  fake_launch(&launch);
}

inline void advance_to(std::int64_t time_ns) { fake_advance(std::max<std::int64_t>(0, time_ns - fake_now())); }

// The collector's trace of the program that `host` is of, which ran `device` and launched it under the ids of those
// records. Its times are those of `device`.
inline DeviceTrace collected(const std::vector<kineto::HostEvent>& host, const DeviceTrace& device,
                             const Delivery& delivery) {
  fake_reset();
  fake_set("launch_ns", 0);
  fake_set("activity_room", delivery.room);
  fake_set("kernel_record_bytes", delivery.kernel_bytes);
  fake_set("copy_record_bytes", delivery.copy_bytes);
  fake_set("activity_reversed", delivery.reversed ? 1 : 0);
  fake_set("activity_drop_every", delivery.drop_every);
  fake_set("activity_thread", delivery.on_its_own_thread ? 1 : 0);

  std::unordered_map<std::uint64_t, LaunchId> under;
  for (const auto& record : device.records) under.try_emplace(record.correlation, record.launch);
  auto moments = moments_of(host, under);
  for (const auto& record : device.records) {
    moments.push_back({record.end_ns, Moment::What::done, 0, kNoLaunch, 0, &record});
  }
  std::ranges::stable_sort(moments, {}, &Moment::at_ns);

  advance_to(device.start_ns);
  const cupti::Api& api = cupti::api();
  CUpti_SubscriberHandle other = nullptr;
  if (delivery.by_ids) {
    api.cuptiSubscribe(&other, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr);
  }
  cupti::Tracer tracer(api, [] { cuda::synchronize_all(cuda::driver()); }, {.buffer_bytes = delivery.buffer_bytes});
  tracer.start();
  LaunchMarker& marker = *tracer.marker();
  const auto make = [&](const Moment& moment) {
    advance_to(moment.at_ns);
    switch (moment.what) {
      case Moment::What::enter:
        return marker.push(moment.id, LaunchLevel::module);
      case Moment::What::leave:
        return marker.pop(LaunchLevel::module);
      case Moment::What::call:
        if (moment.id != kNoLaunch) marker.push(moment.id, LaunchLevel::op);
        fake_call(moment.correlation);
        if (moment.id != kNoLaunch) marker.pop(LaunchLevel::op);
        return;
      case Moment::What::done:
        return run_on_device(*moment.ran, device.names);
    }
  };
  Threads threads;
  for (std::size_t first = 0; first < moments.size();) {
    std::size_t last = first;
    while (last < moments.size() && moments[last].thread == moments[first].thread) ++last;
    threads.run(moments[first].thread, [&] { std::for_each(moments.begin() + first, moments.begin() + last, make); });
    first = last;
  }
  advance_to(device.end_ns);
  return tracer.stop();
}

}  // namespace roofprof::testing
