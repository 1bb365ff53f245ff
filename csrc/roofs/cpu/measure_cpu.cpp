#include "roofs/cpu/measure_cpu.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "roofs/common/measurement.h"
#include "roofs/cpu/bandwidth.h"
#include "roofs/cpu/caches.h"
#include "roofs/cpu/compute_peak.h"
#include "roofs/cpu/environment.h"
#include "roofs/cpu/host.h"
#include "roofs/cpu/neighbours.h"
#include "roofs/cpu/torch_threads.h"
#include "values/phrases.h"

namespace roofprof {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr Seconds kSecondsPerLevel{0.75};
constexpr Seconds kSecondsPerDtype{1.2};

struct Level {
  std::string name;
  std::int64_t capacity_bytes = 0;     // 0: without bound
  std::int64_t working_set_bytes = 0;  // of all threads and arrays
  std::string remark;                  // about the working set, for the method
};

// A working set that lies in its level alone: well above the level below, whose capacity adds to this one's where the
// caches do not hold copies of each other, and with room for what else is in use.
std::int64_t working_set(std::int64_t capacity, std::int64_t below) {
  return std::max(capacity * 6 / 10, below + capacity / 2);
}

Level dram_level(std::int64_t last_level_bytes, std::vector<std::string>& notes) {
  constexpr std::int64_t kArrays = 3;  // triad's, and so at least as large each for the others
  constexpr std::int64_t kAssumedCache = std::int64_t{32} << 20;
  if (last_level_bytes == 0)
    notes.emplace_back("no cache sizes are exposed: DRAM was measured as if 32 MiB were cached");
  const std::int64_t cache = last_level_bytes > 0 ? last_level_bytes : kAssumedCache;
  Level level{.name = "DRAM", .capacity_bytes = 0, .working_set_bytes = kArrays * 4 * cache, .remark = {}};
  const auto available = available_memory_bytes();
  if (available && level.working_set_bytes > *available / 4) {
    level.working_set_bytes = *available / 4;
    level.remark = ", cut to 1/4 of the available memory: " +
                   number_text(static_cast<double>(level.working_set_bytes) / kArrays / static_cast<double>(cache)) +
                   " times the last-level cache per array";
  }
  return level;
}

std::vector<Level> memory_levels(int threads, std::vector<std::string>& notes) {
  const CacheCapacity capacity = cache_capacity(cpu_caches(), threads);
  std::vector<Level> levels;
  std::int64_t below = 0;
  for (const auto& [name, bytes] :
       {std::pair{"L1", capacity.l1d_bytes}, std::pair{"L2", capacity.l2_bytes}, std::pair{"L3", capacity.l3_bytes}}) {
    if (bytes == 0) continue;
    // A level smaller than the one below it (a virtual machine's idea of a cache) cannot be told from it.
    if (bytes <= below) {
      notes.push_back(std::string(name) + " is no larger than the level below it and was left out");
      continue;
    }
    levels.push_back(
        {.name = name, .capacity_bytes = bytes, .working_set_bytes = working_set(bytes, below), .remark = {}});
    below = bytes;
  }
  levels.push_back(dram_level(below, notes));
  return levels;
}

std::string bandwidth_method(const Level& level, const std::vector<Bandwidth>& kernels) {
  std::string others;
  for (std::size_t i = 1; i < kernels.size(); ++i) {
    add_item(others, kernels[i].kernel + " " + number_text(kernels[i].bytes_per_second / 1e9));
  }
  return kernels[0].kernel + " over " + bytes_text(level.working_set_bytes) + level.remark + ", " +
         torch_threads_text() + ", best of " + std::to_string(kernels[0].repeats) + " (" + others +
         " GB/s); write-allocate not counted";
}

void note_neighbours(const Neighbours& neighbours, std::vector<std::string>& notes) {
  if (const double share = neighbours.share().value_or(0); share > Neighbours::kBusy) {
    notes.push_back("other programs used " + number_text(100 * share) +
                    "% of the processors while the roofs were measured, so they may be far too low; measure again when "
                    "the machine is quiet");
  }
}

// "high" and "medium" let torch compute fp32 products in narrower types.
void note_reduced_precision(std::vector<std::string>& notes) {
  try {
    if (at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST) return;
  } catch (const std::exception&) {  // torch refuses to name one precision where its two ways of setting it were mixed
  }
  notes.emplace_back("fp32 was measured with torch's float32 matmul precision below \"highest\"");
}

}  // namespace

MeasuredCeilings measure_cpu(const std::function<void(std::string_view)>& progress) {
  const auto tell = [&](const std::string& what) {
    if (progress) progress("roofs of this machine: " + what);
  };
  const Neighbours neighbours;
  const std::string date = local_date();
  MeasuredCeilings result;
  result.ceilings.device = cpu_model() + ", " + torch_threads_text();

  for (const Level& level : memory_levels(at::get_num_threads(), result.notes)) {
    tell(level.name + " bandwidth");
    try {
      const auto kernels = measure_bandwidth(level.working_set_bytes, kSecondsPerLevel);
      result.ceilings.memory.push_back(
          {.level = level.name,
           .bytes_per_second = kernels[0].bytes_per_second,
           .capacity_bytes = level.capacity_bytes,
           .provenance = {"measured", bandwidth_method(level, kernels), date, kernels[0].spread}});
    } catch (const std::bad_alloc&) {
      result.notes.push_back(level.name + " was left out: " + bytes_text(level.working_set_bytes) +
                             " could not be allocated");
    }
  }
  note_odd_order(result.ceilings.memory, result.notes);
  if (!bandwidth_loops_are_optimised()) {
    result.notes.emplace_back("roofprof was built without optimisation: its bandwidths are too low to be roofs");
  }

  double fp32_rate = 0;
  for (const DType dtype : {DType::fp32, DType::fp64, DType::bf16, DType::fp16, DType::int8}) {
    tell(std::string(name_of(dtype)) + " products and convolutions");
    // A narrow dtype without a fast product still has fast elementwise kernels, which would stand above such a "roof".
    const double sane_rate = dtype == DType::fp64 ? 0 : fp32_rate / 8;
    const ComputePeak peak = measure_compute_peak(dtype, kSecondsPerDtype, sane_rate);
    if (!peak.left_out.empty()) {
      // No note: a report that needs this roof says itself that it has none.
      tell(std::string(name_of(dtype)) + " is left out: " + peak.left_out);
      continue;
    }
    if (dtype == DType::fp32) fp32_rate = peak.operations_per_second;
    result.ceilings.compute.push_back({.dtype = dtype,
                                       .operations_per_second = peak.operations_per_second,
                                       .provenance = {"measured", peak.method, date, peak.spread}});
  }
  note_reduced_precision(result.notes);
  note_neighbours(neighbours, result.notes);
  note_unsteady(result.ceilings, result.notes);
  return result;
}

}  // namespace roofprof
