// A report as JSON. The keys of observed data are the names of ProfileData's members, so that a reader can build the
// same report from them; "total", "rows", "kernels" and "coverage" are derived and stand there for every other reader
// (what kernels was observed is "kernel_buckets").

#include <set>

#include "core/fields.h"
#include "core/profile_data.h"
#include "report/file.h"
#include "report/json_device.h"
#include "report/json_fields.h"
#include "report/json_writer.h"

namespace roofprof {

namespace {

void write_provenance(JsonWriter& json, const Provenance& provenance) {
  json.begin_object();
  json.member("source", provenance.source);
  json.member("method", provenance.method);
  json.member("date", provenance.date);
  json.member("spread", provenance.spread);
  json.end_object();
}

void write_ceilings(JsonWriter& json, const Ceilings& ceilings) {
  json.begin_object();
  json.member("device", ceilings.device);
  json.key("compute");
  json.begin_array();
  for (const auto& ceiling : ceilings.compute) {
    json.break_line();
    json.begin_object();
    json.member("dtype", name_of(ceiling.dtype));
    json.member("operations_per_second", ceiling.operations_per_second);
    json.key("provenance");
    write_provenance(json, ceiling.provenance);
    json.end_object();
  }
  json.end_array();
  json.key("memory");
  json.begin_array();
  for (const auto& ceiling : ceilings.memory) {
    json.break_line();
    json.begin_object();
    json.member("level", ceiling.level);
    json.member("bytes_per_second", ceiling.bytes_per_second);
    json.member("capacity_bytes", ceiling.capacity_bytes);
    json.key("provenance");
    write_provenance(json, ceiling.provenance);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_environment(JsonWriter& json, const Environment& environment) {
  json.begin_object();
  for (const auto& [name, value] : environment) {
    json.key(name);
    std::visit([&](const auto& known) { json.write(known); }, value);
  }
  json.end_object();
}

void write_module(JsonWriter& json, const Module& module) {
  json.begin_object();
  json.member("path", module.path);
  json.member("type", module.type);
  json.member("parent", module.parent);
  json.member("has_forward", module.has_forward);
  json.member("calls_visible", module.calls_visible);
  json.member("inferred", module.inferred);
  json.member("same_as", module.same_as);
  json.member("compiled_region", module.compiled_region);
  json.member("params", module.params);
  json.member("trainable_params", module.trainable_params);
  json.member("param_bytes", module.param_bytes);
  json.member("buffer_bytes", module.buffer_bytes);
  json.member("input_shapes", module.input_shapes);
  json.member("output_shapes", module.output_shapes);
  json.member("output_bytes", module.output_bytes);
  json.end_object();
}

void write_bucket(JsonWriter& json, const OpBucket& bucket) {
  json.begin_object();
  json.member("op", bucket.op);
  json.member("module", bucket.module);
  json.member("phase", kPhaseNames[static_cast<std::size_t>(bucket.phase)]);
  json.member("dtype", name_of(bucket.dtype));
  json.member("shapes", bucket.shapes);
  json.member("costed", bucket.costed);
  json.member("calls", bucket.calls);
  json.key("work");
  json.begin_object();
  json.member("macs", bucket.work.macs);
  json.member("causal_macs", bucket.work.causal_macs);
  json.key("operations");
  write_by_dtype(json, bucket.work.operations);
  json.member("read_bytes", bucket.work.read_bytes);
  json.member("write_bytes", bucket.work.write_bytes);
  json.member("input_elements", bucket.work.input_elements);
  json.member("output_elements", bucket.work.output_elements);
  json.end_object();
  json.member("time_ns", bucket.time_ns);
  json.member("link_bytes", bucket.link_bytes);
  json.end_object();
}

void write_time(JsonWriter& json, const ModuleTime& time) {
  json.begin_object();
  json.member("module", time.module);
  json.member("phase", kPhaseNames[static_cast<std::size_t>(time.phase)]);
  json.member("calls", time.calls);
  json.member("self_ns", time.self_ns);
  json.member("host_self_ns", time.host_self_ns);
  json.end_object();
}

void write_runs(JsonWriter& json, const Runs& runs) {
  json.begin_object();
  json.member("total_ns", runs.total_ns);
  json.member("chosen", runs.chosen);
  json.member("bare_ns", runs.bare_ns);
  json.member("warmup", runs.warmup);
  json.member("steps", runs.steps);
  json.end_object();
}

void write_uncosted_op(JsonWriter& json, const UncostedOp& op) {
  json.begin_object();
  json.member("op", op.op);
  json.member("calls", op.calls);
  json.member("percent_of_time", op.percent_of_time);
  json.member("modules", op.modules);
  json.member("module_count", op.module_count);
  json.end_object();
}

void write_coverage(JsonWriter& json, const Coverage& coverage) {
  json.begin_object();
  json.member("uncosted", coverage.uncosted);
  json.key("uncosted_ops");
  json.begin_array();
  for (const auto& op : coverage.uncosted_ops) write_uncosted_op(json, op);
  json.end_array();
  json.member("uncalled_modules", coverage.uncalled_modules);
  json.member("unattributed_kernels", coverage.unattributed_kernels);
  json.member("dropped_records", coverage.dropped_records);
  json.member("unobserved", coverage.unobserved);
  json.member("notes", coverage.notes);
  json.end_object();
}

void write_row(JsonWriter& json, const RooflineRow& row) {
  json.begin_object();
  for_each_row_field(field_writer(json, row, ""));
  for_each_figure(field_writer<Figures>(json, row, ""));
  for_each_figure(field_writer<Figures>(json, row.self, "self_"));
  json.end_object();
}

// Only fields that are not plain text or flags: those need no unit.
void write_units(JsonWriter& json) {
  json.begin_object();
  const auto write = [&](std::string_view name, Unit unit, auto) {
    if (unit != Unit::text && unit != Unit::flag) json.member(key_of(name, unit), unit_name(unit));
  };
  for_each_row_field(write);
  for_each_figure(write);
  std::set<std::string> known;
  const auto remember = [&](std::string_view name, Unit unit, auto) { known.insert(key_of(name, unit)); };
  for_each_row_field(remember);
  for_each_figure(remember);
  for_each_kernel_field([&](std::string_view name, Unit unit, auto member) {
    if (known.insert(key_of(name, unit)).second) write(name, unit, member);
  });
  json.member("self_*", "as the same name without self_, of the module's own ops, without its children");
  json.end_object();
}

template <class Items, class Write>
void write_lines(JsonWriter& json, std::string_view name, const Items& items, Write write) {
  json.break_line();
  json.key(name);
  json.begin_array();
  for (const auto& item : items) {
    json.break_line();
    write(json, item);
  }
  if (!items.empty()) json.break_line();
  json.end_array();
}

}  // namespace

std::string Report::to_json() const {
  const ProfileData& data = *data_;
  JsonWriter json;
  const auto line = [&](std::string_view name, auto write) {
    json.break_line();
    json.key(name);
    write();
  };
  const auto plain = [&](std::string_view name, const auto& value) { line(name, [&] { json.write(value); }); };

  json.begin_object();
  plain("schema_version", kReportSchemaVersion);
  plain("generator", "roofprof");
  line("units", [&] { write_units(json); });
  plain("model", data.model);
  plain("device", data.device);
  plain("scope", data.scope);
  plain("partial", data.partial);
  plain("device_timed", data.device_timed);
  plain("busy_ns", data.busy_ns);
  plain("compute_capability", data.compute_capability);
  plain("counter_ranges", kCounterRangeNames[static_cast<std::size_t>(data.counter_ranges)]);
  plain("counter_passes", data.counter_passes);
  line("environment", [&] { write_environment(json, data.environment); });
  line("ceilings", [&] { write_ceilings(json, data.ceilings); });
  line("runs", [&] { write_runs(json, data.runs); });
  plain("unobserved", data.unobserved);
  plain("dropped_records", data.dropped_records);
  plain("unattributed_kernels", data.unattributed_kernels);
  plain("notes", data.notes);
  line("coverage", [&] { write_coverage(json, coverage_); });
  line("total", [&] { write_row(json, total_); });
  write_lines(json, "rows", rows_, write_row);
  write_lines(json, "kernels", kernels_, write_kernel_row);
  write_lines(json, "modules", data.modules, write_module);
  write_lines(json, "ops", data.ops, write_bucket);
  write_lines(json, "times", data.times, write_time);
  write_lines(json, "kernel_buckets", data.kernels, write_kernel_bucket);
  write_lines(json, "device_times", data.device_times, write_device_time);
  write_lines(json, "module_counters", data.module_counters, write_module_counters);
  write_lines(json, "counters", data.counters, write_counter_source);
  json.break_line();
  json.end_object();
  return json.take();
}

void Report::write_json(const std::string& path) const { write_whole_file(path, to_json()); }

}  // namespace roofprof
