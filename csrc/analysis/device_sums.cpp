#include "analysis/device_sums.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace roofprof {

namespace {

// The size of the sectors in which DRAM is read and written.
constexpr std::int64_t kSectorBytes = 32;
// Reads or writes below 1/kLeastPart of the row's bytes have no ratio: the bytes that an earlier kernel left in the
// cache, and that are written meanwhile, outweigh them.
constexpr std::int64_t kLeastPart = 100;

std::optional<double> ratio(std::int64_t part, std::optional<std::int64_t> whole) {
  if (!whole || *whole <= 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(*whole);
}

// Adds the counters of modules that were the ranges. A module that launched kernels and has no range stays unknown.
void add_module_counters(const Profile& data, const CounterReader& reader, std::vector<DeviceSums>& sums) {
  std::vector<bool> counted(sums.size());
  for (auto& module : sums) {
    module.measured = reader.nothing();
    module.count_all();
  }
  for (const auto& range : data.device->counters.modules) {
    const auto id = static_cast<std::size_t>(range.owner.module);
    sums[id].measured += reader.read(range.counters);
    counted[id] = true;
  }
  for (std::size_t id = 0; id < sums.size(); ++id) {
    if (!counted[id] && sums[id].kernels > 0) sums[id].measured = kNotMeasured;
  }
}

}  // namespace

DeviceSums& DeviceSums::operator+=(const DeviceSums& other) {
  kernels = saturating_add(kernels, other.kernels);
  launches = saturating_add(launches, other.launches);
  op_time_ns = saturating_add(op_time_ns, other.op_time_ns);
  idle_ns = saturating_add(idle_ns, other.idle_ns);
  launched_ns = saturating_add(launched_ns, other.launched_ns);
  uncounted = saturating_add(uncounted, other.uncounted);
  uncounted_ns = saturating_add(uncounted_ns, other.uncounted_ns);
  uncounted_read_bytes = saturating_add(uncounted_read_bytes, other.uncounted_read_bytes);
  uncounted_write_bytes = saturating_add(uncounted_write_bytes, other.uncounted_write_bytes);
  measured += other.measured;
  return *this;
}

void DeviceSums::add_uncounted(const Work& work) {
  uncounted_read_bytes = saturating_add(uncounted_read_bytes, work.read_bytes);
  uncounted_write_bytes = saturating_add(uncounted_write_bytes, work.write_bytes);
}

void DeviceSums::count_all() { uncounted = uncounted_ns = uncounted_read_bytes = uncounted_write_bytes = 0; }

DeviceSums sums_of(const KernelBucket& kernel, const CounterReader& reader) {
  const bool is_kernel = kernel.kind == KernelKind::kernel;
  DeviceSums sums{.measured = reader.read(kernel)};
  sums.launches = kernel.instances;
  (is_kernel ? sums.kernels : sums.uncounted) = kernel.instances;
  if (!kernel.op.empty()) sums.op_time_ns = kernel.total_ns;
  sums.launched_ns = kernel.total_ns;
  if (!is_kernel) sums.uncounted_ns = kernel.total_ns;
  return sums;
}

std::vector<bool> ops_that_only_copy(const Profile& data) {
  using Op = std::pair<Owner, std::string_view>;
  std::set<Op> copy;
  std::set<Op> compute;  // of one name with other shapes, too: which of them launched is not always known
  for (const auto& kernel : data.device->kernels) {
    (kernel.kind == KernelKind::kernel ? compute : copy).emplace(kernel.owner, kernel.op);
  }
  std::vector<bool> only_copy;
  only_copy.reserve(data.counts.ops.size());
  for (const auto& op : data.counts.ops) {
    const Op key(op.owner, op.op);
    only_copy.push_back(copy.contains(key) && !compute.contains(key));
  }
  return only_copy;
}

std::vector<DeviceSums> device_sums(const Profile& data) {
  const CounterReader reader(data.device->counters.sources);
  std::vector<DeviceSums> sums(data.tree.modules.size(), DeviceSums{.measured = reader.nothing()});
  for (const auto& kernel : data.device->kernels)
    sums[static_cast<std::size_t>(kernel.owner.module)] += sums_of(kernel, reader);
  const auto only_copy = ops_that_only_copy(data);
  for (std::size_t i = 0; i < only_copy.size(); ++i) {
    if (only_copy[i])
      sums[static_cast<std::size_t>(data.counts.ops[i].owner.module)].add_uncounted(data.counts.ops[i].work);
  }
  for (const auto& time : data.device->timeline.modules)
    sums[static_cast<std::size_t>(time.module)].idle_ns += time.idle_ns;
  if (data.device->counters.ranges == CounterRanges::modules) add_module_counters(data, reader, sums);
  return sums;
}

std::vector<DeviceTime> device_times(const Profile& data) {
  std::vector<DeviceTime> times(data.tree.modules.size());
  for (const auto& time : data.device->timeline.modules) times[static_cast<std::size_t>(time.module)] = time;
  return times;
}

void add_device_figures(const DeviceSums& sums, const Work& off_device, Figures& figures) {
  const Measured& measured = sums.measured;
  figures.kernel_count = sums.kernels;
  if (sums.kernels == 0 && sums.uncounted > 0) return;  // it moved bytes that were not counted
  figures.dram_bytes = measured.dram_bytes;
  figures.dram_read_bytes = measured.dram_read_bytes;
  figures.dram_write_bytes = measured.dram_write_bytes;
  figures.l2_bytes = measured.l2_bytes;
  figures.l1_bytes = measured.l1_bytes;
  figures.executed_flops = measured.executed_flops;
  const auto operations = std::max(figures.flops - off_device.flops(), figures.int_ops - off_device.int_ops());
  figures.dram_intensity = ratio(operations, figures.dram_bytes);
  figures.l2_intensity = ratio(operations, figures.l2_bytes);
  figures.l1_intensity = ratio(operations, figures.l1_bytes);
  // Copies and fills are in none of the counters, so their bytes and their time are on no side. What was not done on
  // the device is not, either.
  const auto read_bytes = figures.read_bytes - sums.uncounted_read_bytes - off_device.read_bytes;
  const auto write_bytes = figures.write_bytes - sums.uncounted_write_bytes - off_device.write_bytes;
  const auto all_bytes = saturating_add(read_bytes, write_bytes);
  const auto ratio_to = [&](std::optional<std::int64_t> counted, std::int64_t bytes) -> std::optional<double> {
    const bool is_little = bytes < saturating_multiply(kSectorBytes, sums.kernels) || bytes < all_bytes / kLeastPart;
    return counted && !is_little ? ratio(*counted, bytes) : std::nullopt;
  };
  figures.dram_bytes_ratio = ratio_to(figures.dram_bytes, all_bytes);
  figures.dram_read_ratio = ratio_to(figures.dram_read_bytes, read_bytes);
  figures.dram_write_ratio = ratio_to(figures.dram_write_bytes, write_bytes);
  if (const auto counted_ns = sums.launched_ns - sums.uncounted_ns; figures.dram_bytes && counted_ns > 0) {
    figures.dram_bandwidth = static_cast<double>(*figures.dram_bytes) / (static_cast<double>(counted_ns) * 1e-9);
  }
}

}  // namespace roofprof
