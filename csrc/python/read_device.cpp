#include "read_device.h"

#include "read_value.h"

namespace py = pybind11;

namespace roofprof::python {
namespace {

CounterValues read_counters(const py::dict& from) {
  CounterValues values;
  for (const auto& [name, value] : child(from, "counters")) {
    const auto text = name.cast<std::string>();
    const auto found = std::find(kCounterNames.begin(), kCounterNames.end(), std::string_view(text));
    if (found == kCounterNames.end()) throw py::value_error("there is no counter '" + text + "'");
    values[static_cast<std::size_t>(found - kCounterNames.begin())] = value.cast<double>();
  }
  return values;
}

KernelBucket read_kernel(const py::dict& from) {
  KernelBucket kernel;
  read(from, "name", kernel.name);
  kernel.kind = read_named<KernelKind>(from, "kind", kKernelKindNames);
  kernel.from = read_named<Memory>(from, "from", kMemoryNames);
  kernel.to = read_named<Memory>(from, "to", kMemoryNames);
  read(from, "device", kernel.device);
  read(from, "grid", kernel.grid);
  read(from, "block", kernel.block);
  read(from, "in_graph", kernel.in_graph);
  read(from, "module", kernel.module);
  kernel.phase = read_phase(from);
  read(from, "op", kernel.op);
  read(from, "bucket", kernel.bucket);
  read(from, "attributed", kernel.attributed);
  read(from, "instances", kernel.instances);
  read(from, "total_ns", kernel.total_ns);
  read(from, "min_ns", kernel.min_ns);
  read(from, "max_ns", kernel.max_ns);
  read(from, "median_ns", kernel.median_ns);
  read(from, "stddev_ns", kernel.stddev_ns);
  read(from, "bytes", kernel.bytes);
  kernel.counters = read_counters(from);
  read(from, "counted", kernel.counted);
  read(from, "mismatched", kernel.mismatched);
  return kernel;
}

DeviceTime read_device_time(const py::dict& from) {
  DeviceTime time;
  read(from, "module", time.module);
  read(from, "busy_ns", time.busy_ns);
  read(from, "idle_ns", time.idle_ns);
  read(from, "self_busy_ns", time.self_busy_ns);
  return time;
}

ModuleCounters read_module_counters(const py::dict& from) {
  ModuleCounters counters;
  read(from, "module", counters.module);
  counters.phase = read_phase(from);
  counters.counters = read_counters(from);
  return counters;
}

CounterSource read_source(const py::dict& from) {
  CounterSource source;
  source.counter = read_named<Counter>(from, "counter", kCounterNames);
  read(from, "metrics", source.metrics);
  read(from, "formula", source.formula);
  read(from, "missing", source.missing);
  return source;
}

}  // namespace

void read_device(const py::dict& from, ProfileData& data) {
  read(from, "device_timed", data.device_timed);
  read(from, "busy_ns", data.busy_ns);
  read(from, "compute_capability", data.compute_capability);
  read(from, "counter_passes", data.counter_passes);
  data.counter_ranges = read_named<CounterRanges>(from, "counter_ranges", kCounterRangeNames);
  data.kernels = read_list<KernelBucket>(from, "kernel_buckets", read_kernel);
  data.device_times = read_list<DeviceTime>(from, "device_times", read_device_time);
  data.module_counters = read_list<ModuleCounters>(from, "module_counters", read_module_counters);
  data.counters = read_list<CounterSource>(from, "counters", read_source);
}

}  // namespace roofprof::python
