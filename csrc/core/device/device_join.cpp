#include "core/device/device_join.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "core/device/counter_join.h"
#include "core/device/device_launches.h"
#include "core/device/device_timeline.h"
#include "core/device/kernel_buckets.h"

namespace roofprof {

namespace {

// The clock's figures become the host's; a module's time is the sum of its launches' durations, in every run. What ran
// ops and launched nothing took no time, and so did the model itself.
void set_module_times(const std::vector<Launches>& launches, ProfileData& data) {
  std::map<std::pair<ModuleId, Phase>, std::vector<std::int64_t>> sums;
  sums[{kModel, Phase::forward}].resize(launches.size());
  for (const auto& bucket : data.ops) {
    const bool in_region = data.modules[static_cast<std::size_t>(bucket.module)].compiled_region >= 0;
    if (!in_region) sums[{bucket.module, bucket.phase}].resize(launches.size());
  }
  for (std::size_t run = 0; run < launches.size(); ++run) {
    for (const auto& launch : launches[run].in_order) {
      auto& by_run = sums[{launch.place->module, launch.place->phase}];
      by_run.resize(launches.size());
      by_run[run] = saturating_add(by_run[run], launch.duration_ns());
    }
  }
  for (auto& time : data.times) {
    time.host_self_ns = std::move(time.self_ns);
    time.self_ns.clear();
    const auto found = sums.find({time.module, time.phase});
    if (found != sums.end()) {
      time.self_ns = std::move(found->second);
      sums.erase(found);
    } else if (!time.host_self_ns.empty()) {
      time.self_ns.resize(launches.size());
    }
  }
  for (auto& [place, by_run] : sums) data.times.push_back({place.first, place.second, 0, std::move(by_run), {}});
}

// An op's time is that of the launches that are known to be its own. Where some of that op in that module and phase
// belong to no bucket, any bucket of them may be short of them, so none has a time.
void set_op_times(ProfileData& data) {
  std::set<std::tuple<ModuleId, Phase, std::string>> shared;
  for (const auto& kernel : data.kernels) {
    if (kernel.bucket < 0 && !kernel.op.empty()) shared.emplace(kernel.module, kernel.phase, kernel.op);
  }
  for (auto& bucket : data.ops) {
    bucket.time_ns = 0;
    bucket.link_bytes = 0;
    if (shared.contains({bucket.module, bucket.phase, bucket.op})) bucket.time_ns.reset();
  }
  for (const auto& kernel : data.kernels) {
    if (kernel.bucket < 0) continue;
    OpBucket& bucket = data.ops[static_cast<std::size_t>(kernel.bucket)];
    if (bucket.time_ns) bucket.time_ns = saturating_add(*bucket.time_ns, kernel.total_ns);
    if (crosses_host_link(kernel)) bucket.link_bytes = saturating_add(bucket.link_bytes, kernel.bytes);
  }
}

void take_notes(const std::vector<std::string>& notes, ProfileData& data) {
  for (const auto& note : notes) {
    if (std::find(data.notes.begin(), data.notes.end(), note) == data.notes.end()) data.notes.push_back(note);
  }
}

void take_losses(const DeviceTrace& trace, const Launches& launches, ProfileData& data) {
  const std::int64_t incomplete = trace.incomplete + launches.backwards;
  data.dropped_records = saturating_add(data.dropped_records, trace.dropped + incomplete);
  for (const auto& launch : launches.in_order) data.unattributed_kernels += launch.attributed ? 0 : 1;
  if (trace.dropped + incomplete > 0) {
    data.notes.push_back("of the device's records " + std::to_string(trace.dropped) + " were lost and " +
                         std::to_string(incomplete) +
                         " had no start or end: kernels, their times and busy are lower limits");
  }
  if (trace.foreign > 0) {
    data.notes.push_back(std::to_string(trace.foreign) +
                         " buffers of another profiler's came to this one: kernels may be missing here and there");
  }
}

bool asked_in_vain(const CounterTrace& counters) {
  return std::none_of(counters.sources.begin(), counters.sources.end(),
                      [](const CounterSource& source) { return source.missing.empty(); });
}

void add_counters(const CounterTrace& counters, const std::vector<DeviceRun>& runs,
                  const std::vector<Launches>& launches, const std::vector<std::size_t>& bucket_of_launch,
                  const std::vector<LaunchPlace>& counter_places, ProfileData& data) {
  data.counters = counters.sources;
  data.counter_ranges = counters.ranges;
  data.counter_passes = counters.passes;
  take_notes(counters.notes, data);
  if (asked_in_vain(counters)) return;
  const auto chosen = static_cast<std::size_t>(data.runs.chosen);
  if (counters.ranges == CounterRanges::modules) {
    join_module_counters(counters, counter_places.empty() ? runs[chosen].places : counter_places, data);
  } else {
    join_kernel_counters(counters, runs, launches, chosen, bucket_of_launch, data);
  }
}

}  // namespace

void add_device(const std::vector<DeviceRun>& runs, const std::optional<CounterTrace>& counters, ProfileData& data,
                const std::vector<LaunchPlace>& counter_places) {
  if (runs.empty() || runs.size() != data.runs.total_ns.size()) {
    throw std::invalid_argument(std::to_string(runs.size()) + " runs were traced on the device and " +
                                std::to_string(data.runs.total_ns.size()) + " were timed: they must be the same");
  }
  if (data.runs.chosen < 0 || data.runs.chosen >= std::ssize(runs)) {
    throw std::invalid_argument("none of the traced runs is the chosen one");
  }
  std::vector<Launches> launches;
  launches.reserve(runs.size());
  for (const auto& run : runs) launches.push_back(launches_of(run, data));
  check_places(counter_places, data);
  const auto chosen = static_cast<std::size_t>(data.runs.chosen);
  const DeviceTrace& trace = runs[chosen].trace;

  data.device_timed = true;
  auto kernels = kernel_buckets(launches[chosen], trace.names);
  data.kernels = std::move(kernels.buckets);
  auto timeline = device_timeline(launches[chosen], trace, data.modules);
  data.device_times = std::move(timeline.modules);
  data.busy_ns = timeline.busy_ns;
  set_module_times(launches, data);
  set_op_times(data);
  take_losses(trace, launches[chosen], data);
  for (const auto& run : runs) take_notes(run.trace.notes, data);

  if (counters) add_counters(*counters, runs, launches, kernels.of_launch, counter_places, data);
  std::stable_sort(data.kernels.begin(), data.kernels.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
}

}  // namespace roofprof
