#include "analysis/kernel_rows.h"

#include "analysis/derivations.h"
#include "analysis/kernel_arch.h"
#include "analysis/measured.h"
#include "analysis/within.h"

namespace roofprof {

namespace {

// How many different kernels each op launched.
std::vector<std::int64_t> kernels_by_op(const ProfileData& data) {
  std::vector<std::int64_t> kernels(data.ops.size());
  for (const auto& kernel : data.kernels) {
    if (kernel.kind == KernelKind::kernel && kernel.bucket >= 0) ++kernels[static_cast<std::size_t>(kernel.bucket)];
  }
  return kernels;
}

void copy_facts(const KernelBucket& kernel, const ProfileData& data, KernelRow& row) {
  row.name = kernel.name;
  row.kind = kKernelKindNames[static_cast<std::size_t>(kernel.kind)];
  if (kernel.kind == KernelKind::copy) {
    row.copied = std::string(kMemoryNames[static_cast<std::size_t>(kernel.from)]) + " to " +
                 std::string(kMemoryNames[static_cast<std::size_t>(kernel.to)]);
  }
  row.module = data.modules[static_cast<std::size_t>(kernel.owner.module)].path;
  row.phase = kPhaseNames[static_cast<std::size_t>(kernel.owner.phase)];
  row.scope = path_of_region(data, kernel.owner.region);
  row.op = kernel.op;
  row.grid = kernel.grid;
  row.block = kernel.block;
  row.device = kernel.device;
  row.in_graph = kernel.in_graph;
  if (const auto architecture = architecture_in_name(kernel.name))
    row.built_for = "sm_" + std::to_string(*architecture);
  row.total_ns = kernel.total_ns;
  row.instances = kernel.instances;
  if (kernel.instances > 0)
    row.average_ns = static_cast<double>(kernel.total_ns) / static_cast<double>(kernel.instances);
  row.median_ns = kernel.median_ns;
  row.min_ns = kernel.min_ns;
  row.max_ns = kernel.max_ns;
  row.stddev_ns = kernel.stddev_ns;
  row.bytes = kernel.bytes;
}

void add_measured(const Measured& measured, KernelRow& row) {
  row.dram_bytes = measured.dram_bytes;
  row.l2_bytes = measured.l2_bytes;
  row.l1_bytes = measured.l1_bytes;
  row.executed_flops = measured.executed_flops;
  if (row.executed_flops) row.flops = row.executed_flops;
  const auto per_second = [&](std::optional<std::int64_t> count) -> std::optional<double> {
    if (!count || row.total_ns <= 0) return std::nullopt;
    return static_cast<double>(*count) / (static_cast<double>(row.total_ns) * 1e-9);
  };
  row.achieved_flops = per_second(row.flops);
  row.dram_bandwidth = per_second(row.dram_bytes);
  const auto intensity = [&](std::optional<std::int64_t> bytes) -> std::optional<double> {
    if (!row.flops || !bytes || *bytes <= 0) return std::nullopt;
    return static_cast<double>(*row.flops) / static_cast<double>(*bytes);
  };
  row.dram_intensity = intensity(row.dram_bytes);
  row.l2_intensity = intensity(row.l2_bytes);
  row.l1_intensity = intensity(row.l1_bytes);
}

}  // namespace

std::vector<KernelRow> kernel_rows(const ProfileData& data) {
  record_derivation("kernels", data);
  std::int64_t all_ns = 0;
  for (const auto& kernel : data.kernels) all_ns = saturating_add(all_ns, kernel.total_ns);
  const auto by_op = kernels_by_op(data);
  const CounterReader reader(data.counters);
  std::vector<KernelRow> rows;
  rows.reserve(data.kernels.size());
  for (const auto& kernel : data.kernels) {
    KernelRow& row = rows.emplace_back();
    copy_facts(kernel, data, row);
    if (all_ns > 0) row.percent_of_time = 100.0 * static_cast<double>(kernel.total_ns) / static_cast<double>(all_ns);
    if (kernel.kind != KernelKind::kernel) continue;
    if (kernel.bucket >= 0 && by_op[static_cast<std::size_t>(kernel.bucket)] == 1) {
      const OpBucket& op = data.ops[static_cast<std::size_t>(kernel.bucket)];
      if (op.costed && !op.work.lower_limit) row.flops = op.work.flops();
    }
    add_measured(reader.read(kernel), row);
  }
  return rows;
}

}  // namespace roofprof
