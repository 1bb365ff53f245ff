#include "join/device_join.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/counted_bytes.h"
#include "core/interval.h"
#include "core/note_codes.h"
#include "core/off_device.h"
#include "join/counter_join.h"
#include "join/device_launches.h"

namespace roofprof {

namespace {

void append(Intervals& to, const Intervals& from) { to.insert(to.end(), from.begin(), from.end()); }

bool is_copy_to_host(const KernelRecord& record) {
  return record.kind == KernelKind::copy && (record.to == Memory::pageable || record.to == Memory::pinned);
}

Intervals work_of_others(const DeviceTrace& trace, std::uint32_t device) {
  Intervals work;
  for (const auto& one : trace.others) {
    if (one.device == device) work.push_back({one.start_ns, one.end_ns});
  }
  unite(work);
  return work;
}

// Returns how long it is from `begin_ns` to `end_ns` without what these cover.
std::int64_t time_without(const Intervals& united, std::int64_t begin_ns, std::int64_t end_ns) {
  if (end_ns <= begin_ns) return 0;
  std::int64_t left_ns = end_ns - begin_ns;
  auto at = std::ranges::upper_bound(united, begin_ns, {}, &Interval::end_ns);
  for (; at != united.end() && at->begin_ns < end_ns; ++at) {
    left_ns -= std::min(end_ns, at->end_ns) - std::max(begin_ns, at->begin_ns);
  }
  return left_ns;
}

class Timeline {
 public:
  Timeline(const std::vector<Module>& modules, std::int64_t observing_ns)
      : modules_(modules), observing_ns_(observing_ns), times_(modules.size()) {
    for (std::size_t id = 0; id < times_.size(); ++id) times_[id].module = static_cast<ModuleId>(id);
  }

  void add_device(const std::vector<Launch>& by_start, const DeviceTrace& trace) {
    add_idle(by_start, trace);
    add_busy(by_start);
  }

  DeviceTimeline take() {
    std::erase_if(times_, [](const DeviceTime& time) { return time.busy_ns == 0 && time.idle_ns == 0; });
    const auto basis = observing_ns_ > 0 ? IdleBasis::observing : IdleBasis::seen;
    return {std::move(times_), busy_ns_, before_ns_, after_ns_, basis, observing_ns_};
  }

 private:
  DeviceTime& at(ModuleId module) { return times_[static_cast<std::size_t>(module)]; }

