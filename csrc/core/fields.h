#pragma once
// The table of figures: each with its names, unit, needs and legend. Columns, JSON, CSV and Python follow it.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "roofprof/report.h"

namespace roofprof {

enum class Unit : std::uint8_t {
  text,        // std::string
  flag,        // bool
  count,       // things: calls, parameters, kernels
  macs,        // multiply-accumulates
  operations,  // FLOPs or integer operations
  by_dtype,    // operations for each dtype
  bytes,
  nanoseconds,
  fraction,  // 0-1
  ratio,     // of two figures of one unit
  percent,   // 0-100
  flops_per_byte,
  flops_per_second,
  bytes_per_second,
  shapes,  // sizes of tensors
  blocks,  // of a launch: in x, y and z
  bound    // what bounds, as to_string(Bound) says it
};

constexpr std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::text:
      return "text";
    case Unit::flag:
      return "true or false";
    case Unit::count:
      return "count";
    case Unit::macs:
      return "multiply-accumulates";
    case Unit::operations:
      return "operations";
    case Unit::by_dtype:
      return "operations by dtype";
    case Unit::bytes:
      return "bytes";
    case Unit::nanoseconds:
      return "nanoseconds";
    case Unit::fraction:
      return "fraction (1 = 100%)";
    case Unit::ratio:
      return "ratio";
    case Unit::percent:
      return "percent";
    case Unit::flops_per_byte:
      return "FLOPs per byte (int_ops per byte where those are more)";
    case Unit::flops_per_second:
      return "FLOP/s (int_ops per second where those are more)";
    case Unit::bytes_per_second:
      return "bytes per second";
    case Unit::shapes:
      return "tensor sizes";
    case Unit::blocks:
      return "count in x, y and z";
    case Unit::bound:
      return "compute <dtype>, memory <level>, network <backend>, overhead, latency/code or unknown";
  }
  return "";
}

// Returns whether values of the unit are treated as text, and not numbers where larger is more.
constexpr bool is_textual(Unit unit) {
  return unit == Unit::text || unit == Unit::bound || unit == Unit::by_dtype || unit == Unit::shapes ||
         unit == Unit::blocks || unit == Unit::flag;
}

constexpr std::string_view suffix_of(Unit unit) { return unit == Unit::nanoseconds ? "_ns" : ""; }

// Returns the key under which JSON and CSV have a figure: times are integer nanoseconds there.
inline std::string key_of(std::string_view name, Unit unit) { return std::string(name) + std::string(suffix_of(unit)); }

// Facts about a report. A figure needs some of them, and so does a sentence of the legend. The legend explains things
// in this order.
using Facts = std::uint32_t;
namespace facts {
inline constexpr Facts integers = 1U << 0U;   // most operations are integer ones
inline constexpr Facts time = 1U << 1U;       // a run was timed
inline constexpr Facts device = 1U << 2U;     // by what a device ran
inline constexpr Facts intervals = 1U << 3U;  // when the device worked and waited is known for each row
inline constexpr Facts counters = 1U << 4U;   // hardware counters were read
inline constexpr Facts roofs = 1U << 5U;
inline constexpr Facts regions = 1U << 6U;  // modules ran inside compiled regions
inline constexpr Facts incomplete = 1U << 7U;
inline constexpr Facts inferred = 1U << 8U;
inline constexpr Facts ranks = 1U << 9U;         // the report is merged of several ranks', with times
inline constexpr Facts collectives = 1U << 10U;  // some were called, with times
inline constexpr Facts predicted = 1U << 11U;    // times are predicted
inline constexpr Facts latency = 1U << 12U;      // no roof is near what some rows reach
inline constexpr Facts compiled = 1U << 13U;     // kernels of compiled code are known
inline constexpr Facts generated = 1U << 14U;    // what is known of some of them is by their names

inline constexpr std::array<std::string_view, 15> kNames = {
    "integers", "time",  "device",      "intervals", "counters", "roofs",    "regions",  "incomplete",
    "inferred", "ranks", "collectives", "predicted", "latency",  "compiled", "generated"};
}  // namespace facts

// The limit that a figure is where it includes an op without a known cost.
enum class Limit : std::uint8_t { none, lower, upper, either };

constexpr std::string_view to_string(Limit limit) {
  constexpr std::array<std::string_view, 4> kMarks = {"", ">=", "<=", "?"};
  return kMarks[static_cast<std::size_t>(limit)];
}

// Stands in the legend where the figure's needs and `when` hold and nothing of `unless` does.
struct Sentence {
  std::string_view text = {};                     // empty: none
  std::array<std::string_view, 3> mentions = {};  // figures whose own legend a reader of it needs, by their names
  Facts when = 0;
  Facts unless = 0;
  int order = 0;  // among the sentences of the same needs; equal ones follow the table
};

inline constexpr std::string_view kSelf = "self_";  // how the names of a row's self figures begin

