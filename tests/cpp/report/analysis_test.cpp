// What a report derives of its profile.

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "analysis/whole/analysis.h"
#include "report/sample_models.h"
#include "roofprof/report.h"

namespace roofprof {
namespace {

TEST(Analysis, CopiesOfAReportShareWhatIsDerived) {
  const Report report = testing::sample_transformer();
  const Report copy = report;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(&copy.rows(), &report.rows());
  EXPECT_EQ(&analysis_of(copy).findings(), &analysis_of(report).findings());
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
  const auto& folded = analysis_of(report).folded_rows();
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
