// Figures by name: the names of JSON, CSV and C++ are the same.

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/fields.h"
#include "roofprof/report.h"

namespace roofprof {
namespace {

using namespace std::chrono_literals;

#define FIGURES(of)                                                                                               \
  of(macs) of(causal_macs) of(flops) of(int_ops) of(operations_by_dtype) of(read_bytes) of(write_bytes) of(bytes) \
      of(time_ns) of(time_low_ns) of(time_high_ns) of(time_spread) of(op_time_ns) of(busy_ns) of(idle_ns)         \
          of(utilization) of(host_time_ns) of(wall_ns) of(intensity) of(attainable) of(achieved_flops)            \
              of(achieved_bandwidth) of(bound) of(compute_time_ns) of(memory_time_ns) of(lower_bound_time_ns)     \
                  of(percent_of_roof) of(percent_of_roof_counted) of(wasted_time_ns) of(dram_bytes)               \
                      of(dram_read_bytes) of(dram_write_bytes) of(l2_bytes) of(l1_bytes) of(dram_intensity)       \
                          of(l2_intensity) of(l1_intensity) of(dram_bytes_ratio) of(dram_read_ratio)              \
                              of(dram_write_ratio) of(dram_bandwidth) of(executed_flops) of(kernel_count)         \
                                  of(incomplete)
#define ROW_FIELDS(of)                                                                                             \
  of(path) of(type) of(depth) of(calls) of(input_shapes) of(output_shapes) of(output_bytes) of(peak_memory)        \
      of(kept_memory) of(fused_bytes) of(fused_bound_time_ns) of(percent_of_fused) of(shared_time_ns) of(inferred) \
          of(work_share) of(time_min_ns) of(time_median_ns) of(time_max_ns) of(slowest_rank) of(imbalance)         \
              of(communication_ns) of(exposed_communication_ns) of(hidden_communication_ns) of(idle_before_ns)     \
                  of(idle_between_ns) of(idle_after_ns)
#define GROUP_FIELDS(of) of(calls) of(input_elements) of(output_elements) of(percent_of_time)
#define KERNEL_FIELDS(of)                                                                                             \
  of(name) of(kind) of(copied) of(module) of(phase) of(scope) of(op) of(grid) of(block) of(device) of(in_graph)       \
      of(built_for) of(percent_of_time) of(total_ns) of(instances) of(average_ns) of(median_ns) of(min_ns) of(max_ns) \
          of(stddev_ns) of(bytes) of(unfused_bytes) of(incomplete) of(fused) of(modules) of(shared) of(code)          \
              of(source) of(flops) of(intensity) of(achieved_flops) of(dram_bytes) of(l2_bytes) of(l1_bytes)          \
                  of(dram_intensity) of(l2_intensity) of(l1_intensity) of(dram_bandwidth) of(executed_flops)          \
                      of(lower_bound_time_ns) of(bound) of(percent_of_roof)

// Those that are known or not as a whole: functions give their values.
#define PARAMETER_FIELDS(of) of(params) of(trainable_params) of(param_bytes) of(buffer_bytes)

// Each key of JSON and CSV beside the place of its value; null for what a function gives.
template <class Row>
std::set<std::pair<std::string, const void*>> keys_of(const Row& row) {
  std::set<std::pair<std::string, const void*>> keys;
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto value_of) {
    const void* place = nullptr;
    if constexpr (std::is_lvalue_reference_v<decltype(value_of(row))>) place = &value_of(row);
    keys.emplace(info.key_in(of_self), place);
  });
  return keys;
}

using Members = std::set<std::pair<std::string, const void*>>;

TEST(FigureNames, AreThoseOfJsonAndCsv) {
  const RooflineRow row;
#define MEMBER(name) {#name, &row.name},
#define SELF(name) {"self_" #name, &row.self.name},
#define FUNCTION(name) {#name, nullptr},
  EXPECT_EQ(keys_of(row), (Members{FIGURES(MEMBER) ROW_FIELDS(MEMBER) PARAMETER_FIELDS(FUNCTION) FIGURES(SELF)}));
#undef MEMBER
#undef SELF
#undef FUNCTION
  const GroupRow group;
#define MEMBER(name) {#name, &group.name},
  EXPECT_EQ(keys_of(group), (Members{FIGURES(MEMBER) GROUP_FIELDS(MEMBER)}));
#undef MEMBER
  const KernelRow kernel;
#define MEMBER(name) {#name, &kernel.name},
  EXPECT_EQ(keys_of(kernel), (Members{KERNEL_FIELDS(MEMBER)}));
#undef MEMBER
}