struct FigureInfo {
  std::string_view name;     // Python's attribute, the column's name and the stem of the key
  std::string_view heading;  // of its column
  Unit unit = Unit::text;
  std::array<std::string_view, 2> aliases = {};  // further names that people type, in lower case
  Facts needs = 0;
  Limit limit = Limit::none;
  Sentence legend = {};                // explains the figure: below every table of a report that can fill it
  std::array<Sentence, 3> hints = {};  // explain what else its column may hold
  std::string_view legend_of = {};     // the name of a figure whose sentences explain it, too

  // These return the name and the key of a row's figure, or of its self figure.
  std::string name_in(bool of_self) const { return std::string(of_self ? kSelf : "").append(name); }
  std::string key_in(bool of_self) const { return name_in(of_self).append(suffix_of(unit)); }
  // Returns whether `wanted` is one of the names that people write: the name, or the key in JSON and CSV.
  bool is_called(std::string_view wanted, bool of_self) const {
    return wanted == name_in(of_self) || wanted == key_in(of_self);
  }
  std::string heading_in(bool of_self) const { return std::string(of_self ? "self " : "").append(heading); }
};

// ---- the table: one entry for each figure. csrc/analysis computes the figures; tables, their legend, JSON, CSV,
// Python's rows and roofprof.fields follow from it.

template <class Member>
struct FigureEntry {
  FigureInfo info;
  Member member;
};

// The properties of an entry that are not its names and its unit.
struct FigureTraits {
  std::array<std::string_view, 2> aliases = {};
  Facts needs = 0;
  Limit limit = Limit::none;
  Sentence legend = {};
  std::array<Sentence, 3> hints = {};
  std::string_view legend_of = {};
};

template <class Member>
constexpr FigureEntry<Member> figure_entry(std::string_view name, std::string_view heading, Unit unit, Member member,
                                           FigureTraits traits = {}) {
  return {
      {name, heading, unit, traits.aliases, traits.needs, traits.limit, traits.legend, traits.hints, traits.legend_of},
      member};
}

inline constexpr std::string_view kUpperLegend = "<=: an upper one, likewise";
inline constexpr std::string_view kLowerLegend = ">=: a lower limit, an op without a known cost is in it";
inline constexpr std::string_view kLowerOrEitherLegend =
    ">=: a lower limit, an op without a known cost is in it; ?: of what is known alone";
inline constexpr std::string_view kDramLegend = "DRAM: bytes to and from the device's memory, by hardware counters";

