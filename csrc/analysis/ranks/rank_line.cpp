#include "analysis/ranks/rank_line.h"

#include <algorithm>
#include <cmath>

#include "analysis/ranks/known_sum.h"
#include "analysis/steps.h"
#include "core/collective_kinds.h"
#include "core/phrases.h"

namespace roofprof {

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

// Empty where an op's time is not known.
std::optional<std::int64_t> time_in_computing_ops(const ProfileData& data, const RooflineRow& total) {
  if (!total.op_time_ns) return std::nullopt;
  std::int64_t ns = *total.op_time_ns;
  for (const auto& bucket : data.ops) {
    if (!is_communication(bucket.op)) continue;
    if (!bucket.time_ns) return std::nullopt;
    ns -= *bucket.time_ns;
  }
  return ns;
}

}  // namespace

std::optional<std::int64_t> number_in(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (key == name && number != nullptr) return *number;
  }
  return std::nullopt;
}

std::string text_in(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    const auto* text = std::get_if<std::string>(&value);
    if (key == name && text != nullptr) return *text;
  }
  return "";
}

Rank rank_line(const ProfileData& data, const RooflineRow& total, std::int64_t rank) {
  Rank line;
  line.rank = rank;
  line.host = text_in(data.environment, "host");
  line.device = data.device;
  line.model = data.model;
  line.partial = data.partial;
  line.steps = data.runs.steps;
  line.wall_ns = value_of_run(data.runs.total_ns, data.runs.chosen);
  if (const auto steps = statistics_of_steps(data.runs.step_ns)) {
    line.step_ns = std::llround(steps->median_ns);
    line.step_spread = steps->spread;
  }
  line.time_ns = total.time_ns;
  line.compute_ns = time_in_computing_ops(data, total);
  line.communication_ns = data.collectives.time_ns;
  line.exposed_ns = data.collectives.exposed_ns;
  if (line.wall_ns && line.compute_ns && line.exposed_ns) {
    line.idle_ns = std::max<std::int64_t>(*line.wall_ns - *line.compute_ns - *line.exposed_ns, 0);
  }
  line.lower_bound_ns = total.lower_bound_time_ns;
  line.percent_of_roof = total.percent_of_roof;
  line.peak_memory = data.peak_memory;
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

std::optional<double> distance_of_roofs(const Ceilings& first, const Ceilings& other) {
  if (first.device != other.device) return std::nullopt;
  const auto compute =
      distance(first.compute, other.compute, &ComputeCeiling::dtype, &ComputeCeiling::operations_per_second);
  const auto memory = distance(first.memory, other.memory, &MemoryCeiling::level, &MemoryCeiling::bytes_per_second);
  if (!compute || !memory) return std::nullopt;
  return std::max(*compute, *memory);
}

}  // namespace roofprof
