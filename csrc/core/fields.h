#pragma once
// Every figure of a report, named once: JSON, CSV, the tables and the Python binding walk these lists.
//
// A visitor is called as visit(name, unit, pointer to member). The name is the stem: Python shows a time in float
// seconds under it ("time"), JSON and CSV in integer nanoseconds with the unit's suffix ("time_ns").

#include <string>
#include <string_view>

#include "roofprof/report.h"

namespace roofprof {

enum class Unit : std::uint8_t {
  text,        // std::string, Bound
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

constexpr std::string_view suffix_of(Unit unit) { return unit == Unit::nanoseconds ? "_ns" : ""; }

inline std::string key_of(std::string_view name, Unit unit) { return std::string(name) + std::string(suffix_of(unit)); }

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
      return "FLOPs per byte";
    case Unit::flops_per_second:
      return "FLOP/s";
    case Unit::bytes_per_second:
      return "bytes per second";
    case Unit::shapes:
      return "tensor sizes";
    case Unit::blocks:
      return "count in x, y and z";
    case Unit::bound:
      return "compute <dtype>, memory <level>, overhead or unknown";
  }
  return "";
}

// What every row has, self figures included.
template <class Visitor>
void for_each_figure(Visitor&& visit) {
  visit("macs", Unit::macs, &Figures::macs);
  visit("causal_macs", Unit::macs, &Figures::causal_macs);
  visit("flops", Unit::operations, &Figures::flops);
  visit("int_ops", Unit::operations, &Figures::int_ops);
  visit("operations_by_dtype", Unit::by_dtype, &Figures::operations_by_dtype);
  visit("read_bytes", Unit::bytes, &Figures::read_bytes);
  visit("write_bytes", Unit::bytes, &Figures::write_bytes);
  visit("bytes", Unit::bytes, &Figures::bytes);
  visit("time", Unit::nanoseconds, &Figures::time_ns);
  visit("time_spread", Unit::fraction, &Figures::time_spread);
  visit("op_time", Unit::nanoseconds, &Figures::op_time_ns);
  visit("busy", Unit::nanoseconds, &Figures::busy_ns);
  visit("idle", Unit::nanoseconds, &Figures::idle_ns);
  visit("utilization", Unit::percent, &Figures::utilization);
  visit("host_time", Unit::nanoseconds, &Figures::host_time_ns);
  visit("wall", Unit::nanoseconds, &Figures::wall_ns);
  visit("intensity", Unit::flops_per_byte, &Figures::intensity);
  visit("attainable", Unit::flops_per_second, &Figures::attainable);
  visit("achieved_flops", Unit::flops_per_second, &Figures::achieved_flops);
  visit("achieved_bandwidth", Unit::bytes_per_second, &Figures::achieved_bandwidth);
  visit("bound", Unit::bound, &Figures::bound);
  visit("lower_bound_time", Unit::nanoseconds, &Figures::lower_bound_ns);
  visit("percent_of_roof", Unit::percent, &Figures::percent_of_roof);
  visit("wasted_time", Unit::nanoseconds, &Figures::wasted_ns);
  visit("dram_bytes", Unit::bytes, &Figures::dram_bytes);
  visit("l2_bytes", Unit::bytes, &Figures::l2_bytes);
  visit("l1_bytes", Unit::bytes, &Figures::l1_bytes);
  visit("dram_intensity", Unit::flops_per_byte, &Figures::dram_intensity);
  visit("l2_intensity", Unit::flops_per_byte, &Figures::l2_intensity);
  visit("l1_intensity", Unit::flops_per_byte, &Figures::l1_intensity);
  visit("dram_bytes_ratio", Unit::ratio, &Figures::dram_bytes_ratio);
  visit("dram_bandwidth", Unit::bytes_per_second, &Figures::dram_bandwidth);
  visit("executed_flops", Unit::operations, &Figures::executed_flops);
  visit("kernel_count", Unit::count, &Figures::kernel_count);
  visit("incomplete", Unit::flag, &Figures::incomplete);
}