// The figures of every row, self figures included.
inline constexpr std::tuple kFigures{
    figure_entry("macs", "MACs", Unit::macs, &Figures::macs,
                 {.limit = Limit::lower, .legend = {"MACs: multiply-accumulates"}}),
    figure_entry("causal_macs", "causal MACs", Unit::macs, &Figures::causal_macs, {.limit = Limit::lower}),
    figure_entry("flops", "FLOPs", Unit::operations, &Figures::flops,
                 {.limit = Limit::lower, .legend = {"FLOPs = 2 x MACs + other operations", {"macs"}}}),
    figure_entry(
        "int_ops", "int ops", Unit::operations, &Figures::int_ops,
        {.limit = Limit::lower,
         .hints =
             {{{"int ops: integer operations, no FLOPs; of rows with more of them, AI and rates are theirs, in op/s",
                {"flops", "intensity"},
                facts::integers}}}}),
    figure_entry("operations_by_dtype", "by dtype", Unit::by_dtype, &Figures::operations_by_dtype,
                 {.aliases = {"flops_by_dtype"}}),
    figure_entry("read_bytes", "read bytes", Unit::bytes, &Figures::read_bytes, {.limit = Limit::lower}),
    figure_entry("write_bytes", "write bytes", Unit::bytes, &Figures::write_bytes, {.limit = Limit::lower}),
    figure_entry("bytes", "bytes", Unit::bytes, &Figures::bytes,
                 {.limit = Limit::lower, .legend = {"bytes: each op's inputs and outputs once"}}),
    figure_entry("time", "time", Unit::nanoseconds, &Figures::time_ns,
                 {.needs = facts::time,
                  .legend = {"time: of kernels, copies and memsets on the device, added up", {}, facts::device}}),
    figure_entry("time_low", "low", Unit::nanoseconds, &Figures::time_low_ns,
                 {.needs = facts::predicted, .legend = {"low, high: 80% of whole models take between these"}}),
    figure_entry("time_high", "high", Unit::nanoseconds, &Figures::time_high_ns,
                 {.needs = facts::predicted, .legend_of = "time_low"}),
    figure_entry("time_spread", "spread", Unit::fraction, &Figures::time_spread, {.needs = facts::time}),
    figure_entry("op_time", "op time", Unit::nanoseconds, &Figures::op_time_ns, {.needs = facts::time}),
    figure_entry("busy", "busy", Unit::nanoseconds, &Figures::busy_ns,
                 {.needs = facts::time | facts::device | facts::intervals}),
    figure_entry("idle", "idle", Unit::nanoseconds, &Figures::idle_ns,
                 {.needs = facts::time | facts::device | facts::intervals}),
    figure_entry(
        "utilization", "util", Unit::percent, &Figures::utilization,
        {.needs = facts::time | facts::device | facts::intervals,
         .legend = {"util = busy / (busy + idle), idle: the device waited for what the row launches; the total's also "
                    "before the first launch and after the last"}}),
    figure_entry("host_time", "host time", Unit::nanoseconds, &Figures::host_time_ns,
                 {.needs = facts::time | facts::device}),
    figure_entry("wall", "wall", Unit::nanoseconds, &Figures::wall_ns, {.needs = facts::time}),
    figure_entry("intensity", "AI", Unit::flops_per_byte, &Figures::intensity,
                 {.limit = Limit::either, .legend = {"AI = FLOPs / bytes", {"flops", "bytes"}}}),
    figure_entry("attainable", "attainable", Unit::flops_per_second, &Figures::attainable,
                 {.needs = facts::roofs, .limit = Limit::either}),
    figure_entry("achieved_flops", "FLOP/s", Unit::flops_per_second, &Figures::achieved_flops,
                 {.aliases = {"flops/s"}, .needs = facts::time, .limit = Limit::lower}),
    figure_entry("achieved_bandwidth", "B/s", Unit::bytes_per_second, &Figures::achieved_bandwidth,
                 {.aliases = {"bandwidth"}, .needs = facts::time, .limit = Limit::lower}),
    figure_entry("bound", "bound", Unit::bound, &Figures::bound,
                 {.needs = facts::time,
                  .limit = Limit::either,
                  .legend = {"bound: the roof behind most of it", {}, facts::roofs},
                  .hints = {{{"overhead: most time is outside ops", {}, 0, facts::device},
                             {"overhead: it mostly waited", {}, facts::device | facts::intervals},
                             {"latency/code: roofs explain under 3%, latency or the ops' own code the rest",
                              {},
                              facts::latency}}}}),
    figure_entry("compute_time", "compute time", Unit::nanoseconds, &Figures::compute_time_ns,
                 {.needs = facts::roofs, .limit = Limit::lower}),
    figure_entry("memory_time", "memory time", Unit::nanoseconds, &Figures::memory_time_ns,
                 {.needs = facts::roofs, .limit = Limit::lower}),
    // The legend explains it before the bound, whose sentence mentions it.
    figure_entry("lower_bound_time", "lower bound", Unit::nanoseconds, &Figures::lower_bound_time_ns,
                 {.aliases = {"lower_bound"},
                  .needs = facts::roofs,
                  .limit = Limit::lower,
                  .legend = {"lower bound: sum over ops of max(FLOPs / peak, bytes / bandwidth)",
                             {"flops", "bytes", "bound"},
                             facts::time,
                             0,
                             -1}}),
    figure_entry("percent_of_roof", "%roof", Unit::percent, &Figures::percent_of_roof,
                 {.aliases = {"roof"},
                  .needs = facts::time | facts::roofs,
                  .limit = Limit::lower,
                  .legend = {"%roof = lower bound / time", {"lower_bound_time", "time"}}}),
    figure_entry("percent_of_roof_counted", "%roof cnt.", Unit::percent, &Figures::percent_of_roof_counted,
                 {.aliases = {"roof_counted"},
                  .needs = facts::time | facts::roofs | facts::counters,
                  .limit = Limit::lower,
                  .legend = {"%roof cnt.: by DRAM's counted bytes in place of those that must move",
                             {"percent_of_roof", "dram_bytes"}}}),
    figure_entry("wasted_time", "wasted", Unit::nanoseconds, &Figures::wasted_time_ns,
                 {.needs = facts::time | facts::roofs,
                  .limit = Limit::upper,
                  .legend = {"wasted = time - lower bound", {"lower_bound_time", "time"}}}),
    figure_entry("dram_bytes", "DRAM", Unit::bytes, &Figures::dram_bytes,
                 {.needs = facts::counters, .legend = {kDramLegend, {"bytes"}}}),
    figure_entry("dram_read_bytes", "DRAM read", Unit::bytes, &Figures::dram_read_bytes, {.needs = facts::counters}),
    figure_entry("dram_write_bytes", "DRAM written", Unit::bytes, &Figures::dram_write_bytes,
                 {.needs = facts::counters}),
    figure_entry("l2_bytes", "L2", Unit::bytes, &Figures::l2_bytes, {.needs = facts::counters}),
    figure_entry("l1_bytes", "L1", Unit::bytes, &Figures::l1_bytes, {.needs = facts::counters}),
    figure_entry("dram_intensity", "DRAM AI", Unit::flops_per_byte, &Figures::dram_intensity,
                 {.needs = facts::counters,
                  .limit = Limit::lower,
                  .legend = {"DRAM AI = FLOPs / DRAM", {"flops", "intensity", "dram_bytes"}}}),
    figure_entry("l2_intensity", "L2 AI", Unit::flops_per_byte, &Figures::l2_intensity,
                 {.needs = facts::counters, .limit = Limit::lower}),
    figure_entry("l1_intensity", "L1 AI", Unit::flops_per_byte, &Figures::l1_intensity,
                 {.needs = facts::counters, .limit = Limit::lower}),
    figure_entry("dram_bytes_ratio", "ratio", Unit::ratio, &Figures::dram_bytes_ratio,
                 {.needs = facts::counters,
                  .limit = Limit::upper,
                  .legend = {"ratio = DRAM / bytes, of kernels alone", {"dram_bytes", "bytes"}}}),
    figure_entry("dram_read_ratio", "read ratio", Unit::ratio, &Figures::dram_read_ratio,
                 {.needs = facts::counters, .limit = Limit::upper}),
    figure_entry("dram_write_ratio", "write ratio", Unit::ratio, &Figures::dram_write_ratio,
                 {.needs = facts::counters, .limit = Limit::upper}),
    figure_entry("dram_bandwidth", "DRAM B/s", Unit::bytes_per_second, &Figures::dram_bandwidth,
                 {.needs = facts::time | facts::counters,
                  .legend = {"DRAM B/s = DRAM / time of kernels", {"dram_bytes", "time"}}}),
    figure_entry("executed_flops", "executed", Unit::operations, &Figures::executed_flops, {.needs = facts::counters}),
    figure_entry("kernel_count", "kernels", Unit::count, &Figures::kernel_count, {.needs = facts::device}),
    figure_entry("incomplete", "incomplete", Unit::flag, &Figures::incomplete,
                 {.legend = {kLowerOrEitherLegend, {}, facts::incomplete},
                  .hints = {{{kUpperLegend, {}, facts::incomplete | facts::time | facts::roofs},
                             {kUpperLegend, {}, facts::incomplete | facts::counters, facts::roofs}}}}),
};

