#pragma once
// Runs on a device written by hand, in round nanoseconds, so that tests can state every figure in closed form.

#include <string>
#include <vector>

#include "join/device_join.h"
#include "join/device_launches.h"
#include "support/profile_builder.h"

namespace roofprof::testing {

// The trace of one run, and what its launches belong to.
struct TracedRun {
  DeviceTrace trace;
  std::vector<LaunchOwner> owners = {LaunchOwner{}};
};

// Runs of one session: the owners are those of the run that has most.
inline Profile with_runs(Profile data, const std::vector<TracedRun>& runs,
                         const std::optional<CounterTrace>& counters = {}) {
  std::vector<const DeviceTrace*> traces;
  std::vector<LaunchOwner> owners;
  for (const auto& run : runs) {
    traces.push_back(&run.trace);
    if (run.owners.size() > owners.size()) owners = run.owners;
  }
  return with_device(std::move(data), traces, owners, counters);
}

// Launches in the order in which they are added.
class RunBuilder {
 public:
  // The id of launches that belong there. Ids begin with 1, as 0 is nobody's.
  LaunchId owner(ModuleId module, const std::string& op = "", std::int64_t bucket = -1, Phase phase = Phase::forward) {
    run.owners.push_back({{module, phase}, op, bucket});
    return run.owners.size() - 1;
  }

  KernelRecord& kernel(const std::string& name, LaunchId launch, std::int64_t start_ns, std::int64_t end_ns) {
    KernelRecord& record = add(launch, start_ns, end_ns);
    run.trace.names.push_back(name);
    record.name = static_cast<std::uint32_t>(run.trace.names.size() - 1);
    record.grid = {8, 1, 1};
    record.block = {256, 1, 1};
    return record;
  }

  KernelRecord& copy(Memory from, Memory to, LaunchId launch, std::int64_t start_ns, std::int64_t end_ns,
                     std::int64_t bytes) {
    KernelRecord& record = add(launch, start_ns, end_ns);
    record.kind = KernelKind::copy;
    record.from = from;
    record.to = to;
    record.bytes = bytes;
    return record;
  }

  KernelRecord& fill(LaunchId launch, std::int64_t start_ns, std::int64_t end_ns, std::int64_t bytes) {
    KernelRecord& record = add(launch, start_ns, end_ns);
    record.kind = KernelKind::fill;
    record.bytes = bytes;
    return record;
  }

  TracedRun run;

 private:
  KernelRecord& add(LaunchId launch, std::int64_t start_ns, std::int64_t end_ns) {
    KernelRecord record;
    record.launch = launch;
    record.start_ns = start_ns;
    record.end_ns = end_ns;
    record.correlation = run.trace.records.size() + 1;
    run.trace.records.push_back(record);
    return run.trace.records.back();
  }
};

// A model on a device whose clock's times are there, as with_device wants it: one run for each wall time.
class DeviceProfileBuilder : public ProfileBuilder {
 public:
  explicit DeviceProfileBuilder(std::vector<std::int64_t> wall_ns = {100'000}) {
    data.run.device = "cuda:0";
    data.run.runs.total_ns = std::move(wall_ns);
    data.run.runs.chosen = 0;
  }

  // What the clock saw of a module, one figure for each run.
  void clock(ModuleId module, std::vector<std::int64_t> self_ns, std::int64_t calls = 1, Phase phase = Phase::forward) {
    data.times.make().modules.push_back({{module, phase}, calls, std::move(self_ns), {}});
  }

  std::int64_t op_index(const std::string& name, ModuleId module, const Work& work, std::int64_t calls = 1) {
    op(name, module, work, 0, calls);
    return static_cast<std::int64_t>(data.counts.ops.size()) - 1;
  }

  Derived derived_of(const std::vector<TracedRun>& runs, const std::optional<CounterTrace>& counters = {}) {
    data = with_runs(std::move(data), runs, counters);
    return derived();
  }
  Report report_of(const std::vector<TracedRun>& runs, const std::optional<CounterTrace>& counters = {}) {
    data = with_runs(std::move(data), runs, counters);
    return report();
  }
};

// Counters of kernels: a record for each figure, in launch order. L2 moves twice and L1 four times what DRAM does.
inline CounterTrace dram_counters(const std::vector<double>& dram_bytes) {
  CounterTrace trace;
  trace.chip = "GH100";
  trace.passes = 1;
  for (const Counter counter : {Counter::dram_bytes, Counter::l2_bytes, Counter::l1_bytes}) {
    trace.sources.push_back({counter, {"metric"}, "metric", ""});
  }
  for (std::size_t i = 0; i < dram_bytes.size(); ++i) {
    CounterRecord record;
    record.range = i;
    record.values[static_cast<std::size_t>(Counter::dram_bytes)] = dram_bytes[i];
    record.values[static_cast<std::size_t>(Counter::l2_bytes)] = 2 * dram_bytes[i];
    record.values[static_cast<std::size_t>(Counter::l1_bytes)] = 4 * dram_bytes[i];
    trace.records.push_back(record);
  }
  return trace;
}

}  // namespace roofprof::testing
