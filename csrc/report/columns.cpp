#include "report/columns.h"

#include <algorithm>

#include "analysis/whole/analysis.h"
#include "core/phrases.h"
#include "core/profile.h"

namespace roofprof {

namespace {

Facts facts_of_collectives(const Report& report) {
  const auto& rows = analysis_of(report).collectives();
  const auto any = [&](auto member) {
    return std::ranges::any_of(rows, [&](const auto& row) { return (row.*member).has_value(); });
  };
  return (any(&Collective::time_ns) ? facts::collectives : 0) | (any(&Collective::wait_ns) ? facts::ranks : 0) |
         (any(&Collective::lower_bound_ns) ? facts::roofs : 0);
}

template <class Row>
std::vector<std::string> names_of_default(const Report& report, const TableOptions& options) {
  std::vector<std::string> names;
  for (const auto& column : choose_columns<Row>(report, options).figures) names.push_back(column.name);
  return names;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::ranges::transform(lowered, lowered.begin(), lower);
  return lowered;
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

const std::vector<DefaultColumn>& default_columns(TableKind kind) {
  static const std::vector<DefaultColumn> kModules = {
      {"type", 13},
      {"params", 14},
      {"macs", 12},
      {"flops", 5},
      {"int_ops", 6, facts::integers},
      {"bytes", 9},
      {"intensity", 11},
      {"time", 0},
      {"time_low", 5},
      {"time_high", 5},
      {"time_min", 6},
      {"time_max", 1},
      {"slowest_rank", 1},
      {"imbalance", 4},
      {"exposed_communication", 3},
      {"utilization", 8},
      {"achieved_flops", 15},
      {"achieved_bandwidth", 16},
      {"dram_bytes", 4},
      {"dram_bytes_ratio", 6},
      {"dram_intensity", 10},
      {"dram_bandwidth", 10},
      {"bound", 3},
      {"percent_of_roof", 7},
      {"percent_of_roof_counted", 9},
      {"wasted_time", 2},
      {"shared_time", 1},
      {"work_share", 1},
  };
  static const std::vector<DefaultColumn> kRegions = {
      {"calls", 3},
      {"wall", 1, facts::time},
      {"time", 0},
      {"macs", 12},
      {"flops", 5},
      {"int_ops", 6, facts::integers},
      {"bytes", 9},
      {"intensity", 11},
      {"achieved_flops", 15},
      {"achieved_bandwidth", 16},
      {"dram_bytes", 4},
      {"bound", 3},
      {"percent_of_roof", 7},
      {"wasted_time", 2},
  };
  static const std::vector<DefaultColumn> kGroups = {
      {"calls", 12},
      {"time", 0},
      {"percent_of_time", 3},
      {"macs", 13},
      {"flops", 5},
      {"int_ops", 6, facts::integers},
      {"bytes", 9},
      {"intensity", 14},
      {"achieved_flops", 15},
      {"achieved_bandwidth", 16},
      {"dram_bytes", 6},
      {"dram_bytes_ratio", 8},
      {"dram_intensity", 11},
      {"dram_bandwidth", 10},
      {"bound", 4},
      {"percent_of_roof", 7},
      {"percent_of_roof_counted", 9},
      {"wasted_time", 2},
  };
  static const std::vector<DefaultColumn> kKernels = {
      {"percent_of_time", 0},
      {"total", 0},
      {"instances", 0},
      {"average", 6},
      {"median", 7},
      {"min", 10},
      {"max", 9},
      {"stddev", 11},
      {"bytes", 3, facts::compiled},
      {"unfused_bytes", 8, facts::compiled},
      {"dram_bytes", 6},
      {"l2_bytes", 15},
      {"l1_bytes", 15},
      {"flops", 13, facts::counters},
      {"intensity", 12, facts::compiled},
      {"dram_bandwidth", 9},
      {"bound", 2},
      {"percent_of_roof", 1},
      {"module", 4},
      {"scope", 12},
      {"op", 5},
      {"fused", 7, facts::compiled},
      {"built_for", 13},
      {"grid", 14},
      {"block", 14},
  };
  static const std::vector<DefaultColumn> kRanks = {
      {"host", 4}, {"device", 3},  {"steps", 7},           {"step", 2},        {"step_spread", 6}, {"wall", 1},
      {"time", 5}, {"compute", 0}, {"communication", 4},   {"exposed", 0},     {"waiting", 0},     {"idle", 3},
      {"macs", 9}, {"bytes", 10},  {"percent_of_roof", 0}, {"peak_memory", 8},
  };
  static const std::vector<DefaultColumn> kCollectives = {
      {"module", 0},
      {"phase", 8},
      {"group", 9},
      {"ranks", 4},
      {"hosts", 5},
      {"dtype", 10},
      {"calls", 3},
      {"bytes", 0},
      {"time", 0},
      {"wait", 0},
      {"transfer", 2},
      {"exposed", 0},
      {"algorithm_bandwidth", 6},
      {"bus_bandwidth", 1},
      {"algorithm", 11},
      {"bound", 7},
      {"percent_of_roof", 0},
      {"wasted", 5},
  };
  static const std::vector<DefaultColumn> kMemory = {
      {"module", 0}, {"phase", 2}, {"before", 1}, {"storages", 3}, {"bytes", 0}, {"percent_of_all", 0},
  };
  switch (kind) {
    case TableKind::modules:
      return kModules;
    case TableKind::regions:
      return kRegions;
    case TableKind::groups:
      return kGroups;
    case TableKind::kernels:
      return kKernels;
    case TableKind::ranks:
      return kRanks;
    case TableKind::memory:
      return kMemory;
    default:
      return kCollectives;
  }
}

Facts facts_of(const Report& report, TableKind kind) {
  if (kind == TableKind::collectives) return facts_of_collectives(report);
  const auto& rows = report.rows();
  const RooflineRow& total = report.total();
  const auto any = [&](auto holds) { return std::any_of(rows.begin(), rows.end(), holds); };
  const bool of_modules = kind == TableKind::modules;
  Facts known = 0;
  const auto add = [&](bool holds, Facts fact) { known |= holds ? fact : 0; };
  add(total.int_ops > total.flops, facts::integers);
  add(total.time_ns || total.op_time_ns, facts::time);
  add(data_of(report).device.has_value(), facts::device);
  add(of_modules && total.utilization, facts::intervals);
  const auto& data = data_of(report);
  const bool by_kernel = data.device->counters.ranges == CounterRanges::kernels;
  const bool some_counted = by_kernel && std::ranges::any_of(data.device->kernels, [](const KernelBucket& kernel) {
                              return kernel.counted > 0;
                            });
  add((of_modules || by_kernel) && any([](const auto& row) { return row.self.dram_bytes.value_or(0) > 0; }),
      facts::counters);
  add(!of_modules && some_counted, facts::counters);  // of operators and kernels, whatever their modules lack
  add(!report.ceilings().empty(), facts::roofs);
  add(of_modules && any([](const auto& row) { return row.work_share.has_value(); }), facts::regions);
  add(of_modules && any([](const auto& row) { return row.inferred; }), facts::inferred);
  const bool generated = std::ranges::any_of(data.counts.ops, [](const OpBucket& op) { return !op.fused.empty(); });
  const bool of_kernels = kind == TableKind::kernels;
  add(of_kernels ? std::ranges::any_of(report.kernels(), &KernelRow::incomplete) : total.incomplete, facts::incomplete);
  add((of_modules || of_kernels) && !data.times->compiled_kernels.empty(), facts::compiled);
  add(of_kernels && generated, facts::compiled | facts::generated);
  add(of_modules && total.time_max_ns, facts::ranks);
  add(of_modules && total.communication_ns, facts::collectives);
  add(total.time_low_ns.has_value(), facts::predicted);
  add(any([](const auto& row) { return row.bound.kind == BoundKind::latency; }), facts::latency);
  return known;
}

std::vector<std::string> default_columns_of(const Report& report, std::string_view by) {
  const TableOptions options{.by = std::string(by)};
  switch (kind_of(by)) {
    case TableKind::groups:
      return names_of_default<GroupRow>(report, options);
    case TableKind::kernels:
      return names_of_default<KernelRow>(report, options);
    case TableKind::ranks:
      return names_of_default<Rank>(report, options);
    case TableKind::memory:
      return names_of_default<MemoryRow>(report, options);
    case TableKind::collectives:
      return names_of_default<Collective>(report, options);
    default:
      return names_of_default<RooflineRow>(report, options);
  }
}

}  // namespace roofprof
