#include "join/device_timeline.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "core/interval.h"

namespace roofprof {

namespace {

void append(Intervals& to, const Intervals& from) { to.insert(to.end(), from.begin(), from.end()); }

class Timeline {
 public:
  explicit Timeline(const std::vector<Module>& modules) : modules_(modules), times_(modules.size()) {
    for (std::size_t id = 0; id < times_.size(); ++id) times_[id].module = static_cast<ModuleId>(id);
  }

  void add_device(const std::vector<Launch>& by_start, const DeviceTrace& trace) {
    add_idle(by_start, trace);
    add_busy(by_start);
  }

  DeviceTimeline take() {
    std::erase_if(times_, [](const DeviceTime& time) { return time.busy_ns == 0 && time.idle_ns == 0; });
    return {std::move(times_), busy_ns_};
  }

 private:
  DeviceTime& at(ModuleId module) { return times_[static_cast<std::size_t>(module)]; }

  void add_idle(const std::vector<Launch>& by_start, const DeviceTrace& trace) {
    std::int64_t worked_until = trace.start_ns > 0 ? trace.start_ns : by_start.front().record->start_ns;
    for (const auto& launch : by_start) {
      const std::int64_t gap = launch.record->start_ns - worked_until;
      if (gap > 0) at(launch.owner->owner.module).idle_ns += gap;
      worked_until = std::max(worked_until, launch.record->end_ns);
    }
    if (trace.end_ns > worked_until) at(kModel).idle_ns += trace.end_ns - worked_until;
  }

  // Parents stand before children, so one walk from the end carries every subtree's intervals up.
  void add_busy(const std::vector<Launch>& by_start) {
    std::vector<Intervals> below(modules_.size());
    std::vector<Intervals> own(modules_.size());
    for (const auto& launch : by_start) {
      own[static_cast<std::size_t>(launch.owner->owner.module)].push_back(
          {launch.record->start_ns, launch.record->end_ns});
    }
    Intervals everything;
    for (std::size_t id = modules_.size(); id-- > 0;) {
      unite(own[id]);
      times_[id].self_busy_ns += length_of(own[id]);
      append(below[id], own[id]);
      unite(below[id]);
      times_[id].busy_ns += length_of(below[id]);
      const ModuleId parent = modules_[id].parent;
      append(parent >= 0 ? below[static_cast<std::size_t>(parent)] : everything, below[id]);
      below[id] = {};
    }
    unite(everything);
    busy_ns_ += length_of(everything);
  }

  const std::vector<Module>& modules_;
  std::vector<DeviceTime> times_;
  std::int64_t busy_ns_ = 0;
};

}  // namespace

DeviceTimeline device_timeline(const Launches& launches, const std::vector<Module>& modules) {
  std::map<std::uint32_t, std::vector<Launch>> by_device;
  for (const auto& launch : launches.in_order) by_device[launch.record->device].push_back(launch);
  Timeline timeline(modules);
  for (auto& [device, by_start] : by_device) {
    // If several start together, the first one launched ended the gap.
    std::stable_sort(by_start.begin(), by_start.end(),
                     [](const Launch& a, const Launch& b) { return a.record->start_ns < b.record->start_ns; });
    timeline.add_device(by_start, *launches.trace);
  }
  return timeline.take();
}

}  // namespace roofprof
