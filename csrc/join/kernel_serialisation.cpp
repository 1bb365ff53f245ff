#include "join/kernel_serialisation.h"

#include <algorithm>
#include <array>

namespace roofprof {
namespace {

// NCCL's kernels (ncclDevKernel_..., ncclKernel_...), NVSHMEM's, those of torch's distributed library and of its
// symmetric memory, which are in no namespace, and vLLM's all-reduce.
constexpr std::array<std::string_view, 6> kWaiting = {"nccl",      "nvshmem",          "c10d",
                                                      "multimem_", "_shot_all_reduce", "cross_device_reduce"};

constexpr std::string_view kInstead = R"(: count by module (counters="modules"), or not at all (counters="off"))";

}  // namespace

bool must_not_be_serialised(std::string_view kernel_name) {
  return std::ranges::any_of(
      kWaiting, [kernel_name](std::string_view part) { return kernel_name.find(part) != std::string_view::npos; });
}

std::string why_not_kernel_by_kernel(const DeviceTrace& trace) {
  for (const KernelRecord& record : trace.records) {
    if (record.kind != KernelKind::kernel) continue;
    const std::string& name = trace.names.at(record.name);
    if (must_not_be_serialised(name)) {
      return "counters kernel by kernel were left out, as " + name +
             " waits for other devices and would hang when it is run alone" + std::string(kInstead);
    }
  }
  if (std::ranges::any_of(trace.records, [](const KernelRecord& record) { return record.graph_node != 0; })) {
    return "counters kernel by kernel were left out, as CUDA graphs launch many kernels at once, and how CUPTI counts "
           "these is not documented" +
           std::string(kInstead);
  }
  return "";
}

}  // namespace roofprof