// The fields of a module's row that are not figures.
inline constexpr std::tuple kRowFields{
    figure_entry("path", "module", Unit::text, &RooflineRow::path, {.aliases = {"name"}}),
    figure_entry("type", "type", Unit::text, &RooflineRow::type),
    figure_entry("depth", "depth", Unit::count, &RooflineRow::depth),
    figure_entry("calls", "calls", Unit::count, &RooflineRow::calls),
    figure_entry("params", "params", Unit::count, &RooflineRow::known_params),
    figure_entry("trainable_params", "trainable", Unit::count, &RooflineRow::known_trainable_params),
    figure_entry("param_bytes", "param bytes", Unit::bytes, &RooflineRow::known_param_bytes),
    figure_entry("buffer_bytes", "buffer bytes", Unit::bytes, &RooflineRow::known_buffer_bytes),
    figure_entry("input_shapes", "input shapes", Unit::shapes, &RooflineRow::input_shapes),
    figure_entry("output_shapes", "output shapes", Unit::shapes, &RooflineRow::output_shapes),
    figure_entry("output_bytes", "output bytes", Unit::bytes, &RooflineRow::output_bytes),
    figure_entry("peak_memory", "peak memory", Unit::bytes, &RooflineRow::peak_memory),
    figure_entry("kept_memory", "kept memory", Unit::bytes, &RooflineRow::kept_memory),
    figure_entry("fused_bytes", "fused bytes", Unit::bytes, &RooflineRow::fused_bytes, {.limit = Limit::lower}),
    figure_entry("fused_bound_time", "fused bound", Unit::nanoseconds, &RooflineRow::fused_bound_time_ns,
                 {.aliases = {"fused_bound"}, .needs = facts::roofs, .limit = Limit::lower}),
    figure_entry("percent_of_fused", "%fused", Unit::percent, &RooflineRow::percent_of_fused,
                 {.aliases = {"fused"}, .needs = facts::time | facts::roofs, .limit = Limit::lower}),
    figure_entry("shared_time", "shared", Unit::nanoseconds, &RooflineRow::shared_time_ns,
                 {.aliases = {"shared"},
                  .needs = facts::compiled,
                  .legend = {"shared: a row's part, by work, of kernels that count for a module above, whose time has "
                             "it",
                             {"time"}}}),
    figure_entry("inferred", "inferred", Unit::flag, &RooflineRow::inferred,
                 {.legend = {"~: which module ran was inferred, ROOFPROF_SCOPE(*this) in its forward tells it",
                             {},
                             facts::inferred}}),
    figure_entry("work_share", "share", Unit::percent, &RooflineRow::work_share,
                 {.needs = facts::regions,
                  .legend = {"share: a module's part of the work of its compiled region, of its lower bound, never of "
                             "its time",
                             {"lower_bound_time", "time"},
                             facts::roofs},
                  .hints = {{{"share: a module's part of the work of its compiled region, of its FLOPs, never of its "
                              "time",
                              {"flops", "time"},
                              0,
                              facts::roofs}}}}),
    figure_entry("time_min", "fastest", Unit::nanoseconds, &RooflineRow::time_min_ns,
                 {.needs = facts::ranks, .legend_of = "time_max"}),
    figure_entry("time_median", "median", Unit::nanoseconds, &RooflineRow::time_median_ns,
                 {.needs = facts::ranks, .legend_of = "time_max"}),
    figure_entry("time_max", "slowest", Unit::nanoseconds, &RooflineRow::time_max_ns,
                 {.needs = facts::ranks,
                  .legend = {"fastest, median, slowest: the row's time on one rank; its other figures are sums over "
                             "ranks",
                             {"slowest_rank", "time"}}}),
    figure_entry("slowest_rank", "rank", Unit::count, &RooflineRow::slowest_rank,
                 {.needs = facts::ranks, .legend = {"rank: the slowest", {"time_max"}}}),
    figure_entry("imbalance", "imbalance", Unit::percent, &RooflineRow::imbalance,
                 {.needs = facts::ranks, .legend = {"imbalance = (slowest - mean) / slowest", {"time_max"}}}),
    figure_entry("communication", "comm.", Unit::nanoseconds, &RooflineRow::communication_ns,
                 {.needs = facts::collectives, .legend = {"comm.: its collectives, from their calls to their ends"}}),
    figure_entry("exposed_communication", "exposed", Unit::nanoseconds, &RooflineRow::exposed_communication_ns,
                 {.needs = facts::collectives,
                  .legend = {"exposed: of its time, collectives under way while no op computes", {"time"}}}),
    figure_entry("hidden_communication", "hidden", Unit::nanoseconds, &RooflineRow::hidden_communication_ns,
                 {.needs = facts::collectives,
                  .legend = {"hidden: its collectives while other work ran, in neither time nor lower bound",
                             {"lower_bound_time", "time"}}}),
    figure_entry("idle_before", "idle before", Unit::nanoseconds, &RooflineRow::idle_before_ns,
                 {.needs = facts::time | facts::device | facts::intervals}),
    figure_entry("idle_between", "idle between", Unit::nanoseconds, &RooflineRow::idle_between_ns,
                 {.needs = facts::time | facts::device | facts::intervals}),
    figure_entry("idle_after", "idle after", Unit::nanoseconds, &RooflineRow::idle_after_ns,
                 {.needs = facts::time | facts::device | facts::intervals}),
};

