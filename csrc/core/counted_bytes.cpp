#include "core/counted_bytes.h"

#include <cmath>

namespace roofprof {

std::optional<std::int64_t> rounded(std::optional<double> value) {
  if (!value || !std::isfinite(*value) || *value < 0) return std::nullopt;
  return *value < static_cast<double>(kSaturated) ? std::llround(*value) : kSaturated;
}

std::set<std::pair<Owner, std::string_view>> ops_with_stray_kernels(const std::vector<KernelBucket>& kernels) {
  std::set<std::pair<Owner, std::string_view>> ops;
  for (const auto& kernel : kernels) {
    if (kernel.bucket < 0 && !kernel.op.empty()) ops.emplace(kernel.owner, kernel.op);
  }
  return ops;
}

namespace {

void add_known(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& part) {
  sum = sum && part ? std::optional(saturating_add(*sum, *part)) : std::nullopt;
}

CountedBytes nothing() { return {0, 0, 0, 0}; }

// Returns the bytes that a copy or a fill moves on its own device. Bytes that cross the host link are held against that
// link alone.
CountedBytes moved_by_record(const KernelBucket& launch) {
  auto moved = nothing();
  const bool is_copy = launch.kind == KernelKind::copy;
  moved.uncounted_bytes = is_copy ? saturating_add(launch.bytes, launch.bytes) : launch.bytes;
  return moved;
}

}  // namespace

void add_counted(std::optional<CountedBytes>& sum, const std::optional<CountedBytes>& part) {
  if (!sum || !part) {
    sum.reset();
    return;
  }
  sum->dram_bytes = saturating_add(sum->dram_bytes, part->dram_bytes);
  sum->uncounted_bytes = saturating_add(sum->uncounted_bytes, part->uncounted_bytes);
  add_known(sum->dram_read_bytes, part->dram_read_bytes);
  add_known(sum->dram_write_bytes, part->dram_write_bytes);
}

std::optional<CountedBytes> counted_bytes(const KernelBucket& kernel) {
  if (kernel.kind != KernelKind::kernel) return moved_by_record(kernel);
  if (kernel.counted != kernel.instances) return std::nullopt;
  const auto value = [&](Counter counter) { return rounded(kernel.counters[static_cast<std::size_t>(counter)]); };
  CountedBytes counted;
  counted.dram_read_bytes = value(Counter::dram_read_bytes);
  counted.dram_write_bytes = value(Counter::dram_write_bytes);
  auto both = value(Counter::dram_bytes);
  if (!counted.dram_read_bytes || !counted.dram_write_bytes) {
    counted.dram_read_bytes.reset();
    counted.dram_write_bytes.reset();
  } else if (!both) {
    both = saturating_add(*counted.dram_read_bytes, *counted.dram_write_bytes);
  }
  if (!both) return std::nullopt;
  counted.dram_bytes = *both;
  return counted;
}

std::optional<CountedBytes> counted_bytes(std::int64_t compiled, const DeviceWork& device) {
  std::optional<CountedBytes> sum = nothing();
  bool any = false;
  for (const auto& kernel : device.kernels) {
    if (kernel.compiled != compiled) continue;
    add_counted(sum, counted_bytes(kernel));
    any = true;
  }
  return any ? sum : std::nullopt;
}

void set_counted_bytes(Counts& counts, const DeviceWork& device) {
  for (auto& op : counts.ops) op.counted.reset();
  if (device.counters.ranges == CounterRanges::modules) return;
  std::vector<std::optional<CountedBytes>> sums(counts.ops.size(), nothing());
  std::vector<bool> launched(counts.ops.size());
  bool any = false;
  for (const auto& kernel : device.kernels) {
    if (kernel.bucket < 0) continue;
    const auto op = static_cast<std::size_t>(kernel.bucket);
    if (op >= sums.size()) continue;  // a file may say anything
    add_counted(sums[op], counted_bytes(kernel));
    launched[op] = true;
    any = any || kernel.counted > 0;
  }
  if (!any) return;
  const auto shared = ops_with_stray_kernels(device.kernels);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    OpBucket& op = counts.ops[i];
    if (launched[i] && op.link_bytes == 0 && !shared.contains({op.owner, op.op})) op.counted = sums[i];
  }
}

}  // namespace roofprof
