#include "profiler/launch_sequence.h"

#include <algorithm>

namespace roofprof {

std::int64_t kernels_in(const DeviceTrace& trace) {
  return std::ranges::count(trace.records, KernelKind::kernel, &KernelRecord::kind);
}

std::string uncountable_kernels(const DeviceTrace& trace) {
  for (const auto& record : trace.records) {
    if (record.kind != KernelKind::kernel) continue;
    if (record.graph_node != 0) return "the model launches CUDA graphs, whose kernels cannot be counted one by one";
    const auto& name = trace.names.at(record.name);
    if (name.starts_with("nccl")) {
      return name + " waits for other processes, for ever if each of their kernels has to run alone";
    }
  }
  return "";
}

}  // namespace roofprof