// The fields of a group that are neither keys nor figures.
inline constexpr std::tuple kGroupFields{
    figure_entry("calls", "calls", Unit::count, &GroupRow::calls),
    figure_entry("input_elements", "input elements", Unit::count, &GroupRow::input_elements),
    figure_entry("output_elements", "output elements", Unit::count, &GroupRow::output_elements),
    figure_entry("percent_of_time", "time%", Unit::percent, &GroupRow::percent_of_time, {.needs = facts::time}),
};

// The fields of a kernel. "median" and its like are of the durations of its launches.
inline constexpr std::tuple kKernelFields{
    figure_entry("name", "name", Unit::text, &KernelRow::name),
    figure_entry("kind", "kind", Unit::text, &KernelRow::kind_name),
    figure_entry("copied", "copied", Unit::text, &KernelRow::copied),
    figure_entry("module", "module", Unit::text, &KernelRow::module),
    figure_entry("phase", "phase", Unit::text, &KernelRow::phase_name),
    figure_entry("scope", "scope", Unit::text, &KernelRow::scope),
    figure_entry("op", "op", Unit::text, &KernelRow::op),
    figure_entry("grid", "grid", Unit::blocks, &KernelRow::grid),
    figure_entry("block", "block", Unit::blocks, &KernelRow::block),
    figure_entry("device", "device", Unit::count, &KernelRow::device),
    figure_entry("in_graph", "in graph", Unit::flag, &KernelRow::in_graph),
    figure_entry("built_for", "built for", Unit::text, &KernelRow::built_for, {.aliases = {"arch"}}),
    figure_entry("percent_of_time", "time%", Unit::percent, &KernelRow::percent_of_time,
                 {.legend = {"time%: of the total of all lines", {"total"}}}),
    // The legend explains it before the percentage, whose sentence mentions it.
    figure_entry("total", "total", Unit::nanoseconds, &KernelRow::total_ns,
                 {.aliases = {"time"}, .legend = {"total: of all its launches", {}, 0, 0, -1}}),
    figure_entry("instances", "instances", Unit::count, &KernelRow::instances),
    figure_entry("average", "average", Unit::nanoseconds, &KernelRow::average_ns),
    figure_entry("median", "median", Unit::nanoseconds, &KernelRow::median_ns),
    figure_entry("min", "min", Unit::nanoseconds, &KernelRow::min_ns),
    figure_entry("max", "max", Unit::nanoseconds, &KernelRow::max_ns),
    figure_entry("stddev", "std dev", Unit::nanoseconds, &KernelRow::stddev_ns),
    figure_entry(
        "bytes", "bytes", Unit::bytes, &KernelRow::bytes,
        {.limit = Limit::lower, .legend = {"bytes: of its own inputs and outputs, each once", {}, facts::compiled}}),
    figure_entry("unfused_bytes", "unfused", Unit::bytes, &KernelRow::unfused_bytes,
                 {.needs = facts::compiled,
                  .legend = {"unfused: bytes that its ops would move one by one", {"bytes"}, 0, facts::generated}}),
    figure_entry("incomplete", "incomplete", Unit::flag, &KernelRow::incomplete,
                 {.legend = {">=: a lower limit, what it updates in place moves twice", {}, facts::generated},
                  .hints = {{{kLowerLegend, {}, facts::compiled | facts::incomplete, facts::generated}}}}),
    figure_entry("fused", "ops", Unit::text, &KernelRow::fused,
                 {.needs = facts::compiled, .legend = {"ops: in it, by its name", {}, facts::generated}}),
    figure_entry(
        "modules", "modules", Unit::text, &KernelRow::modules,
        {.needs = facts::compiled,
         .legend = {"modules: whose ops it runs, with their shares of its FLOPs, or of its ops' bytes where one "
                    "has no FLOPs; it counts for the innermost module around all of them",
                    {"bytes"},
                    0,
                    facts::generated}}),
    figure_entry("shared", "shared", Unit::flag, &KernelRow::shared, {.needs = facts::compiled}),
    figure_entry("code", "code", Unit::text, &KernelRow::code, {.needs = facts::compiled}),
    figure_entry("source", "source", Unit::text, &KernelRow::source, {.needs = facts::compiled}),
    figure_entry("flops", "FLOPs", Unit::operations, &KernelRow::flops),
    figure_entry("intensity", "AI", Unit::flops_per_byte, &KernelRow::intensity,
                 {.needs = facts::compiled, .legend = {"AI = FLOPs / bytes", {"bytes"}, 0, facts::generated}}),
    figure_entry("achieved_flops", "FLOP/s", Unit::flops_per_second, &KernelRow::achieved_flops,
                 {.aliases = {"flops/s"}}),
    figure_entry("dram_bytes", "DRAM", Unit::bytes, &KernelRow::dram_bytes,
                 {.needs = facts::counters, .legend = {kDramLegend, {"bytes"}}}),
    figure_entry("l2_bytes", "L2", Unit::bytes, &KernelRow::l2_bytes, {.needs = facts::counters}),
    figure_entry("l1_bytes", "L1", Unit::bytes, &KernelRow::l1_bytes, {.needs = facts::counters}),
    figure_entry("dram_intensity", "DRAM AI", Unit::flops_per_byte, &KernelRow::dram_intensity,
                 {.needs = facts::counters}),
    figure_entry("l2_intensity", "L2 AI", Unit::flops_per_byte, &KernelRow::l2_intensity, {.needs = facts::counters}),
    figure_entry("l1_intensity", "L1 AI", Unit::flops_per_byte, &KernelRow::l1_intensity, {.needs = facts::counters}),
    figure_entry("dram_bandwidth", "DRAM B/s", Unit::bytes_per_second, &KernelRow::dram_bandwidth,
                 {.needs = facts::counters}),
    figure_entry("executed_flops", "executed", Unit::operations, &KernelRow::executed_flops,
                 {.needs = facts::counters}),
    figure_entry("lower_bound_time", "lower bound", Unit::nanoseconds, &KernelRow::lower_bound_time_ns,
                 {.aliases = {"lower_bound"}, .needs = facts::roofs, .limit = Limit::lower}),
    figure_entry(
        "bound", "bound", Unit::bound, &KernelRow::bound,
        {.needs = facts::roofs,
         .legend = {"bound, %roof: of what was counted, the longest of FLOPs / peak, DRAM / bandwidth and L2 / "
                    "bandwidth; a module's %roof is by the bytes of its ops, so it may differ",
                    {"bytes", "fused", "dram_bytes"},
                    facts::counters},
         .hints = {{{"bound, %roof: by the FLOPs of the kernel and its own bytes; a module's %roof is by the "
                     "bytes of its ops, one by one, so it may differ",
                     {"bytes", "fused"},
                     facts::compiled,
                     facts::counters}}}}),
    figure_entry("percent_of_roof", "%roof", Unit::percent, &KernelRow::percent_of_roof,
                 {.aliases = {"roof"}, .needs = facts::roofs, .limit = Limit::lower, .legend_of = "bound"}),
};

