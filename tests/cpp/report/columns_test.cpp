#include "report/columns.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "report/golden.h"
#include "report/tables.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::contains;

template <class Row>
std::string found_as(std::string_view typed) {
  static const auto columns = columns_of<Row>();
  return column_named(columns, typed).name;
}

// Those of modules and groups: tests/python/report/test_fields.py. Kernels have a module and a name of their own, and
// one time.
TEST(Columns, OfKernelsAreFoundByNameAndAlias) {
  EXPECT_EQ(found_as<KernelRow>("module"), "module");
  EXPECT_EQ(found_as<KernelRow>("name"), "name");
  EXPECT_EQ(found_as<KernelRow>("time"), "total");
  EXPECT_EQ(found_as<RooflineRow>("name"), "path");
  EXPECT_THROW(found_as<GroupRow>("self_time"), std::invalid_argument);
}

// A model with an op without a cost beside one with a cost.
struct Part : testing::ProfileBuilder {
  Part() {
    op("aten::linear", kModel, testing::work_of(1'000'000, 500), 4'000);
    time(kModel, {5'000, 5'100});
  }
};

TEST(Columns, OfAnIncompleteRowSayWhichLimitTheyAre) {
  Part part;
  part.op("mylib::free", kModel, {}, 500).costed = false;
  const Report report = part.report();
  RooflineRow row = report.total();
  row.dram_bytes = 1'000;
  row.dram_bytes_ratio = 2;
  row.dram_intensity = 2;
  const auto columns = columns_of<RooflineRow>();
  const auto text = [&](std::string_view name) { return cell_of(column_named(columns, name), row).text; };
  for (const char* name : {"macs", "flops", "bytes", "achieved_flops", "achieved_bandwidth", "dram_intensity",
                           "lower_bound_time", "percent_of_roof"}) {
    EXPECT_TRUE(text(name).starts_with(">=")) << name;
  }
  EXPECT_EQ(text("dram_bytes_ratio"), "<=2.00");
  EXPECT_TRUE(text("wasted_time").starts_with("<="));
  for (const char* name : {"time", "intensity", "dram_bytes", "params", "bound"}) {
    EXPECT_FALSE(contains(text(name), "=")) << name;
  }
  row.incomplete = false;
  EXPECT_EQ(text("dram_bytes_ratio"), "2.00");
}

TEST(Legend, SaysWhatHoldsForTheReport) {
  Part part;
  const auto legend = [](const Report& report) { return report.table({.width = 4'000}); };
  EXPECT_TRUE(contains(legend(part.report()),
                       "columns   a row includes the modules below it; MACs: multiply-accumulates; FLOPs = 2 x MACs + "
                       "other operations; bytes: each op's inputs and outputs once; AI = FLOPs / bytes; "
                       "overhead: most time is outside ops; lower bound: sum over ops of max(FLOPs / peak, "
                       "bytes / bandwidth); bound: the roof behind most of it; "
                       "%roof = lower bound / time; wasted = time - lower bound\n"));
  part.data.tree.modules[kModel].inferred = true;
  part.op("mylib::free", kModel, {}, 500).costed = false;
  EXPECT_TRUE(contains(
      legend(part.report()),
      "lower bound; >=: a lower limit, an op without a known cost is in it; ?: of what is known alone; "
      "<=: an upper one, likewise; ~: which module ran was inferred, ROOFPROF_SCOPE(*this) in its forward tells it\n"));
  EXPECT_FALSE(contains(legend(part.report()), "latency/code"));
  part.data.counts.ops.front().work = testing::work_of(2'000, 500);
  EXPECT_TRUE(
      contains(legend(part.report()), "latency/code: roofs explain under 3%, latency or the ops' own code the rest"));
  part.data.roofs = {};
  EXPECT_FALSE(contains(legend(part.report()), "lower bound"));
}

// What a sentence mentions is a figure of the same rows, which has a sentence, by the heading that it has.
template <class Row>
void expect_that_mentions_are_figures() {
  std::map<std::string_view, FigureInfo> figures;
  for_each_field<Row>([&](const FigureInfo& info, bool, auto) { figures.emplace(info.name, info); });
  for (const auto& [name, info] : figures) {
    std::vector<Sentence> sentences(info.hints.begin(), info.hints.end());
    sentences.push_back(info.legend);
    for (const Sentence& sentence : sentences) {
      for (const auto mentioned : sentence.mentions) {
        if (mentioned.empty()) continue;
        ASSERT_TRUE(figures.contains(mentioned)) << mentioned;
        EXPECT_FALSE(figures[mentioned].legend.text.empty()) << mentioned;
        EXPECT_NE(sentence.text.find(figures[mentioned].heading), std::string_view::npos) << mentioned;
      }
    }
    if (info.legend_of.empty()) continue;
    ASSERT_TRUE(figures.contains(info.legend_of)) << name;
    EXPECT_NE(figures[info.legend_of].legend.text.find(info.heading), std::string_view::npos) << name;
  }
}

TEST(Legend, MentionsFiguresThatItExplains) {
  expect_that_mentions_are_figures<RooflineRow>();
  expect_that_mentions_are_figures<GroupRow>();
  expect_that_mentions_are_figures<KernelRow>();
  expect_that_mentions_are_figures<Rank>();
  expect_that_mentions_are_figures<Collective>();
  expect_that_mentions_are_figures<MemoryRow>();
}

// 2,000 of 4,000 ns at the roof, and 500 ns outside of ops, call for nothing.
TEST(Brief, SaysWhatWastesMostWhereNoRuleHolds) {
  testing::ProfileBuilder net;
  const ModuleId layer = net.module("layer", "Linear");
  net.op("aten::linear", layer, testing::work_of(2'000'000, 500), 4'000);
  net.time(layer, {4'500});
  const std::string brief = net.report().brief();
  EXPECT_TRUE(contains(
      brief, "findings: none by a rule; most waste is in aten::linear of layer: 2.00 us, 44.4% of the total\n"))
      << brief;
  net.data.roofs = {};
  EXPECT_TRUE(contains(net.report().brief(), "findings: none: they need roofs, and the report has none\n"));
}

}  // namespace
}  // namespace roofprof
