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

// Each field of JSON and CSV has a name and a place of its own; functions give the values of those without a place.
template <class Row>
void expect_own_places() {
  const Row row{};
  std::set<std::string> keys;
  std::set<const void*> places;
  for_each_field<Row>([&](const FigureInfo& info, bool of_self, auto value_of) {
    EXPECT_TRUE(keys.insert(info.key_in(of_self)).second) << info.name;
    if constexpr (std::is_lvalue_reference_v<decltype(value_of(row))>) {
      EXPECT_TRUE(places.insert(&value_of(row)).second) << info.name;
    }
  });
}

TEST(FigureNames, HaveAPlaceEach) {
  expect_own_places<RooflineRow>();
  expect_own_places<GroupRow>();
  expect_own_places<KernelRow>();
}

TEST(FigureNames, FindTheirFigures) {
  RooflineRow row;
  row.time_ns = 2'000'000;
  row.calls = 3;
  row.inferred = true;
  row.self.wasted_time_ns = 7;
  EXPECT_EQ(row.figure("time_ns"), 2e6);
  EXPECT_EQ(row.figure("calls"), 3);
  EXPECT_EQ(row.figure("inferred"), 1);
  EXPECT_EQ(row.figure("self_wasted_time_ns"), 7);
  EXPECT_EQ(row.self.figure("wasted_time_ns"), 7);
  EXPECT_EQ(row.figure("wasted_time_ns"), std::nullopt) << "what is not known is not 0";
  row.params = 4;
  EXPECT_EQ(row.figure("params"), 4);
  row.params_known = false;
  for (const auto* name : {"params", "trainable_params", "param_bytes", "buffer_bytes"}) {
    EXPECT_EQ(row.figure(name), std::nullopt) << name;
  }
  KernelRow kernel;
  kernel.average_ns = 1.5;
  EXPECT_EQ(kernel.figure("average_ns"), 1.5);
}

std::string refusal(const RooflineRow& row, const char* name) {
  try {
    (void)row.figure(name);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(FigureNames, ThatAreNoneAreRefusedWithTheClosest) {
  const RooflineRow row{};
  EXPECT_TRUE(refusal(row, "wasted_tim")
                  .starts_with("no figure 'wasted_tim'; the closest are 'wasted_time', 'self_wasted_time', '"));
  EXPECT_EQ(refusal(row, "bound"), "'bound' is no number; read the row's member of that name");
  EXPECT_EQ(refusal(row, "path"), "'path' is no number; read the row's member of that name");
}

TEST(Durations, AreTheNanosecondsOfTheSameName) {
  const Figures none{};
  EXPECT_EQ(none.time(), std::nullopt);
  Figures figures;
  std::int64_t next = 1;
  for (auto* member : {&figures.time_ns, &figures.op_time_ns, &figures.busy_ns, &figures.idle_ns, &figures.host_time_ns,
                       &figures.wall_ns, &figures.lower_bound_time_ns, &figures.wasted_time_ns,
                       &figures.compute_time_ns, &figures.memory_time_ns}) {
    *member = next++;
  }
  const auto given = {
      figures.time(), figures.op_time(),          figures.busy(),        figures.idle(),         figures.host_time(),
      figures.wall(), figures.lower_bound_time(), figures.wasted_time(), figures.compute_time(), figures.memory_time()};
  next = 1;
  for (const auto& duration : given) EXPECT_EQ(duration, std::chrono::nanoseconds(next++));
  KernelRow kernel;
  kernel.total_ns = 1;
  kernel.average_ns = 2.5;
  kernel.stddev_ns = 6.5;
  EXPECT_EQ(kernel.total(), 1ns);
  EXPECT_EQ(kernel.average().count(), 2.5);
  EXPECT_EQ(kernel.stddev().count(), 6.5);
}

}  // namespace
}  // namespace roofprof