// The fields of a rank of a merged report.
inline constexpr std::tuple kRankFields{
    figure_entry("rank", "rank", Unit::count, &Rank::rank),
    figure_entry("host", "host", Unit::text, &Rank::host),
    figure_entry("device", "device", Unit::text, &Rank::device),
    figure_entry("model", "model", Unit::text, &Rank::model),
    figure_entry("partial", "partial", Unit::flag, &Rank::partial),
    figure_entry("steps", "steps", Unit::count, &Rank::known_steps),
    figure_entry("step", "step", Unit::nanoseconds, &Rank::step_ns,
                 {.legend = {"step: the median one", {}, facts::time}}),
    figure_entry("step_spread", "spread", Unit::fraction, &Rank::step_spread),
    figure_entry("wall", "wall", Unit::nanoseconds, &Rank::wall_ns, {.needs = facts::time}),
    figure_entry("time", "time", Unit::nanoseconds, &Rank::time_ns, {.needs = facts::time}),
    figure_entry("compute", "compute", Unit::nanoseconds, &Rank::compute_ns,
                 {.needs = facts::time, .legend = {"compute: inside ops that are no collectives"}}),
    figure_entry("communication", "comm.", Unit::nanoseconds, &Rank::communication_ns,
                 {.needs = facts::time, .legend = {"comm.: while any collective was under way"}}),
    figure_entry("exposed", "exposed", Unit::nanoseconds, &Rank::exposed_ns,
                 {.needs = facts::time, .legend = {"exposed: of it, while no op computed"}}),
    figure_entry("waiting", "waiting", Unit::nanoseconds, &Rank::waiting_ns,
                 {.needs = facts::time, .legend = {"waiting: in collectives, until the last rank called"}}),
    figure_entry("idle", "idle", Unit::nanoseconds, &Rank::idle_ns,
                 {.needs = facts::time, .legend = {"idle: wall - compute - exposed", {"compute", "exposed"}}}),
    figure_entry("macs", "MACs", Unit::macs, &Rank::macs, {.limit = Limit::lower}),
    figure_entry("flops", "FLOPs", Unit::operations, &Rank::flops, {.limit = Limit::lower}),
    figure_entry("bytes", "bytes", Unit::bytes, &Rank::bytes, {.limit = Limit::lower}),
    figure_entry("lower_bound", "lower bound", Unit::nanoseconds, &Rank::lower_bound_ns, {.limit = Limit::lower}),
    figure_entry("percent_of_roof", "%roof", Unit::percent, &Rank::percent_of_roof,
                 {.aliases = {"roof"}, .needs = facts::time, .limit = Limit::lower}),
    figure_entry("peak_memory", "peak memory", Unit::bytes, &Rank::peak_memory),
    figure_entry("incomplete", "incomplete", Unit::flag, &Rank::incomplete,
                 {.legend = {kLowerLegend, {}, facts::incomplete}}),
};

