#include "analysis/ranks/rank_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>

#include "analysis/ranks/merged_sums.h"
#include "analysis/rows.h"
#include "analysis/steps.h"
#include "core/collective_kinds.h"
#include "core/median.h"
#include "core/phrases.h"

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

// Returns half the largest spread of a rank's steps, of all its steps together, in nanoseconds; empty where steps tell
// none.
std::optional<double> noise_of_steps(const Profile& data) {
  double noise = 0;
  for (const auto& rank : ranks_of(data)) {
    if (!rank.step_spread || !rank.step_ns || rank.steps < 2) return std::nullopt;
    noise = std::max(noise, *rank.step_spread / 2 * static_cast<double>(*rank.step_ns * rank.steps));
  }
  return noise;
}

}  // namespace

void add_times_over_ranks(const Profile& data, std::vector<RooflineRow>& rows, RooflineRow& total) {
  const auto* merged = data.origin.merged();
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
  mean_of(&RooflineRow::hidden_communication_ns);
  const auto slowest = modules.front()->slowest_rank;
  const bool is_the_same =
      std::ranges::all_of(modules, [&](const RooflineRow* module) { return module->slowest_rank == slowest; });
  if (is_the_same) mean.slowest_rank = slowest;
}

const std::vector<Rank>& ranks_of(const Profile& data) {
  static const std::vector<Rank> kNone;
  return data.origin.merged() == nullptr ? kNone : data.origin.merged()->ranks;
}

std::optional<LateRank> late_rank(const Profile& data) {
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

std::optional<SlowRank> slow_rank(const Profile& data, const std::vector<RooflineRow>& rows) {
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

namespace {

template <class Roofs, class Name, class Rate>
std::optional<double> distance(const Roofs& first, const Roofs& other, Name name, Rate rate) {
  if (first.size() != other.size()) return std::nullopt;
  double largest = 0;
  for (const auto& roof : first) {
    const auto same = std::ranges::find(other, roof.*name, name);
    if (same == other.end() || roof.*rate <= 0) return std::nullopt;
    largest = std::max(largest, std::abs((*same).*rate / roof.*rate - 1));
  }
  return largest;
}

// Returns the time in ops that compute; empty where an op's time is not known.
std::optional<std::int64_t> time_in_computing_ops(const Profile& data, const RooflineRow& total) {
  if (!total.op_time_ns) return std::nullopt;
  std::int64_t ns = *total.op_time_ns;
  for (const auto& hidden : hidden_in_kernels(data)) ns = saturating_add(ns, hidden.ns);
  for (const auto& bucket : data.counts.ops) {
    if (!is_communication(bucket.op)) continue;
    if (!bucket.time_ns) return std::nullopt;
    ns -= *bucket.time_ns;
  }
  return ns;
}

}  // namespace

Rank rank_line(const Profile& data, const RooflineRow& total, std::int64_t rank) {
  Rank line;
  line.rank = rank;
  line.host = facts_in(data.run.environment).host;
  line.device = data.run.device;
  line.model = data.run.model;
  line.partial = data.run.partial;
  line.steps = data.run.runs.steps;
  line.wall_ns = value_of_run(data.run.runs.total_ns, data.run.runs.chosen);
  if (const auto steps = statistics_of_steps(data.run.runs.step_ns)) {
    line.step_ns = std::llround(steps->median_ns);
    line.step_spread = steps->spread;
  }
  line.time_ns = total.time_ns;
  line.compute_ns = time_in_computing_ops(data, total);
  line.communication_ns = data.comms->time_ns;
  line.exposed_ns = data.comms->exposed_ns;
  if (line.wall_ns && line.compute_ns && line.exposed_ns) {
    line.idle_ns = std::max<std::int64_t>(*line.wall_ns - *line.compute_ns - *line.exposed_ns, 0);
  }
  line.lower_bound_ns = total.lower_bound_time_ns;
  line.percent_of_roof = total.percent_of_roof;
  line.peak_memory = data.counts.memory.peak_bytes;
  line.incomplete = total.incomplete;
  line.macs = total.macs;
  line.flops = total.flops;
  line.bytes = total.bytes;
  return line;
}

std::string listed_ranks(const std::vector<std::int64_t>& ranks) {
  std::string list;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    const bool is_range = last > first + 1;
    for (std::size_t i = first; !is_range && i <= last; ++i) add_item(list, std::to_string(ranks[i]));
    if (is_range) add_item(list, std::to_string(ranks[first]) + "-" + std::to_string(ranks[last]));
    first = last + 1;
  }
  return list;
}

std::string named_ranks(const std::vector<std::int64_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + listed_ranks(ranks);
}

std::optional<double> distance_of_roofs(const Ceilings& first, const Ceilings& other) {
  if (first.device != other.device) return std::nullopt;
  const auto compute =
      distance(first.compute, other.compute, &ComputeCeiling::dtype, &ComputeCeiling::operations_per_second);
  const auto memory = distance(first.memory, other.memory, &MemoryCeiling::level, &MemoryCeiling::bytes_per_second);
  if (!compute || !memory) return std::nullopt;
  return std::max(*compute, *memory);
}

}  // namespace roofprof
