#include "report/columns.h"

#include <array>
#include <cctype>
#include <utility>

namespace roofprof {

namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 29> kHeadings = {{
    {"path", "module"},
    {"macs", "MACs"},
    {"causal_macs", "causal MACs"},
    {"flops", "FLOPs"},
    {"int_ops", "int ops"},
    {"intensity", "AI"},
    {"achieved_flops", "FLOP/s"},
    {"achieved_bandwidth", "B/s"},
    {"percent_of_roof", "%roof"},
    {"wasted_time", "wasted"},
    {"lower_bound_time", "at least"},
    {"percent_of_time", "time%"},
    {"trainable_params", "trainable"},
    {"kernel_count", "kernels"},
    {"work_share", "share"},
    {"time_spread", "spread"},
    {"operations_by_dtype", "by dtype"},
    {"utilization", "util"},
    {"dram_bytes", "DRAM"},
    {"l2_bytes", "L2"},
    {"l1_bytes", "L1"},
    {"dram_intensity", "DRAM AI"},
    {"l2_intensity", "L2 AI"},
    {"l1_intensity", "L1 AI"},
    {"dram_bytes_ratio", "ratio"},
    {"dram_bandwidth", "DRAM B/s"},
    {"executed_flops", "executed"},
    {"stddev", "std dev"},
    {"built_for", "built for"},
}};

constexpr std::array<Pair, 18> kAliases = {{
    {"module", "path"},
    {"name", "path"},
    {"ai", "intensity"},
    {"flop/s", "achieved_flops"},
    {"flops/s", "achieved_flops"},
    {"b/s", "achieved_bandwidth"},
    {"bandwidth", "achieved_bandwidth"},
    {"%roof", "percent_of_roof"},
    {"roof", "percent_of_roof"},
    {"wasted", "wasted_time"},
    {"lower_bound", "lower_bound_time"},
    {"time%", "percent_of_time"},
    {"flops_by_dtype", "operations_by_dtype"},
    {"util", "utilization"},
    {"dram", "dram_bytes"},
    {"ratio", "dram_bytes_ratio"},
    {"arch", "built_for"},
    {"std dev", "stddev"},
}};

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

std::string heading_of(std::string_view name) {
  constexpr std::string_view kSelf = "self_";
  if (name.starts_with(kSelf)) return "self " + heading_of(name.substr(kSelf.size()));
  for (const auto& [full, heading] : kHeadings) {
    if (full == name) return std::string(heading);
  }
  return spaced(name);
}

std::string canonical_column(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kSelf = "self_";
  if (lower.starts_with(kSelf)) return std::string(kSelf) + canonical_column(lower.substr(kSelf.size()));
  for (const auto& [alias, full] : kAliases) {
    if (alias == lower) return std::string(full);
  }
  return lower;
}

std::string cell_text(const Value& value, Unit unit) {
  if (is_textual(unit)) return value.text;
  if (!value.number) return "n/a";
  const double number = *value.number;
  switch (unit) {
    case Unit::bytes:
      return human_bytes(number, "");
    case Unit::nanoseconds:
      return human_time(number, "");
    case Unit::percent:
      return human_percent(number);
    case Unit::fraction:
      return human_percent(100 * number);
    case Unit::ratio:
    case Unit::flops_per_byte:
      return human_ratio(number);
    default:
      return human_count(number, "", "");
  }
}

}  // namespace roofprof
