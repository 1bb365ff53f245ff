#include "report/json_device.h"

#include "core/fields.h"
#include "report/json_fields.h"

namespace roofprof {

namespace {

// Only those that there are.
void write_counters(JsonWriter& json, const CounterValues& values) {
  json.begin_object();
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    if (const auto& value = values[i]) json.member(kCounterNames[i], *value);
  }
  json.end_object();
}

}  // namespace

void write_kernel_row(JsonWriter& json, const KernelRow& row) {
  json.begin_object();
  for_each_kernel_field(field_writer(json, row, ""));
  json.end_object();
}

void write_kernel_bucket(JsonWriter& json, const KernelBucket& kernel) {
  json.begin_object();
  json.member("name", kernel.name);
  json.member("kind", kKernelKindNames[static_cast<std::size_t>(kernel.kind)]);
  json.member("from", kMemoryNames[static_cast<std::size_t>(kernel.from)]);
  json.member("to", kMemoryNames[static_cast<std::size_t>(kernel.to)]);
  json.member("device", kernel.device);
  json.key("grid");
  write_blocks(json, kernel.grid);
  json.key("block");
  write_blocks(json, kernel.block);
  json.member("in_graph", kernel.in_graph);
  json.member("module", kernel.module);
  json.member("phase", kPhaseNames[static_cast<std::size_t>(kernel.phase)]);
  json.member("op", kernel.op);
  json.member("bucket", kernel.bucket);
  json.member("attributed", kernel.attributed);
  json.member("instances", kernel.instances);
  json.member("total_ns", kernel.total_ns);
  json.member("min_ns", kernel.min_ns);
  json.member("max_ns", kernel.max_ns);
  json.member("median_ns", kernel.median_ns);
  json.member("stddev_ns", kernel.stddev_ns);
  json.member("bytes", kernel.bytes);
  json.key("counters");
  write_counters(json, kernel.counters);
  json.member("counted", kernel.counted);
  json.member("mismatched", kernel.mismatched);
  json.end_object();
}

void write_device_time(JsonWriter& json, const DeviceTime& time) {
  json.begin_object();
  json.member("module", time.module);
  json.member("busy_ns", time.busy_ns);
  json.member("idle_ns", time.idle_ns);
  json.member("self_busy_ns", time.self_busy_ns);
  json.end_object();
}

void write_module_counters(JsonWriter& json, const ModuleCounters& counters) {
  json.begin_object();
  json.member("module", counters.module);
  json.member("phase", kPhaseNames[static_cast<std::size_t>(counters.phase)]);
  json.key("counters");
  write_counters(json, counters.counters);
  json.end_object();
}

void write_counter_source(JsonWriter& json, const CounterSource& source) {
  json.begin_object();
  json.member("counter", kCounterNames[static_cast<std::size_t>(source.counter)]);
  json.member("metrics", source.metrics);
  json.member("formula", source.formula);
  json.member("missing", source.missing);
  json.end_object();
}

}  // namespace roofprof
