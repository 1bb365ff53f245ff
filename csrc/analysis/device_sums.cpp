#include "analysis/device_sums.h"

#include <set>

namespace roofprof {

namespace {

std::optional<double> ratio(std::int64_t part, std::optional<std::int64_t> whole) {
  if (!whole || *whole <= 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(*whole);
}

// Adds the counters of modules that were the ranges. A module that launched kernels and has no range stays unknown.
void add_module_counters(const ProfileData& data, const CounterReader& reader, std::vector<DeviceSums>& sums) {
  std::vector<bool> counted(sums.size());
  for (auto& module : sums) {
    module.measured = reader.nothing();
    module.uncounted = 0;
  }
  for (const auto& range : data.module_counters) {
    const auto id = static_cast<std::size_t>(range.owner.module);
    sums[id].measured += reader.read(range.counters);
    counted[id] = true;
  }
  for (std::size_t id = 0; id < sums.size(); ++id) {
    if (!counted[id] && sums[id].kernels > 0) sums[id].measured = {{}, {}, {}, {}};
  }
}

}  // namespace

DeviceSums& DeviceSums::operator+=(const DeviceSums& other) {
  kernels = saturating_add(kernels, other.kernels);
  launches = saturating_add(launches, other.launches);
  op_time_ns = saturating_add(op_time_ns, other.op_time_ns);
  idle_ns = saturating_add(idle_ns, other.idle_ns);
  uncounted = saturating_add(uncounted, other.uncounted);
  measured += other.measured;
  return *this;
}

DeviceSums sums_of(const KernelBucket& kernel, const CounterReader& reader) {
  const bool is_kernel = kernel.kind == KernelKind::kernel;
  return {.kernels = is_kernel ? kernel.instances : 0,
          .launches = kernel.instances,
          .op_time_ns = kernel.op.empty() ? 0 : kernel.total_ns,
          .uncounted = is_kernel ? 0 : kernel.instances,
          .measured = reader.read(kernel)};
}

std::vector<DeviceSums> device_sums(const ProfileData& data) {
  const CounterReader reader(data.counters);
  std::vector<DeviceSums> sums(data.modules.size(), DeviceSums{.measured = reader.nothing()});
  for (const auto& kernel : data.kernels)
    sums[static_cast<std::size_t>(kernel.owner.module)] += sums_of(kernel, reader);
  for (const auto& time : data.device_times) sums[static_cast<std::size_t>(time.module)].idle_ns += time.idle_ns;
  if (data.counter_ranges == CounterRanges::modules) add_module_counters(data, reader, sums);
  return sums;
}

std::vector<DeviceTime> device_times(const ProfileData& data) {
  std::vector<DeviceTime> times(data.modules.size());
  for (const auto& time : data.device_times) times[static_cast<std::size_t>(time.module)] = time;
  return times;
}

void add_device_figures(const DeviceSums& sums, Figures& figures) {
  const Measured& measured = sums.measured;
  figures.kernel_count = sums.kernels;
  if (sums.kernels == 0 && sums.uncounted > 0) return;  // it moved bytes that were not counted
  figures.dram_bytes = measured.dram_bytes;
  figures.l2_bytes = measured.l2_bytes;
  figures.l1_bytes = measured.l1_bytes;
  figures.executed_flops = measured.executed_flops;
  figures.dram_intensity = ratio(figures.leading_operations(), figures.dram_bytes);
  figures.l2_intensity = ratio(figures.leading_operations(), figures.l2_bytes);
  figures.l1_intensity = ratio(figures.leading_operations(), figures.l1_bytes);
  if (figures.dram_bytes) figures.dram_bytes_ratio = ratio(*figures.dram_bytes, figures.bytes);
  if (const auto time_ns = figures.time_ns.value_or(0); figures.dram_bytes && time_ns > 0) {
    figures.dram_bandwidth = static_cast<double>(*figures.dram_bytes) / (static_cast<double>(time_ns) * 1e-9);
  }
}

}  // namespace roofprof
