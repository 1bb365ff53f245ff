#include <gtest/gtest.h>

#include <stdexcept>

#include "core/fields.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;
using Keys = std::vector<std::string>;

struct Training : ProfileBuilder {
  ModuleId conv = module("conv", "Conv2d");
  ModuleId head = module("head", "Linear");

  Training() {
    op("aten::conv2d", conv, work_of(6'000'000, 1'000), 10'000, 2).shapes = testing::shapes("1x3x8x8");
    op("aten::conv2d", conv, work_of(2'000'000, 1'000), 4'000).shapes = testing::shapes("1x3x4x4");
    op("aten::linear", head, work_of(1'000, 500'000), 1'000);
    op("aten::linear_backward", head, work_of(2'000, 900'000), 3'000).owner.phase = Phase::backward;
    op("mylib::free", head, {}, 2'000);
  }
};

TEST(Group, SumsOpsByTheirKeys) {
  const testing::Derived report = Training().derived();
  const auto rows = report.group(Keys{"op"});
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].keys, Keys{"aten::conv2d"});
  EXPECT_EQ(rows[0].calls, 3);
  EXPECT_EQ(rows[0].flops, 8'000'000);
  EXPECT_EQ(rows[0].time_ns, 14'000);
  EXPECT_EQ(rows[0].lower_bound_time_ns, 6'000 + 2'000);
  EXPECT_EQ(rows[0].wasted_time_ns, 14'000 - 8'000);
  EXPECT_DOUBLE_EQ(*rows[0].percent_of_roof, 100.0 * 8'000 / 14'000);
  EXPECT_DOUBLE_EQ(*rows[0].percent_of_time, 100.0 * 14'000 / 20'000);
  EXPECT_EQ(rows[0].bound, (Bound{BoundKind::compute, "fp32"}));
  EXPECT_EQ(rows[3].bound.kind, BoundKind::overhead);
}

// 0 of them would be wrong: it stands with the ops that the code ran.
TEST(Group, TheWorkOfCompiledCodeIsElsewhere) {
  Training training;
  training.op("compiled region", training.conv, {}, 7'000);
  const testing::Derived report = training.derived();
  for (const auto& row : report.group(Keys{"op"})) {
    const bool compiled = row.op == "compiled region";
    EXPECT_EQ(row.work_elsewhere, compiled) << *row.op;
    if (!compiled) continue;
    EXPECT_EQ(row.time_ns, 7'000);
    EXPECT_FALSE(row.achieved_flops || row.achieved_bandwidth);
  }
  for (const auto& row : report.group(Keys{"module"})) EXPECT_FALSE(row.work_elsewhere) << *row.module;
}

TEST(Group, HasItsKeysByName) {
  const testing::Derived report = Training().derived();
  const auto rows = report.group(Keys{"module", "op"});
  EXPECT_EQ(rows[0].module, "conv");
  EXPECT_EQ(rows[0].op, "aten::conv2d");
  for (const auto& row : rows) EXPECT_EQ(row.keys, (Keys{*row.module, *row.op}));
  for (const auto& none : {rows[0].dtype, rows[0].shapes}) EXPECT_EQ(none, std::nullopt);
  EXPECT_EQ(rows[0].phase, std::nullopt);
  const auto by_rest = report.group(Keys{"phase", "dtype", "shapes"});
  EXPECT_EQ(by_rest[0].phase, Phase::forward);
  EXPECT_EQ(by_rest[0].dtype, "fp32");
  EXPECT_EQ(by_rest[0].shapes, "1x3x8x8");
  EXPECT_EQ(by_rest[0].module, std::nullopt);
  EXPECT_EQ(report.group(Keys{}).front().op, std::nullopt);
}

TEST(Group, EveryGroupingSumsToTheTotal) {
  const testing::Derived report = Training().derived();
  for (const auto& keys : {Keys{}, Keys{"phase"}, Keys{"op"}, Keys{"module"}, Keys{"dtype"}, Keys{"shapes"},
                           Keys{"module", "op", "phase", "dtype", "shapes"}}) {
    const auto rows = report.group(keys);
    for_each_figure([&](std::string_view name, Unit, auto member) {
      if constexpr (std::is_same_v<decltype(member), std::int64_t Figures::*>) {
        std::int64_t sum = 0;
        for (const auto& row : rows) sum += row.*member;
        EXPECT_EQ(sum, report.total().*member) << name;
      }
    });
    std::int64_t lower = 0;
    std::int64_t time = 0;
    for (const auto& row : rows) {
      lower += *row.lower_bound_time_ns;
      time += *row.time_ns;
    }
    EXPECT_EQ(lower, report.total().lower_bound_time_ns);
    EXPECT_EQ(time, 20'000);
  }
}

TEST(Group, WithoutKeysEverythingIsOneGroupAlsoWhereNothingRan) {
  EXPECT_EQ(Training().derived().group(Keys{}).size(), 1U);
  EXPECT_EQ(ProfileBuilder().derived().group(Keys{}).at(0).calls, 0);
  EXPECT_TRUE(ProfileBuilder().derived().group(Keys{"op"}).empty());
  EXPECT_THROW((void)ProfileBuilder().derived().group(Keys{"layer"}), std::invalid_argument);
}

}  // namespace
}  // namespace roofprof
