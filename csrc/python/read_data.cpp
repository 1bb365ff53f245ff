#include "read_data.h"

#include "read_device.h"
#include "read_value.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace py = pybind11;

namespace roofprof::python {
namespace {

DType read_dtype(const py::dict& from) {
  std::string name;
  read(from, "dtype", name);
  return dtype_from_name(name);
}

Provenance read_provenance(const py::dict& from) {
  Provenance provenance;
  read(from, "source", provenance.source);
  read(from, "method", provenance.method);
  read(from, "date", provenance.date);
  read(from, "spread", provenance.spread);
  return provenance;
}

ComputeCeiling read_compute(const py::dict& from) {
  ComputeCeiling ceiling;
  ceiling.dtype = read_dtype(from);
  read(from, "operations_per_second", ceiling.operations_per_second);
  ceiling.provenance = read_provenance(child(from, "provenance"));
  return ceiling;
}

MemoryCeiling read_memory(const py::dict& from) {
  MemoryCeiling ceiling;
  read(from, "level", ceiling.level);
  read(from, "bytes_per_second", ceiling.bytes_per_second);
  read(from, "capacity_bytes", ceiling.capacity_bytes);
  ceiling.provenance = read_provenance(child(from, "provenance"));
  return ceiling;
}

OpBucket read_op(const py::dict& from) {
  OpBucket bucket;
  read(from, "op", bucket.op);
  read(from, "module", bucket.module);
  bucket.phase = read_phase(from);
  bucket.dtype = read_dtype(from);
  read(from, "shapes", bucket.shapes);
  read(from, "costed", bucket.costed);
  read(from, "calls", bucket.calls);
  bucket.work = read_work(child(from, "work"));
  read(child(from, "work"), "input_elements", bucket.work.input_elements);
  read(child(from, "work"), "output_elements", bucket.work.output_elements);
  read(from, "time_ns", bucket.time_ns);
  read(from, "link_bytes", bucket.link_bytes);
  return bucket;
}

ModuleTime read_time(const py::dict& from) {
  ModuleTime time;
  read(from, "module", time.module);
  time.phase = read_phase(from);
  read(from, "calls", time.calls);
  read(from, "self_ns", time.self_ns);
  read(from, "host_self_ns", time.host_self_ns);
  return time;
}

}  // namespace

Work read_work(const py::dict& from) {
  Work work;
  read(from, "macs", work.macs);
  read(from, "causal_macs", work.causal_macs);
  read(from, "read_bytes", work.read_bytes);
  read(from, "write_bytes", work.write_bytes);
  for (const auto& [name, count] : child(from, "operations")) {
    work.operations_in(dtype_from_name(name.cast<std::string>())) += count.cast<std::int64_t>();
  }
  return work;
}

Module read_module(const py::dict& from) {
  Module module;
  read(from, "path", module.path);
  read(from, "type", module.type);
  read(from, "parent", module.parent);
  read(from, "has_forward", module.has_forward);
  read(from, "calls_visible", module.calls_visible);
  read(from, "inferred", module.inferred);
  read(from, "same_as", module.same_as);
  read(from, "compiled_region", module.compiled_region);
  read(from, "params", module.params);
  read(from, "trainable_params", module.trainable_params);
  read(from, "param_bytes", module.param_bytes);
  read(from, "buffer_bytes", module.buffer_bytes);
  read(from, "input_shapes", module.input_shapes);
  read(from, "output_shapes", module.output_shapes);
  read(from, "output_bytes", module.output_bytes);
  return module;
}

std::vector<Module> read_modules(const py::list& modules) {
  std::vector<Module> result;
  for (const auto item : modules) result.push_back(read_module(py::cast<py::dict>(item)));
  return result;
}

Ceilings read_ceilings(const py::dict& from) {
  Ceilings ceilings;
  read(from, "device", ceilings.device);
  ceilings.compute = read_list<ComputeCeiling>(from, "compute", read_compute);
  ceilings.memory = read_list<MemoryCeiling>(from, "memory", read_memory);
  return ceilings;
}

Environment read_environment(const py::dict& environment) {
  Environment result;
  for (const auto& [key, value] : environment) {
    result.emplace_back(key.cast<std::string>(), value.cast<EnvironmentValue>());
  }
  return result;
}

ProfileData read_profile_data(const py::dict& from) {
  ProfileData data;
  read(from, "model", data.model);
  read(from, "device", data.device);
  read(from, "scope", data.scope);
  read(from, "partial", data.partial);
  data.modules = read_list<Module>(from, "modules", read_module);
  data.ops = read_list<OpBucket>(from, "ops", read_op);
  data.times = read_list<ModuleTime>(from, "times", read_time);
  read_device(from, data);
  const auto runs = child(from, "runs");
  read(runs, "total_ns", data.runs.total_ns);
  read(runs, "chosen", data.runs.chosen);
  read(runs, "bare_ns", data.runs.bare_ns);
  read(runs, "warmup", data.runs.warmup);
  read(runs, "steps", data.runs.steps);
  data.ceilings = read_ceilings(child(from, "ceilings"));
  data.environment = read_environment(child(from, "environment"));
  read(from, "unobserved", data.unobserved);
  read(from, "dropped_records", data.dropped_records);
  read(from, "unattributed_kernels", data.unattributed_kernels);
  read(from, "notes", data.notes);
  return data;
}

}  // namespace roofprof::python
