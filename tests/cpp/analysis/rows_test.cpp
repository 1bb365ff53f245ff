#include "analysis/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/run_times.h"
#include "core/fields.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

// stem -> conv, act; head; and a loss outside of the model. Two runs, the first is the chosen one.
struct Net : ProfileBuilder {
  ModuleId stem = module("stem", "Stem");
  ModuleId conv = module("stem.conv", "Conv2d", stem);
  ModuleId act = module("stem.act", "ReLU", stem);
  ModuleId head = module("head", "Linear");

  Net() {
    op("aten::conv2d", conv, work_of(80'000'000, 300'000, 200'000), 150'000);  // lower bound 80,000 ns
    op("aten::relu", act, work_of(100'000, 400'000, 400'000), 1'600);          // 800 ns
    op("aten::linear", head, work_of(2'000, 4'000'000, 100'000), 50'000);      // 41,000 ns
    op("aten::mse_loss", kOutside, work_of(3'000, 8'000, 4), 40);              // 8 ns
    time(kModel, {5'000, 6'000});
    time(stem, {1'000, 2'000});
    time(conv, {160'000, 180'000});
    time(act, {2'000, 2'000});
    time(head, {52'000, 60'000});
    time(kOutside, {100, 100});
    data.tree.modules[static_cast<std::size_t>(conv)].params = 1'728;
    data.tree.modules[static_cast<std::size_t>(stem)].params = 1'728;
    data.tree.modules[kModel].params = 2'728;
  }
};

TEST(Join, RowsStandInTreeOrderWithTheirDepth) {
  const testing::Derived report = Net().derived();
  std::vector<std::pair<std::string, std::int64_t>> seen;
  for (const auto& row : report.rows()) seen.emplace_back(row.path, row.depth);
  const std::vector<std::pair<std::string, std::int64_t>> expected = {{"", 0},         {"stem", 1}, {"stem.conv", 2},
                                                                      {"stem.act", 2}, {"head", 1}, {"(outside)", 0}};
  EXPECT_EQ(seen, expected);
  Net net;
  net.module("stem.late", "Region", net.stem);
  EXPECT_EQ(net.derived().rows()[4].path, "stem.late");  // found late, under its parent
}

// stem ran as compiled code, conv inside it, inner on its own in between: the compiler had left it out.
struct CompiledNet : ProfileBuilder {
  ModuleId stem = module("stem", "Stem");
  ModuleId conv = module("stem.conv", "Conv2d", stem);
  ModuleId inner = module("stem.conv.inner", "Conv2d", conv);
  ModuleId head = module("head", "Linear");

  CompiledNet() {
    op("aten::add", stem, work_of(20'000'000, 300'000, 200'000));     // lower bound 20,000 ns
    op("aten::conv2d", conv, work_of(60'000'000, 300'000, 200'000));  // 60,000 ns
    op("aten::conv2d", inner, work_of(20'000'000, 300'000, 200'000), 30'000);
    op("aten::linear", head, work_of(2'000, 4'000'000, 100'000), 50'000);
    op("compiled region", stem, {}, 190'000);
    time(kModel, {5'000, 6'000});
    time(stem, {200'000, 210'000});
    time(conv, {});
    time(inner, {40'000, 40'000});
    time(head, {52'000, 60'000});
    data.tree.modules[static_cast<std::size_t>(conv)].compiled_region = stem;
  }
};

TEST(Join, ModulesInACompiledRegionHaveWorkAndAShareOfItButNoTime) {
  const testing::Derived report = CompiledNet().derived();
  const RooflineRow& conv = report.row("stem.conv");
  EXPECT_EQ(conv.self.flops, 60'000'000);
  EXPECT_EQ(conv.flops, 80'000'000);
  EXPECT_EQ(conv.lower_bound_time_ns, 80'000);
  EXPECT_DOUBLE_EQ(*conv.work_share, 100.0 * 80'000 / 100'000);
  for (const Figures& figures : {static_cast<const Figures&>(conv), conv.self}) {
    EXPECT_FALSE(figures.time_ns || figures.op_time_ns || figures.wasted_time_ns || figures.percent_of_roof);
    EXPECT_FALSE(figures.achieved_flops || figures.achieved_bandwidth || figures.time_spread);
    EXPECT_EQ(figures.bound.kind, BoundKind::unknown);
  }
  CompiledNet net;
  net.data.roofs = {};
  EXPECT_DOUBLE_EQ(*net.derived().row("stem.conv").work_share, 80.0) << "without roofs it is of the FLOPs";
  net.op("compiled region", net.conv, {}).costed = false;
  EXPECT_FALSE(net.derived().row("stem.conv").work_share) << "what was not counted has none";
}

TEST(Join, ARegionsRowHoldsTheTimeOfAllAndJoinsItWithTheWorkOfAll) {
  const testing::Derived report = CompiledNet().derived();
  const RooflineRow& stem = report.row("stem");
  EXPECT_EQ(stem.time_ns, 240'000);
  EXPECT_EQ(stem.lower_bound_time_ns, 100'000);
  EXPECT_EQ(stem.wasted_time_ns, 140'000);
  EXPECT_DOUBLE_EQ(*stem.percent_of_roof, 100.0 * 100'000 / 240'000);
  EXPECT_EQ(stem.bound, (Bound{BoundKind::compute, "fp32"}));
  EXPECT_FALSE(stem.work_share);
  // Its own time is of the region, its own work is not.
  EXPECT_EQ(stem.self.time_ns, 200'000);
  EXPECT_EQ(stem.self.op_time_ns, 190'000);
  EXPECT_EQ(stem.self.flops, 20'000'000);
  EXPECT_FALSE(stem.self.wasted_time_ns || stem.self.percent_of_roof || stem.self.achieved_flops);
  const RooflineRow& inner = report.row("stem.conv.inner");  // what ran on its own inside keeps its time
  EXPECT_EQ(inner.time_ns, 40'000);
  EXPECT_EQ(inner.wasted_time_ns, 20'000);
  EXPECT_EQ(report.row("").time_ns, 5'000 + 200'000 + 40'000 + 52'000);
}

TEST(Join, ParentsAreTheSumOfTheirSubtree) {
  const testing::Derived report = Net().derived();
  const RooflineRow& stem = report.row("stem");
  EXPECT_EQ(stem.flops, 80'000'000 + 100'000);
  EXPECT_EQ(stem.bytes, 500'000 + 800'000);
  EXPECT_EQ(stem.time_ns, 1'000 + 160'000 + 2'000);
  EXPECT_EQ(stem.lower_bound_time_ns, 80'000 + 800);
  EXPECT_EQ(stem.wasted_time_ns, 163'000 - 80'800);
  EXPECT_DOUBLE_EQ(*stem.percent_of_roof, 100.0 * 80'800 / 163'000);
  EXPECT_EQ(stem.bound, (Bound{BoundKind::compute, "fp32"}));
  EXPECT_EQ(stem.self.flops, 0);
  EXPECT_EQ(stem.self.time_ns, 1'000);
  EXPECT_EQ(stem.self.bound.kind, BoundKind::overhead);
  EXPECT_EQ(stem.params, 1'728);
}

TEST(Join, SelfOfAllRowsIsTheTotal) {
  const testing::Derived report = Net().derived();
  std::int64_t time = 0;
  std::int64_t lower = 0;
  std::int64_t wasted = 0;
  for (const auto& row : report.rows()) {
    time += row.self.time_ns.value();
    lower += row.self.lower_bound_time_ns.value();
    wasted += row.self.wasted_time_ns.value();
  }
  EXPECT_EQ(report.total().time_ns, time);
  EXPECT_EQ(report.total().lower_bound_time_ns, lower);
  EXPECT_EQ(report.total().wasted_time_ns, wasted);
  EXPECT_EQ(report.total().time_ns, *report.row("").time_ns + *report.row("(outside)").time_ns);
  // Every plain count in the list of figures.
  for_each_figure([&](std::string_view name, Unit, auto member) {
    if constexpr (std::is_same_v<decltype(member), std::int64_t Figures::*>) {
      std::int64_t sum = 0;
      for (const auto& row : report.rows()) sum += row.self.*member;
      EXPECT_EQ(sum, report.total().*member) << name;
      EXPECT_EQ(sum, report.total().self.*member) << name;
    }
  });
}

TEST(Join, SpreadComesFromAllRunsAndTimeFromOne) {
  Net net;
  net.data.run.runs.total_ns = {10, 20};
  const testing::Derived report = net.derived();
  const double stem_runs[] = {163'000, 184'000};
  EXPECT_DOUBLE_EQ(*report.row("stem").time_spread,
                   (stem_runs[1] - stem_runs[0]) / ((stem_runs[0] + stem_runs[1]) / 2));
  EXPECT_DOUBLE_EQ(*report.row("stem.act").self.time_spread, 0.0);
  EXPECT_EQ(report.row("").wall_ns, 10);
  EXPECT_EQ(report.row("stem").wall_ns, std::nullopt);
}

TEST(Join, ARowHasTheTimeOfItsSubtreeInEachRun) {
  const Net net;
  const auto times = row_run_times(net.data);
  const auto runs_of = [&](std::string_view path) {
    const auto rows = net.derived().rows();
    const auto found = std::ranges::find(rows, path, &RooflineRow::path);
    return times.of_rows.at(static_cast<std::size_t>(found - rows.begin()));
  };
  EXPECT_EQ(runs_of("stem"), (std::vector<std::int64_t>{163'000, 184'000}));
  EXPECT_EQ(runs_of("stem.act"), (std::vector<std::int64_t>{2'000, 2'000}));
  EXPECT_EQ(runs_of(""), (std::vector<std::int64_t>{220'000, 250'000}));
  EXPECT_EQ(times.total, (std::vector<std::int64_t>{220'100, 250'100}));
}

TEST(Join, WithoutTimedRunsThereAreNoTimes) {
  Net net;
  for (auto& time : net.data.times.make().modules) time.self_ns.clear();
  for (auto& op : net.data.counts.ops) op.time_ns.reset();
  net.data.run.runs = {};
  const testing::Derived report = net.derived();
  for (const auto& row : report.rows()) {
    EXPECT_EQ(row.time_ns, std::nullopt);
    EXPECT_EQ(row.self.time_ns, std::nullopt);
    EXPECT_EQ(row.op_time_ns, std::nullopt);
    EXPECT_EQ(row.bound.kind, BoundKind::unknown);
  }
  EXPECT_EQ(report.row("stem").lower_bound_time_ns, 80'800);
  EXPECT_EQ(report.total().time_ns, std::nullopt);
}

TEST(Join, ContainersTookNoTimeAndWhatNeverRanHasNone) {
  Net net;
  const ModuleId list = net.module("list", "ModuleList");
  net.time(net.module("list.0", "Linear", list), {700, 700});
  net.module("unused", "Linear");
  net.data.tree.modules[static_cast<std::size_t>(net.act)].calls_visible = false;
  const testing::Derived report = net.derived();
  EXPECT_EQ(report.row("list").time_ns, 700);
  EXPECT_EQ(report.row("list").self.time_ns, 0);
  EXPECT_EQ(report.row("unused").calls, 0);
  EXPECT_EQ(report.row("unused").flops, 0);
  EXPECT_EQ(report.row("unused").time_ns, std::nullopt);
  EXPECT_EQ(report.row("unused").bound.kind, BoundKind::unknown);
  EXPECT_EQ(report.row("stem.act").calls, std::nullopt);
}

TEST(Join, TimeBesideTheModelCountsInBlocksOnly) {
  Net net;
  net.data.counts.ops.pop_back();  // the loss: "(outside)" has time but no ops
  EXPECT_THROW((void)net.derived().row("(outside)"), std::out_of_range);
  EXPECT_EQ(net.derived().total().time_ns, net.derived().row("").time_ns);
  net.data.run.mode = Mode::block;
  EXPECT_EQ(net.derived().row("(outside)").time_ns, 100);
  EXPECT_EQ(net.derived().total().time_ns, *net.derived().row("").time_ns + 100);
}

TEST(Join, DataThatContradictsItselfIsRefused) {
  EXPECT_THROW(testing::Derived{Profile()}, std::invalid_argument);
  Net parent;
  parent.data.tree.modules.back().parent = 99;
  EXPECT_THROW(parent.derived(), std::invalid_argument);
  Net owner;
  owner.data.counts.ops[0].owner.module = 99;
  EXPECT_THROW(owner.derived(), std::invalid_argument);
  Net time;
  time.data.times.make().modules[0].owner.module = -2;
  EXPECT_THROW(time.derived(), std::invalid_argument);
  CompiledNet region;
  region.data.tree.modules.back().compiled_region = region.head;
  EXPECT_THROW(region.derived(), std::invalid_argument);
  Net chosen;
  chosen.data.run.runs.chosen = 2;
  EXPECT_THROW(chosen.derived(), std::invalid_argument);
}

TEST(Join, TheObserversOwnCostIsSeenAgainstTheBareRunsBeyondTheNoise) {
  using Times = std::vector<std::int64_t>;
  const auto overhead = [](Times total_ns, Times bare_ns) {
    const auto chosen = std::ssize(total_ns) / 2;  // the second of three
    return observer_overhead({.total_ns = total_ns, .chosen = total_ns.empty() ? -1 : chosen, .bare_ns = bare_ns});
  };
  EXPECT_DOUBLE_EQ(overhead({102, 103, 104}, {98, 100, 102}).value_or(0), 0.03);
  EXPECT_EQ(overhead({}, {}), std::nullopt);
  EXPECT_EQ(overhead({102, 103, 104}, {}), std::nullopt);
  EXPECT_EQ(overhead({102, 103, 104}, {90, 100, 110}), std::nullopt) << "the bare runs differ by more";
  EXPECT_EQ(overhead({90, 103, 110}, {99, 100, 101}), std::nullopt) << "the observed ones do";
  EXPECT_EQ(overhead({94, 95, 96}, {99, 100, 101}), std::nullopt) << "observing cannot make it faster";
  EXPECT_EQ(overhead({103}, {99, 100, 101}), std::nullopt) << "one run says nothing of noise";
}

}  // namespace
}  // namespace roofprof