  void add_idle(const std::vector<Launch>& by_start, const DeviceTrace& trace) {
    const auto others = work_of_others(trace, by_start.front().record->device);
    const auto first_ns = by_start.front().record->start_ns;
    if (trace.start_ns > 0) {
      before_ns_ += std::max<std::int64_t>(time_without(others, trace.start_ns, first_ns) - observing_ns_, 0);
    }
    std::int64_t worked_until = first_ns;
    std::int64_t late_launches = -1;  // since the last gap; the first launch ends none
    bool host_waited = false;         // for the copy before
    for (const auto& launch : by_start) {
      const std::int64_t gap = time_without(others, worked_until, launch.record->start_ns);
      late_launches = host_waited ? 1 : late_launches + 1;
      if (gap > 0) {
        const auto late_ns = saturating_multiply(late_launches, observing_ns_);
        at(launch.owner->owner.module).idle_ns += std::max<std::int64_t>(gap - late_ns, 0);
        late_launches = 0;
      }
      host_waited = is_copy_to_host(*launch.record);
      worked_until = std::max(worked_until, launch.record->end_ns);
    }
    after_ns_ += time_without(others, worked_until, trace.end_ns);
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
  const std::int64_t observing_ns_;
  std::vector<DeviceTime> times_;
  std::int64_t busy_ns_ = 0;
  std::int64_t before_ns_ = 0;
  std::int64_t after_ns_ = 0;
};

// Charges every gap between two launches, in which a device ran nothing, to the module whose launch ended it. So on
// each device busy and idle, before and after add up to the time from the trace's start (the first launch where that is
// not known) to its end (the last one's). A device that ran nothing does not count. `observing_ns` for each launch
// since the gap before is taken off a gap, as the host came so much later: no launch is late by more than its gap, and
// none that a copy to the host kept waiting.
DeviceTimeline device_timeline(const Launches& launches, const std::vector<Module>& modules,
                               std::int64_t observing_ns) {
  std::map<std::uint32_t, std::vector<Launch>> by_device;
  for (const auto& launch : launches.in_order) by_device[launch.record->device].push_back(launch);
  Timeline timeline(modules, observing_ns);
  for (auto& [device, by_start] : by_device) {
    // If several start together, the first one launched ended the gap.
    std::stable_sort(by_start.begin(), by_start.end(),
                     [](const Launch& a, const Launch& b) { return a.record->start_ns < b.record->start_ns; });
    timeline.add_device(by_start, *launches.trace);
  }
  return timeline.take();
}

}  // namespace

DeviceTrace within_pass(DeviceTrace trace, Pass& pass) {
  if (trace.start_ns == 0) return trace;
  trace.start_ns -= std::exchange(pass.trace_start_ns, 0);
  trace.end_ns = trace.start_ns + pass.wall_ns;
  return trace;
}

namespace {

// "cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4", "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc":
// of operands in fp32, instructions of 16 x 8 x 8 are those of TF32.
bool is_tensor_float(const std::string& kernel) {
  return kernel.find("tf32") != std::string::npos || kernel.find("tensorop_s1688") != std::string::npos;
}

}  // namespace

std::vector<std::string> set_tensor_float(std::vector<OpBucket>& ops, const std::vector<KernelBucket>& kernels) {
  std::set<std::int64_t> products;
  for (const auto& kernel : kernels) {
    if (kernel.bucket < 0 || !is_tensor_float(kernel.name)) continue;
    const auto& op = ops[static_cast<std::size_t>(kernel.bucket)];
    if (op.dtype == DType::fp32 && op.work.macs > 0) products.insert(kernel.bucket);
  }
  std::vector<std::string> named;
  for (const auto index : products) {
    auto& op = ops[static_cast<std::size_t>(index)];
    const auto operations = std::min(saturating_multiply(2, op.work.macs), op.work.operations_in(DType::fp32));
    op.work.operations_in(DType::fp32) -= operations;
    op.work.operations_in(DType::tf32) += operations;
    op.dtype = DType::tf32;
    if (std::ranges::find(named, op.op) == named.end()) named.push_back(op.op);
  }
  return named;
}

namespace {

// The clock's figures become the host's; a module's time is the sum of its launches' durations, in every run. What ran
// ops and launched nothing took no time, and so did the model itself.
std::vector<ModuleTime> device_module_times(std::vector<ModuleTime> times, const std::vector<Launches>& launches,
                                            const std::vector<OpBucket>& ops, const std::vector<Module>& modules) {
  std::map<Owner, std::vector<std::int64_t>> sums;
  sums[{kModel, Phase::forward, kNoRegion}].resize(launches.size());
  for (const auto& bucket : ops) {
    const bool in_region = modules[index_of(bucket.owner.module)].compiled_region >= 0;
    if (!in_region) sums[bucket.owner].resize(launches.size());
  }
  for (std::size_t run = 0; run < launches.size(); ++run) {
    for (const auto& launch : launches[run].in_order) {
      auto& by_run = sums[launch.owner->owner];
      by_run.resize(launches.size());
      by_run[run] = saturating_add(by_run[run], launch.duration_ns());
    }
  }
  for (auto& time : times) {
    time.host_self_ns = std::move(time.self_ns);
    time.self_ns.clear();
    const auto found = sums.find(time.owner);
    if (found != sums.end()) {
      time.self_ns = std::move(found->second);
      sums.erase(found);
    } else if (!time.host_self_ns.empty()) {
      time.self_ns.resize(launches.size());
    }
  }
  for (auto& [owner, by_run] : sums) times.push_back({owner, 0, std::move(by_run), {}});
  return times;
}

// Gives ops the time of the launches that are known to be theirs. Where some launches of an op in a module and phase
// belong to no bucket, any bucket of that op there may lack some, so none gets a time.
std::vector<OpBucket> ops_timed_by(const std::vector<KernelBucket>& kernels, std::vector<OpBucket> ops) {
  const auto shared = ops_with_stray_kernels(kernels);
  for (auto& bucket : ops) {
    bucket.time_ns = 0;
    bucket.link_bytes = 0;
    if (shared.contains({bucket.owner, bucket.op})) bucket.time_ns.reset();
  }
  for (const auto& kernel : kernels) {
    if (kernel.bucket < 0) continue;
    OpBucket& bucket = ops[static_cast<std::size_t>(kernel.bucket)];
    if (bucket.time_ns) bucket.time_ns = saturating_add(*bucket.time_ns, kernel.total_ns);
    if (crosses_host_link(kernel)) bucket.link_bytes = saturating_add(bucket.link_bytes, kernel.bytes);
  }
  return ops;
}

std::vector<Note> notes_on_losses(const Launches& launches) {
  const DeviceTrace& trace = *launches.trace;
  std::vector<Note> notes;
  const std::int64_t incomplete = launches.incomplete();
  if (trace.dropped + incomplete > 0) {
    add_note(notes, "kernels-missing",
             "of the device's records " + std::to_string(trace.dropped) + " were lost and " +
                 std::to_string(incomplete) + " had no start or end: kernels, their times and busy are lower limits");
  }
  if (trace.foreign > 0) {
    add_note(notes, "other-profiler",
             std::to_string(trace.foreign) +
                 " buffers of another profiler's came to this one: kernels may be missing here and there");
  }
  return notes;
}

bool no_counters_available(const CounterTrace& counters) {
  return std::ranges::none_of(counters.sources, [](const CounterSource& source) { return source.missing.empty(); });
}

void check_traces(std::size_t traces, const Runs& runs) {
  if (traces == 0 || traces != runs.total_ns.size()) {
    throw InvalidArgument(std::to_string(traces) + " runs were traced on the device and " +
                          std::to_string(runs.total_ns.size()) + " were timed: they must be the same");
  }
  if (runs.chosen < 0 || std::cmp_greater_equal(runs.chosen, traces)) {
    throw InvalidArgument("none of the traced runs is the chosen one");
  }
}

}  // namespace

Profile with_device(Profile data, const std::vector<const DeviceTrace*>& traces, const std::vector<LaunchOwner>& owners,
                    const std::optional<CounterTrace>& counters, std::int64_t observing_ns) {
  check_traces(traces.size(), data.run.runs);
  check_owners(owners, data.tree.modules.size(), data.counts.ops.size());
  std::vector<Launches> launches;
  launches.reserve(traces.size());
  for (const auto* trace : traces) launches.push_back(launches_of(*trace, owners));
  const auto chosen = static_cast<std::size_t>(data.run.runs.chosen);
  const Launches& shown = launches[chosen];

  DeviceWork device = *data.device;  // what is known of it
  auto kernels = kernel_buckets(shown);
  device.timeline = device_timeline(shown, data.tree.modules, observing_ns);
  auto& times = data.times.make().modules;
  times = device_module_times(std::move(times), launches, data.counts.ops, data.tree.modules);
  data.counts.ops = ops_timed_by(kernels.buckets, std::move(data.counts.ops));
  device.dropped_records = saturating_add(shown.trace->dropped, shown.incomplete());
  device.unattributed_kernels = std::ranges::count(shown.in_order, false, &Launch::attributed);
  add_notes(data.notes, notes_on_losses(shown));
  for (const auto* trace : traces) add_notes(data.notes, trace->notes);

  if (counters) {
    device.counters = {counters->sources, counters->ranges, counters->passes, {}};
    add_notes(data.notes, counters->notes);
  }
  if (counters && !no_counters_available(*counters)) {
    if (counters->ranges == CounterRanges::modules) {
      auto counted = count_modules(*counters, owners);
      device.counters.modules = std::move(counted.modules);
      add_notes(data.notes, counted.notes);
    } else {
      auto counted = count_kernels(*counters, std::move(kernels), launches, chosen, data.run.device, data.tree.modules);
      kernels = {};
      kernels.buckets = std::move(counted.kernels);
      add_notes(data.notes, counted.notes);
    }
  }
  device.kernels = std::move(kernels.buckets);
  data.device = std::move(device);
  set_counted_bytes(data.counts, *data.device);
  set_off_device(data.counts, data.tree, data.device);
  std::ranges::stable_sort(data.device.make().kernels, std::ranges::greater(), &KernelBucket::total_ns);
  return data;
}

}  // namespace roofprof
