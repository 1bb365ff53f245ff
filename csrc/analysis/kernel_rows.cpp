#include "analysis/kernel_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/kernel_arch.h"
#include "analysis/measured.h"
#include "analysis/roofline.h"
#include "analysis/within.h"
#include "core/counted_bytes.h"
#include "core/memory_time.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

// Returns how many different kernels each op launched.
std::vector<std::int64_t> kernels_by_op(const Profile& data) {
  std::vector<std::int64_t> kernels(data.counts.ops.size());
  for (const auto& kernel : data.device->kernels) {
    if (kernel.kind == KernelKind::kernel && kernel.bucket >= 0) ++kernels[static_cast<std::size_t>(kernel.bucket)];
  }
  return kernels;
}

// Copies what kernels of devices and of compiled code have alike: where they ran, and their times.
template <class Kernel>
void copy_place_and_times(const Kernel& kernel, const Profile& data, KernelRow& row) {
  row.name = kernel.name;
  row.module = data.tree.modules[index_of(kernel.owner.module)].path;
  row.phase = kernel.owner.phase;
  row.scope = path_of_region(data, kernel.owner.region);
  row.total_ns = kernel.total_ns;
  row.instances = kernel.instances;
  if (kernel.instances > 0)
    row.average_ns = static_cast<double>(kernel.total_ns) / static_cast<double>(kernel.instances);
  row.median_ns = kernel.median_ns;
  row.min_ns = kernel.min_ns;
  row.max_ns = kernel.max_ns;
  row.stddev_ns = kernel.stddev_ns;
}

void copy_facts(const KernelBucket& kernel, const Profile& data, KernelRow& row) {
  copy_place_and_times(kernel, data, row);
  row.kind = kernel.kind;
  if (kernel.kind == KernelKind::copy) {
    row.copied = std::string(kMemoryNames[static_cast<std::size_t>(kernel.from)]) + " to " +
                 std::string(kMemoryNames[static_cast<std::size_t>(kernel.to)]);
  }
  row.op = kernel.op;
  row.grid = kernel.grid;
  row.block = kernel.block;
  row.device = kernel.device;
  row.in_graph = kernel.in_graph;
  if (const auto architecture = architecture_in_name(kernel.name))
    row.built_for = "sm_" + std::to_string(*architecture);
  if (kernel.kind != KernelKind::kernel && kernel.bytes > 0) row.bytes = kernel.bytes;
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

// The longest of the times that each of its resources needs for what was counted: its operations, all types of them one
// after the other, at their peaks, the counted bytes of DRAM at its bandwidth, and `useful_bytes`, of its op, at that
// of the L2. What the L2 counts is requests of its tag stage, and is held against a roof of the same bytes alone.
// `operations`, `useful_bytes`: empty where they are not known.
void add_roof(const std::optional<std::array<double, kDTypeCount>>& operations,
              std::optional<std::int64_t> useful_bytes, const std::optional<CountedBytes>& counted,
              const Ceilings& ceilings, KernelRow& row) {
  const auto* dram = ceilings.memory_level("DRAM");
  if (!operations || !row.dram_bytes || dram == nullptr || !(dram->bytes_per_second > 0) || row.total_ns <= 0) return;
  std::array<double, kDTypeCount> seconds{};
  double longest = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if ((*operations)[i] <= 0) continue;
    const auto* peak = ceilings.compute_for(static_cast<DType>(i));
    if (peak == nullptr) return;
    seconds[i] = (*operations)[i] / peak->operations_per_second;
    longest += seconds[i];
  }
  const auto leading = static_cast<DType>(std::ranges::max_element(seconds) - seconds.begin());
  Bound bound = longest > 0 ? Bound{BoundKind::compute, std::string(name_of(leading))} : Bound{};
  const auto hold = [&](const MemoryCeiling& level, std::optional<double> needed) {
    if (needed.value_or(0) <= longest) return;
    longest = *needed;
    bound = {BoundKind::memory, level.level};
  };
  OpBucket moved;  // alone, with nothing but these bytes
  moved.counted = counted;
  hold(*dram, counted_seconds(moved, ceilings));
  const auto* cache = ceilings.memory_level("L2");
  const auto hold_cache = [&](std::optional<std::int64_t> bytes, double per_second) {
    if (bytes && per_second > 0) hold(*cache, static_cast<double>(*bytes) / per_second);
  };
  if (cache != nullptr) {
    hold_cache(useful_bytes, cache->bytes_per_second);
    hold_cache(row.l2_bytes, cache->counted_bytes_per_second);
  }
  constexpr double kNanoseconds = 1e9;
  const double ns = longest * kNanoseconds;
  row.lower_bound_time_ns = ns < static_cast<double>(kSaturated) ? std::llround(ns) : kSaturated;
  row.percent_of_roof = 100 * ns / static_cast<double>(row.total_ns);
  row.bound = *row.percent_of_roof < kRoofBounds ? Bound{BoundKind::latency, ""} : bound;
}

