// What a report derives of its profile, and how often.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "analysis/derivations.h"
#include "analysis/whole/analysis.h"
#include "report/sample_models.h"
#include "report/tables.h"
#include "roofprof/report.h"

namespace roofprof {
namespace {

std::vector<std::string> repeated(const DerivationLog& log) {
  std::vector<std::string> parts;
  for (const auto& [part, count] : log.counts()) {
    if (count > 1) parts.push_back(part.first + ": " + std::to_string(count));
  }
  return parts;
}

bool derived(const DerivationLog& log, const std::string& part) {
  return std::ranges::any_of(log.counts(), [&](const auto& entry) { return entry.first.first == part; });
}

// Everything that prints, writes or shows a report.
void show_everything(const Report& report) {
  for (const char* by : {"module", "op", "kernel", "scope", "rank", "collective"}) {
    for (const bool expand : {false, true}) report.table({.by = by, .expand = expand});
    report.table({.by = by});
  }
  report.to_json();
  report.to_csv();
  for (const char* part : {"heading", "rows", "legend", "roofs", "coverage"}) part_of_report(report, part, {});
  report.analysis().hotspots();
  report.analysis().wasting_themselves();
  report.siblings();
  report.findings();
  report.collectives();
  report.language_model();
}

TEST(Derivations, NoPartIsDerivedTwiceHoweverAReportIsShown) {
  for (const auto& report : {testing::sample_resnet50(), testing::sample_transformer(), testing::sample_toy()}) {
    const DerivationLog log;
    show_everything(report);
    show_everything(report);
    EXPECT_EQ(repeated(log), std::vector<std::string>{});
    for (const char* part : {"rows", "total", "kernels", "regions", "coverage", "folding", "hotspots", "findings",
                             "collectives", "slow rank", "late rank", "language model"}) {
      EXPECT_TRUE(derived(log, part)) << part;
    }
  }
}

TEST(Derivations, NothingIsDerivedThatNobodyAskedFor) {
  const Report report = testing::sample_resnet50();
  const DerivationLog log;
  EXPECT_FALSE(report.ceilings().empty());
  EXPECT_TRUE(log.counts().empty());
  EXPECT_FALSE(report.rows().empty());
  EXPECT_FALSE(derived(log, "folding"));
}

TEST(Derivations, CopiesOfAReportShareThem) {
  const Report report = testing::sample_transformer();
  const DerivationLog log;
  const std::string text = report.table();
  const Report copy = report;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(copy.table(), text);
  EXPECT_EQ(repeated(log), std::vector<std::string>{});
}

TEST(Analysis, ThreadsMayReadOneReport) {
  const Report report = testing::sample_transformer();
  const std::string expected = testing::sample_transformer().table();
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  threads.reserve(texts.size());
  for (auto& text : texts) threads.emplace_back([&] { text = report.table(); });
  for (auto& thread : threads) thread.join();
  for (const auto& text : texts) EXPECT_EQ(text, expected);
}

TEST(Analysis, ParentsAreTheRowsOneLevelAboveThatPathsLieIn) {
  for (const auto& report : {testing::sample_resnet50(), testing::sample_transformer(), testing::sample_toy()}) {
    const auto& rows = report.rows();
    const auto& parents = report.parents();
    ASSERT_EQ(parents.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].depth == 0) {
        EXPECT_EQ(parents[i], -1) << rows[i].path;
        continue;
      }
      ASSERT_GE(parents[i], 0) << rows[i].path;
      ASSERT_LT(parents[i], static_cast<std::int64_t>(i)) << rows[i].path;
      const auto& parent = rows[static_cast<std::size_t>(parents[i])];
      EXPECT_EQ(parent.depth + 1, rows[i].depth) << rows[i].path;
      EXPECT_TRUE(parent.path.empty() || rows[i].path.starts_with(parent.path + ".")) << rows[i].path;
    }
  }
}

TEST(Analysis, ParentsOfFoldedRowsAreTheLinesOneLevelAbove) {
  const Report report = testing::sample_transformer();
  const auto& folded = report.analysis().folded_rows();
  ASSERT_LT(folded.size(), report.rows().size());
  for (std::size_t i = 0; i < folded.size(); ++i) {
    if (folded[i].mean.depth == 0) {
      EXPECT_EQ(folded[i].parent, -1) << folded[i].mean.path;
      continue;
    }
    ASSERT_GE(folded[i].parent, 0) << folded[i].mean.path;
    ASSERT_LT(folded[i].parent, static_cast<std::int64_t>(i)) << folded[i].mean.path;
    const auto& parent = folded[static_cast<std::size_t>(folded[i].parent)].mean;
    EXPECT_EQ(parent.depth + 1, folded[i].mean.depth) << folded[i].mean.path;
    EXPECT_TRUE(parent.path.empty() || folded[i].mean.path.starts_with(parent.path + ".")) << folded[i].mean.path;
  }
}

}  // namespace
}  // namespace roofprof
