#include "machine/cpu/measure_cpu.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/phrases.h"
#include "machine/common/bandwidth_curve.h"
#include "machine/common/measurement.h"
#include "machine/cpu/background_load.h"
#include "machine/cpu/bandwidth.h"
#include "machine/cpu/compute_peak.h"
#include "machine/cpu/environment.h"
#include "machine/cpu/host.h"

namespace roofprof {
namespace {

using Clock = std::chrono::steady_clock;
std::vector<StatedCache> stated_caches(int threads) {
  std::vector<StatedCache> stated;
  for (const CacheLevel& level : cpu_caches()) {
    const StatedCache cache{level.name(), level.capacity_bytes(threads)};
    // A cache that is not larger than the one below it (virtual machines state such caches) holds nothing more.
    if (cache.capacity_bytes > (stated.empty() ? 0 : stated.back().capacity_bytes)) stated.push_back(cache);
  }
  return stated;
}

// Returns the memory that a measurement may take: at most 1 GB, and a tenth of the available memory.
std::int64_t affordable_bytes() {
  constexpr std::int64_t kMost = 1'000'000'000;
  return std::min(kMost, available_memory_bytes().value_or(10 * kMost) / 10);
}

// Well beyond the caches where they are what the system states, but no more than is affordable.
std::int64_t largest_working_set(const std::vector<StatedCache>& stated, std::int64_t affordable,
                                 std::vector<std::string>& notes) {
  constexpr std::int64_t kMiB = 1 << 20;
  const std::int64_t cache = stated.empty() ? 0 : stated.back().capacity_bytes;
  // Each thread's part of a working set is rounded up to a huge page.
  const std::int64_t rounding = 2 * kMiB * at::get_num_threads();
  const std::int64_t largest =
      std::min(std::max(256 * kMiB, 4 * cache), std::max(affordable - rounding, affordable / 2));
  if (largest <= cache) {
    notes.push_back("the largest working set, " + bytes_text(largest) + ", is no larger than the cache of " +
                    bytes_text(cache) + " that the system states: what is called DRAM may be a cache");
  }
  return largest;
}

// The shapes of a dtype, and the share of the processors that others used meanwhile, where it was too large; else 0. A
// disturbed search leaves a dtype out, or leaves it with a slow shape, so it is made again.
std::pair<ComputeTrials, double> found_shapes(DType dtype, std::int64_t largest_bytes, double sane_rate) {
  constexpr int kTries = 3;
  for (int tried = 1;; ++tried) {
    const BackgroundLoad background;
    ComputeTrials trials(dtype, largest_bytes, sane_rate);
    const double share = background.share().value_or(0);
    if (share <= BackgroundLoad::kBusy) return {std::move(trials), 0};
    if (tried == kTries) return {std::move(trials), share};
  }
}

// All roofs once. Rounds lie seconds apart: what disturbs one of them, or lends it a frequency that does not last, is
// not there for the next.
struct Round {
  std::vector<BandwidthPoint> bandwidth;
  std::vector<double> compute;  // of each dtype
};

Rounds<Round> measure_rounds(std::optional<BandwidthSweep>& sweep,
                             std::vector<std::pair<DType, ComputeTrials>>& compute, Clock::time_point end,
                             const std::function<void(const std::string&)>& tell) {
  return quiet_rounds<Round>(
      [&](std::size_t quiet, std::size_t all) {
        tell("round " + std::to_string(quiet + 1) + " of " + std::to_string(kQuietRounds) +
             (quiet < all ? ", as others used the processors" : ""));
        const BackgroundLoad background;
        Round round;
        if (sweep) round.bandwidth = sweep->round();
        for (auto& [dtype, trials] : compute) round.compute.push_back(trials.round());
        return std::pair(std::move(round), background.share().value_or(0));
      },
      [&] { return Clock::now() < end; });
}

std::string level_method(const Plateau& level, const std::vector<Plateau>& all, const std::vector<StatedCache>& stated,
                         std::size_t rounds) {
  std::string method = level.kernel + " over " + bytes_text(level.from_bytes) + " to " + bytes_text(level.to_bytes) +
                       ", " + torch_threads_text() + ", best of " + std::to_string(rounds);
  for (const auto& cache : stated) {
    const bool found = std::ranges::find(all, cache.level, &Plateau::level) != all.end();
    if (cache.level == level.level) {
      method += "; the system states " + bytes_text(cache.capacity_bytes);
    } else if (!found && cache.capacity_bytes >= level.from_bytes && cache.capacity_bytes <= level.to_bytes) {
      method += "; no step at the " + bytes_text(cache.capacity_bytes) + " stated for " + cache.level;
    }
  }
  return method + "; write-allocate not counted";
}

// Returns the spread; empty for a single round, which has none.
std::optional<double> spread_of(const std::vector<Round>& rounds, double spread) {
  return rounds.size() > 1 ? std::optional(spread) : std::nullopt;
}

void add_memory(const std::vector<Round>& rounds, const std::vector<StatedCache>& stated, const std::string& date,
                Ceilings& ceilings) {
  std::vector<std::vector<BandwidthPoint>> bandwidths;
  for (const Round& round : rounds) bandwidths.push_back(round.bandwidth);
  auto& curve = ceilings.curve;
  curve.points = best_of(bandwidths);
  double spread = 0;
  const auto levels = plateaus(curve.points, stated);
  for (const Plateau& level : levels) {
    ceilings.memory.push_back({.level = level.level,
                               .bytes_per_second = level.bytes_per_second,
                               .capacity_bytes = level.capacity_bytes,
                               .provenance = {"measured", level_method(level, levels, stated, rounds.size()), date,
                                              spread_of(rounds, level.spread)}});
    spread = std::max(spread, level.spread);
  }
  curve.provenance = {"measured",
                      "read, triad, copy, write and update in place over " +
                          bytes_text(curve.points.front().working_set_bytes) + " to " +
                          bytes_text(curve.points.back().working_set_bytes) + ", " + torch_threads_text() +
                          ", best of " + std::to_string(rounds.size()) + ", made monotone; write-allocate not counted",
                      date, spread_of(rounds, spread)};
}

void add_compute(const std::vector<Round>& rounds, const std::vector<std::pair<DType, ComputeTrials>>& compute,
                 const std::string& date, Ceilings& ceilings) {
  for (std::size_t i = 0; i < compute.size(); ++i) {
    const auto [least, most] = std::ranges::minmax(rounds, {}, [&](const Round& round) { return round.compute[i]; });
    const double best = most.compute[i];
    ceilings.compute.push_back({.dtype = compute[i].first,
                                .operations_per_second = best,
                                .provenance = {"measured", compute[i].second.method(static_cast<int>(rounds.size())),
                                               date, spread_of(rounds, (best - least.compute[i]) / best)}});
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
  // A round takes about three seconds, more where others work.
  constexpr std::chrono::seconds kLongest{15};
  const auto end = Clock::now() + kLongest;
  MeasuredCeilings result;
  result.ceilings.device = cpu_model() + ", " + torch_threads_text();
  const auto stated = stated_caches(at::get_num_threads());
  // Both are there at once: the arrays that bandwidth is measured over, and a contraction's operands.
  const std::int64_t affordable = affordable_bytes();
  const std::int64_t operands = affordable / 4;
  const std::int64_t largest = largest_working_set(stated, affordable - operands, result.notes);

  std::vector<std::pair<DType, ComputeTrials>> compute;
  double fp32_rate = 0;
  double busy_share = 0;
  for (const DType dtype : {DType::fp32, DType::fp64, DType::bf16, DType::fp16, DType::int8}) {
    tell(std::string(name_of(dtype)) + " products and convolutions");
    // A narrow dtype without a fast product still has fast elementwise kernels, which would stand above such a "roof".
    const double sane_rate = dtype == DType::fp64 ? 0 : fp32_rate / 4;
    auto [trials, share] = found_shapes(dtype, operands, sane_rate);
    busy_share = std::max(busy_share, share);
    if (!trials.left_out().empty()) {
      // No note: a report that needs this roof says itself that it has none.
      tell(std::string(name_of(dtype)) + " is left out: " + trials.left_out());
      continue;
    }
    if (dtype == DType::fp32) fp32_rate = trials.round();
    compute.emplace_back(dtype, std::move(trials));
  }

  tell("bandwidth over 16 KiB to " + bytes_text(largest));
  std::optional<BandwidthSweep> sweep;
  try {
    sweep.emplace(largest);
  } catch (const std::bad_alloc&) {
    result.notes.push_back("bandwidths were left out: " + bytes_text(largest) + " could not be allocated");
  }

  const Rounds<Round> rounds = measure_rounds(sweep, compute, end, tell);
  const std::string date = local_date();
  add_compute(rounds.kept, compute, date, result.ceilings);
  if (sweep) add_memory(rounds.kept, stated, date, result.ceilings);
  result.ceilings.busy_share = std::max(busy_share, rounds.busy_share);
#ifndef __OPTIMIZE__
  result.notes.emplace_back("roofprof was built without optimisation: its bandwidths are too low to be roofs");
#endif
  note_reduced_precision(result.notes);
  note_unsteady(result.ceilings, result.notes);
  return result;
}

}  // namespace roofprof