std::array<double, kDTypeCount> operations_of(const Work& work) {
  std::array<double, kDTypeCount> operations{};
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (needs_roof(work, static_cast<DType>(i))) operations[i] = static_cast<double>(work.operations[i]);
  }
  return operations;
}

std::string name_of_module(ModuleId id, const Profile& data) {
  return id == kModel ? "(model)" : data.tree.modules[index_of(id)].path;
}

std::string with_shares(const CompiledKernel& kernel, const Profile& data) {
  std::string text;
  for (const auto& part : kernel.parts) {
    auto item = name_of_module(part.module, data);
    if (kernel.parts.size() > 1) item += " " + std::to_string(std::llround(100 * part.share)) + "%";
    add_item(text, item);
  }
  return text;
}

// Holds what is known of the kernel's work against the roofs.
void add_own_work(const OpBucket& kernel, const Profile& data, KernelRow& row) {
  row.bytes = kernel.work.bytes();
  row.incomplete = kernel.work.lower_limit;
  Tally tally;
  tally.add(kernel, data.roofs);
  Timing timing;
  timing.time_ns = row.total_ns;
  const Figures figures = derive_figures(tally, timing, data.roofs);
  if (!row.percent_of_roof) {  // else by what was measured
    row.lower_bound_time_ns = figures.lower_bound_time_ns;
    row.percent_of_roof = figures.percent_of_roof;
    row.bound = figures.bound;
  }
  if (row.incomplete) return;
  if (!row.executed_flops) {
    row.flops = kernel.work.flops();
    row.achieved_flops = figures.achieved_flops;
  }
  row.intensity = figures.intensity;
}

// `is_whole`: the row has all of the kernel's time.
void add_compiled(const CompiledKernel& kernel, const Profile& data, bool is_whole, KernelRow& row) {
  row.fused = listed(kernel.ops);
  row.modules = with_shares(kernel, data);
  row.shared = kernel.parts.size() > 1;
  row.code = kernel.code;
  row.source = kernel.source;
  if (!kernel.costed || !is_whole) return;
  add_own_work(bucket_of(kernel, data), data, row);
  if (!row.incomplete) row.unfused_bytes = kernel.unfused_bytes;
}

KernelRow row_of(const CompiledKernel& kernel, const Profile& data) {
  KernelRow row;
  copy_place_and_times(kernel, data, row);
  add_compiled(kernel, data, true, row);
  return row;
}

// Returns the path of the innermost module around, past regions; empty: there is none.
std::string module_around(ModuleId id, const Profile& data) {
  while (id >= 0 && data.tree.modules[index_of(id)].type == kRegionType) id = data.tree.modules[index_of(id)].parent;
  return id < 0 || id == kOutside ? "" : name_of_module(id, data);
}

// A kernel of compiled code, and how many rows of a device's kernels it has.
struct OnDevice {
  const CompiledKernel* kernel = nullptr;
  std::int64_t rows = 0;
};

std::map<std::int64_t, OnDevice> compiled_on_device(const Profile& data) {
  std::map<std::int64_t, OnDevice> by_id;
  for (const auto& kernel : data.times->compiled_kernels) {
    if (kernel.id > 0) by_id[kernel.id].kernel = &kernel;
  }
  for (const auto& kernel : data.device->kernels) {
    if (const auto known = by_id.find(kernel.compiled); known != by_id.end()) ++known->second.rows;
  }
  return by_id;
}