TEST(FigureNames, FindTheirFigures) {
  RooflineRow row;
  row.macs = 12;
  row.time_ns = 2'000'000;
  row.percent_of_roof = 37.5;
  row.calls = 3;
  row.inferred = true;
  row.self.wasted_time_ns = 7;
  EXPECT_EQ(row.figure("macs"), 12);
  EXPECT_EQ(row.figure("time_ns"), 2e6);
  EXPECT_EQ(row.figure("percent_of_roof"), 37.5);
  EXPECT_EQ(row.figure("calls"), 3);
  EXPECT_EQ(row.figure("inferred"), 1);
  EXPECT_EQ(row.figure("incomplete"), 0);
  EXPECT_EQ(row.figure("self_wasted_time_ns"), 7);
  EXPECT_EQ(row.self.figure("wasted_time_ns"), 7);
  EXPECT_EQ(row.figure("wasted_time_ns"), std::nullopt) << "what is not known is not 0";
  row.params = 4;
  row.buffer_bytes = 8;
  EXPECT_EQ(row.figure("params"), 4);
  EXPECT_EQ(row.figure("buffer_bytes"), 8);
  row.params_known = false;
  for (const auto* name : {"params", "trainable_params", "param_bytes", "buffer_bytes"}) {
    EXPECT_EQ(row.figure(name), std::nullopt) << name;
  }
  GroupRow group;
  group.calls = 5;
  EXPECT_EQ(group.figure("calls"), 5);
  EXPECT_EQ(group.figure("percent_of_time"), std::nullopt);
  KernelRow kernel;
  kernel.average_ns = 1.5;
  EXPECT_EQ(kernel.figure("average_ns"), 1.5);
}

std::string refusal(const RooflineRow& row, const char* name) {
  try {
    row.figure(name);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(FigureNames, ThatAreNoneAreRefusedWithTheClosest) {
  const RooflineRow row;
  EXPECT_TRUE(refusal(row, "wasted_tim")
                  .starts_with("no figure 'wasted_tim'; the closest are 'wasted_time', 'self_wasted_time', '"));
  EXPECT_EQ(refusal(row, "bound"), "'bound' is no number; read the row's member of that name");
  EXPECT_EQ(refusal(row, "path"), "'path' is no number; read the row's member of that name");
}

TEST(Durations, AreTheNanosecondsOfTheSameName) {
  Figures figures;
  EXPECT_EQ(figures.time(), std::nullopt);
  figures.time_ns = 1;
  figures.op_time_ns = 2;
  figures.busy_ns = 3;
  figures.idle_ns = 4;
  figures.host_time_ns = 5;
  figures.wall_ns = 6;
  figures.lower_bound_time_ns = 7;
  figures.wasted_time_ns = 8;
  figures.compute_time_ns = 9;
  figures.memory_time_ns = 10;
  EXPECT_EQ(figures.time(), 1ns);
  EXPECT_EQ(figures.op_time(), 2ns);
  EXPECT_EQ(figures.busy(), 3ns);
  EXPECT_EQ(figures.idle(), 4ns);
  EXPECT_EQ(figures.host_time(), 5ns);
  EXPECT_EQ(figures.wall(), 6ns);
  EXPECT_EQ(figures.lower_bound_time(), 7ns);
  EXPECT_EQ(figures.wasted_time(), 8ns);
  EXPECT_EQ(figures.compute_time(), 9ns);
  EXPECT_EQ(figures.memory_time(), 10ns);
  KernelRow kernel;
  kernel.total_ns = 1;
  kernel.average_ns = 2.5;
  kernel.median_ns = 3;
  kernel.min_ns = 4;
  kernel.max_ns = 5;
  kernel.stddev_ns = 6.5;
  EXPECT_EQ(kernel.total(), 1ns);
  EXPECT_EQ(kernel.average().count(), 2.5);
  EXPECT_EQ(kernel.median(), 3ns);
  EXPECT_EQ(kernel.min(), 4ns);
  EXPECT_EQ(kernel.max(), 5ns);
  EXPECT_EQ(kernel.stddev().count(), 6.5);
}

}  // namespace
}  // namespace roofprof
