#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>

#include "report/golden.h"
#include "report/sample_models.h"
#include "report/tables.h"
#include "report/utf8.h"

namespace roofprof {
namespace {

using testing::contains;
using testing::lines_of;
using testing::row_lines;

std::string table_of(const Report& report, const std::string& sort, std::vector<std::string> columns = {}) {
  TableOptions options;
  options.sort = sort;
  options.columns = std::move(columns);
  return report.table(options);
}

TEST(Report, NeedsDataThatDoesNotContradictItself) {
  EXPECT_THROW(make_report(nullptr, {}), std::invalid_argument);
  EXPECT_THROW(make_report(std::make_shared<Profile>(), {}), std::invalid_argument);
}

TEST(TableLayout, MatchesTheGoldenFiles) {
  TableOptions by_op;
  by_op.by = "op";
  TableOptions narrow;
  narrow.width = 80;
  testing::expect_golden("table_resnet50.txt", testing::sample_resnet50().table());
  testing::expect_golden("table_resnet50_ops.txt", testing::sample_resnet50().table(by_op));
  testing::expect_golden("table_transformer.txt", testing::sample_transformer().table());
  testing::expect_golden("table_transformer_counted.txt", testing::sample_transformer(false).table());
  testing::expect_golden("table_toy.txt", testing::sample_toy().table());
  testing::expect_golden("table_cooperative.txt", testing::sample_cooperative().table());
  testing::expect_golden("table_cooperative_narrow.txt", testing::sample_cooperative().table(narrow));
}

TEST(Table, ShowsNotesByTheirLevelAndEqualOnesOnceWithTheirPlaces) {
  testing::ProfileBuilder builder;
  auto& notes = builder.data.notes;
  add_note(notes, "simulated-device", "no GPU ran");
  for (const auto* place : {"", "b", "c", "d"}) add_note(notes, "cost-failed", "no idea", {place});
  for (int i = 0; i < 3; ++i) add_note(notes, "kernels-missing", "a buffer was full");
  for (int i = 0; i < 3; ++i) add_note(notes, "replayed", "no device ran");
  TableOptions options;
  options.width = 200;
  const std::string table = builder.report().table(options);
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
  TableOptions options;
  options.width = 80;
  const std::string table = builder.report().table(options);
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

TEST(Table, GoesWithoutItsLegend) {
  TableOptions options;
  options.legend = false;
  for (const char* by : {"module", "op"}) {
    options.by = by;
    const std::string table = testing::sample_resnet50().table(options);
    EXPECT_FALSE(contains(table, "columns  ")) << table;
    EXPECT_TRUE(contains(table, "\nroofs  "));
  }
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
  TableOptions by_phase;
  by_phase.by = "phase";
  EXPECT_FALSE(contains(builder.report().table(by_phase), "most waste"));
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
    for (const char* by : {"module", "op", "op, phase", "dtype"}) {
      TableOptions options;
      options.width = width;
      options.by = by;
      for (const Report& report : {testing::sample_resnet50(), testing::sample_cooperative()}) {
        for (const auto& line : lines_of(report.table(options))) {
          EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
        }
      }
    }
  }
}

TEST(Table, ShowsEveryUsualColumnAt120) {
  for (const Report& report : {testing::sample_resnet50(), testing::sample_transformer()}) {
    const std::string table = report.table();
    for (const char* heading : {"module ", "type ", "params ", "MACs ", "FLOPs ", "bytes ", "AI ", "time ", "FLOP/s ",
                                "B/s ", "bound ", "%roof ", "wasted\n"}) {
      EXPECT_TRUE(contains(table, heading)) << heading << "\n" << table;
    }
    EXPECT_FALSE(contains(table, "no room"));
  }
}

TEST(Table, StaysReadableAndSaysWhatItHides) {
  TableOptions options;
  options.expand = true;
  const std::string table = testing::sample_resnet50().table(options);
  const auto shown = row_lines(table);
  EXPECT_EQ(shown.size(), 1U + 10U + 16U);
  const auto hidden = testing::sample_resnet50().rows().size() - shown.size();
  EXPECT_TRUE(contains(table, std::to_string(hidden) + " more rows below depth 2"));
}

// resnet50 has 3, 4, 6 and 3 blocks, of which the first of each stage differs from the others.
TEST(Table, EqualSiblingsAreOneLineWithTheirNumber) {
  const Report report = testing::sample_resnet50();
  const std::string table = report.table();
  EXPECT_EQ(row_lines(table).size(), 1U + 10U + 3U + 2U + 2U + 3U) << table;
  EXPECT_TRUE(contains(table, "    1-5 x5  Bottleneck")) << table;
  TableOptions options;
  options.width = 0;
  EXPECT_TRUE(
      contains(report.table(options),
               "; x3: the mean of 3 equal modules, under \"most waste in\" their sum, .expand = true shows each; "));
  options.sort = "time";
  EXPECT_EQ(row_lines(report.table(options)).size(), 60U);  // a flat list has them all
  EXPECT_FALSE(contains(row_lines(report.table(options))[0], " x"));
  options = {};
  options.speech = Speech::python;
  EXPECT_TRUE(contains(report.table(options), "expand=True shows each"));
  options.speech = Speech::shell;
  EXPECT_TRUE(contains(report.table(options), "--expand shows each"));
  options.expand = true;
  EXPECT_FALSE(contains(report.table(options), "1-5 x5  Bottleneck"));
  EXPECT_FALSE(contains(report.table(options), "siblings"));
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
  TableOptions all;
  all.depth = 1;
  EXPECT_EQ(row_lines(builder.report().table(all)).size(), 101U);
}

TEST(Table, DepthShowsWhatWasAskedFor) {
  TableOptions options;
  options.depth = 0;
  EXPECT_EQ(row_lines(testing::sample_resnet50().table(options)).size(), 1U);
  options.depth = 9;
  options.expand = true;
  EXPECT_EQ(row_lines(testing::sample_resnet50().table(options)).size(), testing::sample_resnet50().rows().size());
}

TEST(Table, SortsFlatWithFullPathsLargestFirst) {
  const Report report = testing::sample_resnet50();
  for (const char* sort : {"wasted_time", "time", "FLOPs", "self_flops", "percent_of_roof", "params"}) {
    EXPECT_FALSE(row_lines(table_of(report, sort)).empty()) << sort;
  }
  const auto rows = row_lines(table_of(report, "self_flops"));
  EXPECT_TRUE(rows[0].starts_with("layer1.") || rows[0].starts_with("conv1")) << rows[0];
  const auto by_path = row_lines(table_of(report, "module"));
  EXPECT_TRUE(by_path[1].starts_with("avgpool ")) << by_path[1];
}

TEST(Table, UnknownFiguresSortLast) {
  const auto rows = row_lines(table_of(testing::sample_cooperative(), "time"));
  EXPECT_TRUE(rows.back().starts_with("unused_classifier")) << rows.back();
}

TEST(Table, ShowsTheColumnsAskedFor) {
  const auto lines = lines_of(table_of(testing::sample_toy(), "", {"calls", "self_time", "ai", "FLOP/s"}));
  EXPECT_NE(std::find(lines.begin(), lines.end(), "module  calls  self time     AI  FLOP/s"), lines.end());
}

TEST(Table, UnknownColumnsNameTheKnownOnes) {
  const Report report = testing::sample_toy();
  for (const auto& [sort, columns] : {std::pair<std::string, std::vector<std::string>>{"speed", {}}, {"", {"speed"}}}) {
    try {
      (void)table_of(report, sort, columns);
      FAIL() << "no exception";
    } catch (const std::invalid_argument& error) {
      EXPECT_TRUE(contains(error.what(), "'speed'")) << error.what();
      EXPECT_TRUE(contains(error.what(), "percent_of_roof, percent_of_roof_counted, wasted_time")) << error.what();
    }
  }
  TableOptions options;
  options.by = "layer";
  EXPECT_THROW((void)report.table(options), std::invalid_argument);
}

TEST(Table, RefusesUnknownColumnsAndSortKeysOfEveryKind) {
  const Report report = testing::sample_transformer();
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

Report merged_of_three() {
  testing::ProfileBuilder profile;
  profile.op("aten::linear", kModel, testing::work_of(1'000, 500));
  auto& ranks = profile.data.origin.kind.emplace<MergedRanks>().ranks;
  ranks.resize(3);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = static_cast<std::int64_t>(i);
    ranks[i].device = "cpu";
    ranks[i].compute_ns = std::array<std::int64_t, 3>{2'000'000, 3'500'000, 1'000'000}.at(i);
    ranks[i].bytes = 1'200;
  }
  ranks[2].partial = true;
  return profile.report();
}

TEST(Table, OfRanksSortsAndTakesColumnsAsOthersDo) {
  const Report report = merged_of_three();
  EXPECT_EQ(report.table({.sort = "compute", .columns = {"device", "bytes"}, .by = "rank", .rows_only = true}),
            "       rank  device   bytes  compute\n"
            "────────────────────────────────────\n"
            "          1  cpu     1.20kB   3.50ms\n"
            "          0  cpu     1.20kB   2.00ms\n"
            "2 (partial)  cpu     1.20kB   1.00ms\n");
  EXPECT_EQ(report.table({.columns = {"host", "waiting"}, .by = "rank", .limit = 1, .rows_only = true}),
            "rank  host  waiting\n"
            "───────────────────\n"
            "   0            n/a\n"
            "          2 more rows after these: .limit = ... shows more\n");
}

TEST(Table, OfRanksHasTheColumnsThatSomeRankCanFill) {
  const Report report = merged_of_three();
  EXPECT_EQ(default_columns_of(report, "rank"), (std::vector<std::string>{"device", "macs", "bytes"}));
  EXPECT_TRUE(default_columns_of(report, "collective").empty());
}

TEST(Table, WithoutTimesTheirColumnsGoAndItSaysWhy) {
  const std::string table = testing::sample_transformer(false).table();
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

TEST(Table, OpsAreRankedByWastedTime) {
  TableOptions options;
  options.by = "op";
  const auto rows = row_lines(testing::sample_resnet50().table(options));
  EXPECT_TRUE(rows[0].starts_with("aten::conv2d ")) << rows[0];
  EXPECT_EQ(rows.size(), 7U);
  options.limit = 2;
  const std::string limited = testing::sample_resnet50().table(options);
  EXPECT_EQ(row_lines(limited).size(), 2U);
  EXPECT_TRUE(contains(limited, "5 more rows"));
}

TEST(Table, EmptyReportsPrint) {
  const std::string table = testing::ProfileBuilder().report().table();
  EXPECT_TRUE(contains(table, "\nNet "));
  EXPECT_FALSE(contains(table, "\ntotal"));  // which the only row is
  TableOptions options;
  options.by = "op";
  EXPECT_TRUE(contains(testing::ProfileBuilder().report().table(options), "total"));
  std::ostringstream out;
  out << testing::sample_toy();
  EXPECT_EQ(out.str(), testing::sample_toy().table());
}

}  // namespace
}  // namespace roofprof