template <class Kernels>
std::int64_t total_ns_of(const Kernels& kernels) {
  std::int64_t total_ns = 0;
  for (const auto& kernel : kernels) total_ns = saturating_add(total_ns, kernel.total_ns);
  return total_ns;
}

void set_share(std::int64_t all_ns, KernelRow& row) {
  if (all_ns > 0) row.percent_of_time = 100.0 * static_cast<double>(row.total_ns) / static_cast<double>(all_ns);
}

}  // namespace

OpBucket bucket_of(const CompiledKernel& kernel, const Profile& data) {
  OpBucket bucket;
  bucket.op = kernel.name;
  bucket.owner = kernel.owner;
  bucket.calls = kernel.instances;
  bucket.work = kernel.work;
  bucket.costed = kernel.costed;
  if (kernel.id > 0) bucket.counted = counted_bytes(kernel.id, *data.device);
  return bucket;
}

std::vector<KernelRow> kernel_rows(const Profile& data) {
  const auto all_ns = total_ns_of(data.device->kernels);
  const auto by_op = kernels_by_op(data);
  const CounterReader reader(data.device->counters.sources);
  const auto compiled = compiled_on_device(data);
  std::vector<KernelRow> rows;
  rows.reserve(data.device->kernels.size());
  for (const auto& kernel : data.device->kernels) {
    KernelRow& row = rows.emplace_back();
    copy_facts(kernel, data, row);
    set_share(all_ns, row);
    if (kernel.kind != KernelKind::kernel) continue;
    auto operations = reader.operations(kernel);
    std::optional<std::int64_t> useful_bytes;
    // Sets the figures that follow from the work if this is its only kernel.
    const auto take_work = [&](const Work& work) {
      useful_bytes = work.bytes();
      row.flops = work.flops();
      if (!operations) operations = operations_of(work);
    };
    const auto known = compiled.find(kernel.compiled);
    if (known != compiled.end()) {
      const CompiledKernel& code = *known->second.kernel;
      if (known->second.rows == 1 && code.costed && !code.work.lower_limit) take_work(code.work);
    } else if (kernel.bucket >= 0 && by_op[static_cast<std::size_t>(kernel.bucket)] == 1) {
      const OpBucket& op = data.counts.ops[static_cast<std::size_t>(kernel.bucket)];
      if (op.costed && !op.work.lower_limit && !is_time_of_region(op.op)) take_work(op.work);
    }
    add_measured(reader.read(kernel), row);
    add_roof(operations, useful_bytes, counted_bytes(kernel), data.roofs, row);
    if (known != compiled.end()) {
      add_compiled(*known->second.kernel, data, known->second.rows == 1, row);
      continue;
    }
    if (kernel.bucket < 0) continue;
    const OpBucket& op = data.counts.ops[static_cast<std::size_t>(kernel.bucket)];
    if (op.fused.empty()) continue;
    row.fused = listed(op.fused);
    row.code = op.code;
    row.modules = module_around(op.owner.module, data);
    if (op.costed && by_op[static_cast<std::size_t>(kernel.bucket)] == 1) add_own_work(op, data, row);
  }
  const auto compiled_ns = total_ns_of(data.times->compiled_kernels);
  for (const auto& kernel : data.times->compiled_kernels) {
    if (kernel.id > 0) continue;
    set_share(compiled_ns, rows.emplace_back(row_of(kernel, data)));
  }
  return rows;
}

std::string why_no_kernels(const Profile& data) {
  if (!data.device->kernels.empty() || !data.times->compiled_kernels.empty()) return "";
  if (const auto* note = find_note(data.notes, "no-kernels")) return note->text;
  std::string text = "no kernels: nothing was traced on a device";
  const auto is_compiled = [](const OpBucket& op) { return op.op == kCompiledRegion; };
  if (std::ranges::any_of(data.counts.ops, is_compiled))
    text += "; compiled_kernels=True (--compiled-kernels) tells those of compiled code";
  return text;
}

}  // namespace roofprof