// The fields of a collective: all calls of one in a module, phase, group and size.
inline constexpr std::tuple kCollectiveFields{
    figure_entry("name", "collective", Unit::text, &Collective::name),
    figure_entry("op", "op", Unit::text, &Collective::op),
    figure_entry("module", "module", Unit::text, &Collective::module),
    figure_entry("phase", "phase", Unit::text, &Collective::phase_name),
    figure_entry("group", "group", Unit::text, &Collective::group),
    figure_entry("backend", "backend", Unit::text, &Collective::backend),
    figure_entry("ranks", "ranks", Unit::count, &Collective::known_ranks),
    figure_entry("hosts", "hosts", Unit::count, &Collective::known_hosts),
    figure_entry("dtype", "dtype", Unit::text, &Collective::dtype_name),
    figure_entry("shapes", "shapes", Unit::text, &Collective::shapes),
    figure_entry("calls", "calls", Unit::count, &Collective::calls),
    figure_entry("timed_calls", "timed calls", Unit::count, &Collective::timed_calls),
    figure_entry("bytes", "bytes", Unit::bytes, &Collective::bytes,
                 {.legend = {"bytes and bandwidths as nccl-tests defines them"}}),
    figure_entry("wire_bytes", "wire bytes", Unit::bytes, &Collective::wire_bytes),
    figure_entry("ring_bytes", "ring bytes", Unit::bytes, &Collective::ring_bytes),
    figure_entry("tree_bytes", "tree bytes", Unit::bytes, &Collective::tree_bytes),
    figure_entry("direct_bytes", "direct bytes", Unit::bytes, &Collective::direct_bytes),
    figure_entry("time", "time", Unit::nanoseconds, &Collective::time_ns,
                 {.needs = facts::collectives, .legend = {"time: from the calls to their ends"}}),
    figure_entry("wait", "wait", Unit::nanoseconds, &Collective::wait_ns,
                 {.needs = facts::collectives | facts::ranks,
                  .legend = {"wait: of the time, until the last rank called; transfer: the rest", {"time"}}}),
    figure_entry("transfer", "transfer", Unit::nanoseconds, &Collective::transfer_ns,
                 {.needs = facts::collectives | facts::ranks}),
    figure_entry("exposed", "exposed", Unit::nanoseconds, &Collective::exposed_ns,
                 {.needs = facts::collectives, .legend = {"exposed: of it, while no op computed"}}),
    figure_entry("algorithm", "algorithm", Unit::text, &Collective::algorithm, {.needs = facts::device}),
    figure_entry("algorithm_bandwidth", "alg. B/s", Unit::bytes_per_second, &Collective::algorithm_bandwidth,
                 {.aliases = {"alg. bw"}, .needs = facts::collectives}),
    figure_entry("bus_bandwidth", "bus B/s", Unit::bytes_per_second, &Collective::bus_bandwidth,
                 {.aliases = {"bus bw"}, .needs = facts::collectives}),
    figure_entry("bound", "bound", Unit::bound, &Collective::bound, {.needs = facts::collectives | facts::roofs}),
    figure_entry("lower_bound", "lower bound", Unit::nanoseconds, &Collective::lower_bound_ns, {.needs = facts::roofs}),
    figure_entry("percent_of_roof", "%roof", Unit::percent, &Collective::percent_of_roof,
                 {.aliases = {"roof"},
                  .needs = facts::collectives | facts::roofs,
                  .legend = {"%roof = lower bound by the network's roof / time", {"time"}}}),
    figure_entry("wasted", "wasted", Unit::nanoseconds, &Collective::wasted_ns,
                 {.needs = facts::collectives | facts::roofs}),
};