// What a module's row has beside its figures.
template <class Visitor>
void for_each_row_field(Visitor&& visit) {
  visit("path", Unit::text, &RooflineRow::path);
  visit("type", Unit::text, &RooflineRow::type);
  visit("depth", Unit::count, &RooflineRow::depth);
  visit("calls", Unit::count, &RooflineRow::calls);
  visit("params", Unit::count, &RooflineRow::params);
  visit("trainable_params", Unit::count, &RooflineRow::trainable_params);
  visit("param_bytes", Unit::bytes, &RooflineRow::param_bytes);
  visit("buffer_bytes", Unit::bytes, &RooflineRow::buffer_bytes);
  visit("input_shapes", Unit::shapes, &RooflineRow::input_shapes);
  visit("output_shapes", Unit::shapes, &RooflineRow::output_shapes);
  visit("output_bytes", Unit::bytes, &RooflineRow::output_bytes);
  visit("inferred", Unit::flag, &RooflineRow::inferred);
  visit("work_share", Unit::percent, &RooflineRow::work_share);
}

// What a group has beside its keys and figures.
template <class Visitor>
void for_each_group_field(Visitor&& visit) {
  visit("calls", Unit::count, &GroupRow::calls);
  visit("input_elements", Unit::count, &GroupRow::input_elements);
  visit("output_elements", Unit::count, &GroupRow::output_elements);
  visit("percent_of_time", Unit::percent, &GroupRow::percent_of_time);
}

// What a kernel has. "median" and its like are of the durations of its launches.
template <class Visitor>
void for_each_kernel_field(Visitor&& visit) {
  visit("name", Unit::text, &KernelRow::name);
  visit("kind", Unit::text, &KernelRow::kind);
  visit("copied", Unit::text, &KernelRow::copied);
  visit("module", Unit::text, &KernelRow::module);
  visit("phase", Unit::text, &KernelRow::phase);
  visit("op", Unit::text, &KernelRow::op);
  visit("grid", Unit::blocks, &KernelRow::grid);
  visit("block", Unit::blocks, &KernelRow::block);
  visit("device", Unit::count, &KernelRow::device);
  visit("in_graph", Unit::flag, &KernelRow::in_graph);
  visit("built_for", Unit::text, &KernelRow::built_for);
  visit("percent_of_time", Unit::percent, &KernelRow::percent_of_time);
  visit("total", Unit::nanoseconds, &KernelRow::total_ns);
  visit("instances", Unit::count, &KernelRow::instances);
  visit("average", Unit::nanoseconds, &KernelRow::average_ns);
  visit("median", Unit::nanoseconds, &KernelRow::median_ns);
  visit("min", Unit::nanoseconds, &KernelRow::min_ns);
  visit("max", Unit::nanoseconds, &KernelRow::max_ns);
  visit("stddev", Unit::nanoseconds, &KernelRow::stddev_ns);
  visit("bytes", Unit::bytes, &KernelRow::bytes);
  visit("flops", Unit::operations, &KernelRow::flops);
  visit("dram_bytes", Unit::bytes, &KernelRow::dram_bytes);
  visit("l2_bytes", Unit::bytes, &KernelRow::l2_bytes);
  visit("l1_bytes", Unit::bytes, &KernelRow::l1_bytes);
  visit("dram_intensity", Unit::flops_per_byte, &KernelRow::dram_intensity);
  visit("l2_intensity", Unit::flops_per_byte, &KernelRow::l2_intensity);
  visit("l1_intensity", Unit::flops_per_byte, &KernelRow::l1_intensity);
  visit("dram_bandwidth", Unit::bytes_per_second, &KernelRow::dram_bandwidth);
  visit("executed_flops", Unit::operations, &KernelRow::executed_flops);
}

}  // namespace roofprof
