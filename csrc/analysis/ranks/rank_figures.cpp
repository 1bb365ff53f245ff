#include "analysis/ranks/rank_figures.h"

#include <algorithm>
#include <map>
#include <type_traits>

#include "analysis/derivations.h"
#include "analysis/rows.h"
#include "core/median.h"

namespace roofprof {

namespace {

void write_times(const TimeOverRanks& time, RooflineRow& row) {
  if (time.ranks == 0) return;
  row.time_min_ns = time.min_ns;
  row.time_median_ns = time.median_ns;
  row.time_max_ns = time.max_ns;
  row.slowest_rank = time.slowest;
  if (time.max_ns > 0) {
    const auto longest = static_cast<double>(time.max_ns);
    row.imbalance = 100 * (longest - time.mean_ns) / longest;
  }
}

// Half the largest spread of a rank's steps, of all its steps together, in nanoseconds; empty where steps tell none.
std::optional<double> noise_of_steps(const ProfileData& data) {
  double noise = 0;
  for (const auto& rank : ranks_of(data)) {
    if (!rank.step_spread || !rank.step_ns || rank.steps < 2) return std::nullopt;
    noise = std::max(noise, *rank.step_spread / 2 * static_cast<double>(*rank.step_ns * rank.steps));
  }
  return noise;
}

}  // namespace

void add_times_over_ranks(const ProfileData& data, std::vector<RooflineRow>& rows, RooflineRow& total) {
  const auto* merged = data.merged();
  if (merged == nullptr) return;
  std::map<ModuleId, const TimeOverRanks*> times;
  for (const auto& [module, time] : merged->modules) times[module] = &time;
  const auto ids = row_modules(data);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (const auto found = times.find(ids[i]); found != times.end()) write_times(*found->second, rows[i]);
  }
  write_times(merged->total, total);
}

void add_mean_over_ranks(const std::vector<const RooflineRow*>& modules, RooflineRow& mean) {
  const auto mean_of = [&](auto member) {
    using Value = typename std::remove_cvref_t<decltype(mean.*member)>::value_type;
    double sum = 0;
    for (const auto* module : modules) {
      if (!(module->*member)) return;
      sum += static_cast<double>(*(module->*member));
    }
    mean.*member = static_cast<Value>(sum / static_cast<double>(modules.size()));
  };
  mean_of(&RooflineRow::time_min_ns);
  mean_of(&RooflineRow::time_median_ns);
  mean_of(&RooflineRow::time_max_ns);
  mean_of(&RooflineRow::imbalance);
  mean_of(&RooflineRow::communication_ns);
  mean_of(&RooflineRow::exposed_communication_ns);
  const auto slowest = modules.front()->slowest_rank;
  const bool is_the_same =
      std::ranges::all_of(modules, [&](const RooflineRow* module) { return module->slowest_rank == slowest; });
  if (is_the_same) mean.slowest_rank = slowest;
}

const std::vector<Rank>& ranks_of(const ProfileData& data) {
  static const std::vector<Rank> kNone;
  return data.merged() == nullptr ? kNone : data.merged()->ranks;
}

std::optional<LateRank> late_rank(const ProfileData& data) {
  record_derivation("late rank", data);
  const Rank* late = nullptr;
  for (const auto& rank : ranks_of(data)) {
    if (!rank.waiting_ns) return std::nullopt;
    if (late == nullptr || *rank.waiting_ns < *late->waiting_ns) late = &rank;
  }
  std::vector<std::int64_t> others;
  for (const auto& rank : ranks_of(data)) {
    if (&rank != late) others.push_back(*rank.waiting_ns);
  }
  const auto noise = noise_of_steps(data);
  if (others.empty() || !noise) return std::nullopt;
  const auto waited = static_cast<std::int64_t>(median(others));
  if (static_cast<double>(waited - *late->waiting_ns) <= *noise) return std::nullopt;
  return LateRank{late->rank, *late->waiting_ns, waited};
}

std::optional<SlowRank> slow_rank(const ProfileData& data, const std::vector<RooflineRow>& rows) {
  record_derivation("slow rank", data);
  std::vector<std::int64_t> times;
  const Rank* slowest = nullptr;
  for (const auto& rank : ranks_of(data)) {
    if (!rank.compute_ns) return std::nullopt;
    times.push_back(*rank.compute_ns);
    if (slowest == nullptr || *rank.compute_ns > *slowest->compute_ns) slowest = &rank;
  }
  const auto noise = noise_of_steps(data);
  if (times.size() < 2 || !noise) return std::nullopt;
  const double middle = median(times);
  if (middle <= 0 || static_cast<double>(*slowest->compute_ns) - middle <= *noise) return std::nullopt;
  SlowRank slow{slowest->rank, static_cast<double>(*slowest->compute_ns) / middle, {}};
  std::vector<const RooflineRow*> slower;
  for (const auto& row : rows) {
    if (row.slowest_rank == slowest->rank && row.depth > 0) slower.push_back(&row);
  }
  const auto excess = [](const RooflineRow* row) { return *row->time_max_ns - *row->time_median_ns; };
  std::ranges::stable_sort(slower, std::ranges::greater{}, excess);
  for (const auto* row : slower) {
    if (excess(row) > 0) slow.modules.push_back(row->path);
  }
  return slow;
}

}  // namespace roofprof