// The fields of a row of memory at its peak.
inline constexpr std::tuple kMemoryFields{
    figure_entry("category", "category", Unit::text, &MemoryRow::category),
    figure_entry("module", "module", Unit::text, &MemoryRow::module),
    figure_entry("phase", "phase", Unit::text, &MemoryRow::phase_name),
    figure_entry("before", "before", Unit::flag, &MemoryRow::before,
                 {.legend = {"before: it was there before what was counted, and is not in the peak memory"}}),
    figure_entry("storages", "storages", Unit::count, &MemoryRow::storages,
                 {.legend = {"storages: pieces of memory; tensors that share one count once"}}),
    figure_entry("bytes", "bytes", Unit::bytes, &MemoryRow::bytes),
    figure_entry("percent_of_all", "%", Unit::percent, &MemoryRow::percent_of_all),
};

// Calls visit(info, member) for each entry of a list.
template <class Entries, class Visitor>
void for_each_entry(const Entries& entries, Visitor&& visit) {
  std::apply([&](const auto&... entry) { (visit(entry.info, entry.member), ...); }, entries);
}

// Calls visit(name, unit, member).
template <class Visitor>
void for_each_figure(Visitor&& visit) {
  for_each_entry(kFigures, [&](const FigureInfo& info, auto member) { visit(info.name, info.unit, member); });
}
template <class Visitor>
void for_each_row_field(Visitor&& visit) {
  for_each_entry(kRowFields, [&](const FigureInfo& info, auto member) { visit(info.name, info.unit, member); });
}
template <class Visitor>
void for_each_kernel_field(Visitor&& visit) {
  for_each_entry(kKernelFields, [&](const FigureInfo& info, auto member) { visit(info.name, info.unit, member); });
}

// Visits the entries of a RooflineRow, GroupRow, KernelRow, Rank, Collective or MemoryRow, in the order of CSV:
// visit(info, of_self, member, part_of), where part_of(row) has the member: the row, or `of_self` its self figures.
template <class Row, class Visitor>
void for_each_entry_of(Visitor&& visit) {
  const auto own = [&](const FigureInfo& info, auto member) {
    visit(info, false, member, [](auto& row) -> auto& { return row; });
  };
  if constexpr (std::is_same_v<Row, RooflineRow>) for_each_entry(kRowFields, own);
  if constexpr (std::is_same_v<Row, GroupRow>) for_each_entry(kGroupFields, own);
  if constexpr (std::is_same_v<Row, KernelRow>) for_each_entry(kKernelFields, own);
  if constexpr (std::is_same_v<Row, Rank>) for_each_entry(kRankFields, own);
  if constexpr (std::is_same_v<Row, Collective>) for_each_entry(kCollectiveFields, own);
  if constexpr (std::is_same_v<Row, MemoryRow>) for_each_entry(kMemoryFields, own);
  if constexpr (std::is_base_of_v<Figures, Row>) for_each_entry(kFigures, own);
  if constexpr (std::is_same_v<Row, RooflineRow>) {
    for_each_entry(kFigures, [&](const FigureInfo& info, auto member) {
      visit(info, true, member, [](auto& row) -> auto& { return row.self; });
    });
  }
}

// Visits the same as fields: visit(info, of_self, value_of), where value_of(row) is the value.
template <class Row, class Visitor>
void for_each_field(Visitor&& visit) {
  for_each_entry_of<Row>([&](const FigureInfo& info, bool of_self, auto member, auto part_of) {
    visit(info, of_self,
          [member, part_of](const Row& row) -> decltype(auto) { return std::invoke(member, part_of(row)); });
  });
}

}  // namespace roofprof
