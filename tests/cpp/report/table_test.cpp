#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "report/golden.h"
#include "report/sample_device.h"
#include "report/tables.h"
#include "report/utf8.h"

namespace roofprof {
namespace {

using testing::contains;
using testing::lines_of;
using testing::row_lines;

TEST(TableLayout, MatchesTheGoldenFile) {
  testing::expect_golden("table_resnet50.txt", testing::sample_resnet50().table());
}

TEST(Table, ShowsNotesByTheirLevelAndEqualOnesOnceWithTheirPlaces) {
  testing::ProfileBuilder builder;
  auto& notes = builder.data.notes;
  add_note(notes, "simulated-device", "no GPU ran");
  for (const auto* place : {"", "b", "c", "d"}) add_note(notes, "cost-failed", "no idea", {place});
  for (int i = 0; i < 3; ++i) add_note(notes, "kernels-missing", "a buffer was full");
  for (int i = 0; i < 3; ++i) add_note(notes, "replayed", "no device ran");
  const std::string table = builder.report().table({.width = 200});
  EXPECT_LT(table.find("ATTENTION no GPU ran\n"), table.find("coverage"));
  EXPECT_EQ(table.find("note: no GPU ran"), std::string::npos);
  EXPECT_TRUE(contains(table, "note: no idea (4 times: the model, b, c, ...)\n")) << table;
  EXPECT_TRUE(contains(table, "note: a buffer was full (3 times)\n")) << table;
  EXPECT_TRUE(contains(table, "note: no device ran\n")) << table;
}

TEST(Table, SaysNotesOfOneKindOnceAndInTwoLines) {
  testing::ProfileBuilder builder;
  auto& notes = builder.data.notes;
  add_note(notes, "replayed", "no device ran");
  add_note(notes, "cost-failed", "no idea of one");
  add_note(notes, "compiled", "compiled");
  add_note(notes, "cost-failed", "no idea of another");
  std::string words = "many";
  for (int i = 0; i < 50; ++i) words += " words";
  add_note(notes, "kernels-missing", words);
  const std::string table = builder.report().table({.width = 80});
  EXPECT_TRUE(contains(table, "note: no idea of one (and 1 more like it)\n")) << table;
  EXPECT_FALSE(contains(table, "another"));
  EXPECT_TRUE(contains(table, "words…\n")) << table;
  // Two lines, and after warnings what informs.
  const auto two_lines = std::string_view(table).substr(table.find("note: many words"));
  EXPECT_EQ(std::ranges::count(two_lines.substr(0, two_lines.find("note: no device ran")), '\n'), 2);
  EXPECT_TRUE(contains(table, "in full: coverage in the report's JSON\n"));
  EXPECT_EQ(builder.report().coverage().notes.size(), 5U);
}

TEST(Table, KeepsQuietAboutWhatDoesNotMatter) {
  testing::ProfileBuilder builder;
  const auto with_parameters = builder.module("head", "Linear");
  builder.module("dropout", "Dropout");
  builder.module("relu", "ReLU");
  builder.data.tree.modules[static_cast<std::size_t>(with_parameters)].params = 10;
  builder.op("aten::linear", kModel, testing::work_of(100'000, 100), 1'000);
  builder.op("aten::add", kModel, testing::work_of(10, 100, 0, DType::int64), 1'000).work.macs = 0;
  builder.time(kModel, {2'000});
  const Report quiet = builder.report();
  EXPECT_TRUE(contains(quiet.table(), "never called: head\n")) << quiet.table();
  EXPECT_FALSE(contains(quiet.table(), "int64"));
  EXPECT_EQ(quiet.coverage().uncalled_modules, (std::vector<std::string>{"head", "relu"}));
  EXPECT_EQ(quiet.coverage().notes.size(), 1U);
  builder.op("aten::add", kModel, testing::work_of(1'000'000, 100, 0, DType::int64), 1'000).work.macs = 0;
  EXPECT_TRUE(contains(builder.report().table(), "no roof for int64"));
}

TEST(Table, AnOpWithoutTensorsHasNoShapesAndIsNoModel) {
  testing::ProfileBuilder builder;
  builder.op("aten::randn", kModel, testing::work_of(0, 100), 1'000);
  builder.time(kModel, {2'000});
  TableOptions options;
  options.by = "shapes";
  EXPECT_FALSE(contains(builder.report().table(options), "(model)"));
  options.by = "op, module";
  EXPECT_TRUE(contains(builder.report().table(options), "(model)"));
}

TEST(Table, ListsWhatWastesMostAndMarksContainers) {
  testing::ProfileBuilder builder;
  const auto block = builder.module("block", "Block");
  const auto leaf = builder.module("block.leaf", "Linear", block);
  builder.op("aten::matmul", block, testing::work_of(1'000'000, 10), 9'000);
  builder.op("aten::linear", leaf, testing::work_of(1'000'000, 10), 2'000);
  builder.time(block, {9'000});
  builder.time(leaf, {2'000});
  const std::string table = builder.report().table();
  const auto lines = lines_of(table);
  EXPECT_TRUE(contains(table, "  block *  "));
  EXPECT_FALSE(contains(table, "leaf *"));
  EXPECT_TRUE(contains(table, "*: wastes more in ops of its own"));
  EXPECT_NE(std::ranges::find(lines, "block          aten::matmul  9.00µs  compute fp32  11.1%  8.00µs     72.7%"),
            lines.end())
      << table;
  EXPECT_FALSE(contains(builder.report().table({.by = "phase"}), "most waste"));
}

TEST(Table, RatesOfIntegersSayTheirUnit) {
  testing::ProfileBuilder builder;
  builder.op("quantized::linear", kModel, testing::work_of(2'000'000, 1'000, 0, DType::int8), 1'000);
  builder.time(kModel, {1'000});
  const std::string table = builder.report().table();
  EXPECT_TRUE(contains(table, "2.00Top/s")) << table;
  EXPECT_TRUE(contains(table, "int ops"));
  EXPECT_TRUE(contains(table, "AI and rates are theirs, in op/s"));
  EXPECT_FALSE(contains(testing::sample_resnet50().table(), "int ops"));
}

TEST(Table, KeepsItsWidth) {
  for (const std::int64_t width : {80, 100, 120, 200}) {
    for (const char* by : {"module", "op", "op, phase", "kernel"}) {
      for (const Report& report : {testing::sample_cooperative(), testing::simulated_convnet()}) {
        for (const auto& line : lines_of(report.table({.by = by, .width = width}))) {
          EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
        }
      }
    }
  }
}

// resnet50 has 3, 4, 6 and 3 blocks, of which the first of each stage differs from the others.
TEST(Table, EqualSiblingsAreOneLineWithTheirNumber) {
  const Report report = testing::sample_resnet50();
  const std::string table = report.table();
  EXPECT_EQ(row_lines(table).size(), 1U + 10U + 3U + 2U + 2U + 3U) << table;
  EXPECT_TRUE(contains(table, "    1-5 x5  Bottleneck")) << table;
  EXPECT_TRUE(
      contains(report.table({.width = 0}),
               "; x3: the mean of 3 equal modules, under \"most waste in\" their sum, .expand = true shows each; "));
  const std::string flat = report.table({.sort = "time"});
  EXPECT_EQ(row_lines(flat).size(), 60U);  // a flat list has them all
  EXPECT_FALSE(contains(row_lines(flat)[0], " x"));
  EXPECT_TRUE(contains(report.table({.speech = Speech::python}), "expand=True shows each"));
  EXPECT_TRUE(contains(report.table({.speech = Speech::shell}), "--expand shows each"));
  const std::string expanded = report.table({.expand = true});
  EXPECT_FALSE(contains(expanded, "1-5 x5  Bottleneck") || contains(expanded, "siblings"));
  EXPECT_EQ(row_lines(expanded).size(), 1U + 10U + 16U);
  EXPECT_TRUE(contains(expanded, std::to_string(report.rows().size() - 27) + " more rows below depth 2"));
  EXPECT_EQ(row_lines(report.table({.depth = 0})).size(), 1U);
  EXPECT_EQ(row_lines(report.table({.depth = 9, .expand = true})).size(), report.rows().size());
}

TEST(Table, ASlowSiblingIsNamedThoughItIsFolded) {
  testing::ProfileBuilder builder;
  for (int i = 0; i < 80; ++i) {
    const ModuleId layer = builder.module("layer" + std::to_string(i), "Linear");
    const std::int64_t ns = i == 17 ? 2'100 : 1'000;
    builder.op("aten::linear", layer, testing::work_of(100'000, 1'000), ns);
    builder.time(layer, {ns});
  }
  const std::string table = builder.report().table();
  EXPECT_TRUE(
      contains(table, "siblings  layer0-79 x80: 1.01 µs each, spread 110%, slowest layer17, 2.10x the median\n"))
      << table;
  EXPECT_EQ(row_lines(table).size(), 2U);
}

TEST(Table, FlatModelsShowWhatMattersMost) {
  testing::ProfileBuilder builder;
  for (int i = 0; i < 100; ++i) {
    const ModuleId layer = builder.module("layer" + std::to_string(i), "Linear");
    builder.op("aten::linear", layer, testing::work_of(1'000 * (i + 1), 1'000), 100 * (i + 1));
    builder.time(layer, {1'000 * (i + 1)});
  }
  const std::string table = builder.report().table();
  EXPECT_EQ(row_lines(table).size(), 60U);
  EXPECT_TRUE(contains(table, "layer99"));
  EXPECT_FALSE(contains(table, "layer40 "));
  EXPECT_TRUE(contains(table, "41 more rows smaller than these"));
  EXPECT_EQ(row_lines(builder.report().table({.depth = 1})).size(), 101U);
}

TEST(Table, SortsFlatWithFullPathsLargestFirstAndUnknownFiguresLast) {
  const Report report = testing::sample_resnet50();
  EXPECT_TRUE(row_lines(report.table({.sort = "module"}))[1].starts_with("avgpool "));
  const auto rows = row_lines(report.table({.sort = "self_flops"}));
  EXPECT_TRUE(rows[0].starts_with("layer1.") || rows[0].starts_with("conv1")) << rows[0];
  EXPECT_TRUE(row_lines(testing::sample_cooperative().table({.sort = "time"})).back().starts_with("unused_classifier"));
  const std::string by_op = report.table({.by = "op", .limit = 2});
  EXPECT_TRUE(row_lines(by_op)[0].starts_with("aten::conv2d "));
  EXPECT_EQ(row_lines(by_op).size(), 2U);
  EXPECT_TRUE(contains(by_op, "5 more rows"));
}

TEST(Table, ShowsTheColumnsRequested) {
  const auto lines = lines_of(testing::sample_toy().table({.columns = {"calls", "self_time", "ai", "FLOP/s"}}));
  EXPECT_NE(std::find(lines.begin(), lines.end(), "module  calls  self time     AI  FLOP/s"), lines.end());
}

TEST(Table, RefusesUnknownColumnsAndSortKeysOfEveryKind) {
  const Report report = testing::sample_toy();
  for (const char* by : {"module", "op", "op, phase", "kernel", "scope", "rank", "collective"}) {
    for (const auto& options :
         {TableOptions{.columns = {"bogus"}, .by = by}, TableOptions{.sort = "bogus", .by = by}}) {
      try {
        report.table(options);
        ADD_FAILURE() << by;
      } catch (const std::invalid_argument& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("no column 'bogus': the closest are ")) << error.what();
      }
    }
  }
}

TEST(Table, WithoutTimesTheirColumnsGoAndItSaysWhy) {
  const std::string table = testing::sample_resnet50(false).table();
  for (const char* gone : {"time ", "FLOP/s", "%roof", "wasted", "bound"}) {
    EXPECT_FALSE(contains(row_lines("─\n" + table)[0] + lines_of(table)[3], gone)) << gone;
  }
  EXPECT_TRUE(contains(table, "counted only: no run was timed"));
}

TEST(Table, WithoutRoofsItSaysSo) {
  testing::ProfileBuilder builder;
  builder.data.roofs = {};
  builder.op("aten::relu", kModel, testing::work_of(100, 100), 50);
  builder.time(kModel, {100});
  const std::string table = builder.report().table();
  EXPECT_FALSE(contains(table, "%roof"));
  EXPECT_TRUE(contains(table, "none given"));
}

TEST(Table, MarksLowerLimitsAndInferredRows) {
  const std::string table = testing::sample_cooperative().table();
  EXPECT_TRUE(contains(table, ">=63.9M"));
  EXPECT_TRUE(contains(table, "~scripted"));
  EXPECT_TRUE(contains(table, "PARTIAL"));
  EXPECT_TRUE(contains(table, "cooperative_ops::warp_affine_features (7 calls, "));
  EXPECT_TRUE(contains(table, "spconv::SubMConv3d (12 calls)"));
  EXPECT_TRUE(contains(table, "never called: auxiliary_head, unused_classifier (3 modules"));
}

TEST(Table, EmptyReportsPrint) {
  const std::string table = testing::ProfileBuilder().report().table();
  EXPECT_TRUE(contains(table, "\nNet "));
  EXPECT_FALSE(contains(table, "\ntotal"));  // which the only row is
  EXPECT_TRUE(contains(testing::ProfileBuilder().report().table({.by = "op"}), "total"));
  std::ostringstream out;
  out << testing::sample_toy();
  EXPECT_EQ(out.str(), testing::sample_toy().table());
}

}  // namespace
}  // namespace roofprof
