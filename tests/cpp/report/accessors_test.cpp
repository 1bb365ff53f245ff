// What a program reads of a report, and how wide it has it printed.

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "analysis/whole/analysis.h"
#include "commas.h"
#include "report/sample_models.h"
#include "roofprof/report.h"

namespace roofprof {
namespace {

// Nobody outside makes a report of anything but a file, and of a report that nobody keeps nothing is referred to.
static_assert(!std::is_constructible_v<Report, std::shared_ptr<const Profile>>);
static_assert(!std::is_reference_v<decltype(std::declval<Report>().rows())>);
static_assert(!std::is_reference_v<decltype(std::declval<Report>().row(""))>);
static_assert(!std::is_reference_v<decltype(std::declval<Report>().coverage())>);

TEST(Texts, FollowNoLocale) {
  const auto texts = [] {
    const Report report = testing::sample_resnet50();
    return report.table() + report.table({.by = "op"}) + report.to_json() + report.to_csv();
  };
  const std::string before = texts();
  const testing::WithCommas locale;
  EXPECT_EQ(texts(), before);
  EXPECT_EQ(Report::from_json_text(testing::sample_resnet50().to_json()).total().macs,
            testing::sample_resnet50().total().macs);
}

TEST(Names, OfFiguresAreThoseOfColumnsAndOfJson) {
  const Report report = testing::sample_resnet50();
  EXPECT_EQ(report.total().figure("self_time"), report.total().figure("self_time_ns"));
  EXPECT_EQ(report.total().figure("time"), static_cast<double>(report.total().time_ns.value()));
  EXPECT_EQ(report.table({.sort = "time_ns", .columns = {"self_time_ns"}}),
            report.table({.sort = "time", .columns = {"self_time"}}));
}

TEST(Groups, AreFoundByTheirKeysAndAddUpToTheSame) {
  const Report report = testing::sample_resnet50();
  EXPECT_EQ(report.by_module_and_operator().size(), report.group({"module", "op"}).size());
  EXPECT_THROW(report.group({"colour"}), std::invalid_argument);
  const auto sum = [](const auto& by) {
    std::int64_t macs = 0;
    for (const auto& [key, row] : by) macs += row.macs;
    return macs;
  };
  const std::int64_t total = report.total().macs;
  EXPECT_EQ(sum(report.by_operator()), total);
  EXPECT_EQ(sum(report.by_module()), total);
  EXPECT_EQ(sum(report.by_phase()), total);
  for (const auto& [key, row] : report.by_module_and_operator()) {
    EXPECT_EQ(row.module, key.first);
    EXPECT_EQ(row.op, key.second);
  }
}

TEST(Width, OfZeroIsAsWideAsItTakes) {
  const Report report = testing::sample_cooperative();
  const std::string wide = report.table({.width = 0});
  EXPECT_EQ(wide, report.table({.width = 100'000}));
  EXPECT_NE(report.table({.width = 80}).find("no room for"), std::string::npos);
  EXPECT_EQ(wide.find("no room for"), std::string::npos);
  EXPECT_EQ(wide.find("…"), std::string::npos);
}

TEST(Width, AndOtherOptionsAreNotNegative) {
  const Report report = testing::sample_toy();
  const auto refusal = [&](const TableOptions& options) -> std::string {
    try {
      report.table(options);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.width = -1}), "width must be 0 or more, not -1");
  EXPECT_EQ(refusal({.depth = -1}), "depth must be 0 or more, not -1");
  EXPECT_EQ(refusal({.limit = -7}), "limit must be 0 or more, not -7");
}

TEST(Copies, ShareWhatIsDerivedAndThreadsMayReadThem) {
  const Report report = testing::sample_resnet50();
  const Report copy = report;  // NOLINT(performance-unnecessary-copy-initialization)
  const std::string expected = testing::sample_resnet50().table();
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  threads.reserve(texts.size());
  for (auto& text : texts) threads.emplace_back([&] { text = report.table(); });
  for (auto& thread : threads) thread.join();
  for (const auto& text : texts) EXPECT_EQ(text, expected);
  EXPECT_EQ(&copy.rows(), &report.rows());
  EXPECT_EQ(&analysis_of(copy).findings(), &analysis_of(report).findings());
}

TEST(Parents, AreOneLevelAbove) {
  const Report report = testing::sample_resnet50();
  const auto& folded = analysis_of(report).folded_rows();
  ASSERT_LT(folded.size(), report.rows().size());
  for (std::size_t i = 0; i < folded.size(); ++i) {
    const auto& [row, at] = std::tie(folded[i].mean, folded[i].parent);
    ASSERT_EQ(at >= 0, row.depth > 0) << row.path;
    if (at < 0) continue;
    const auto& parent = folded.at(static_cast<std::size_t>(at)).mean;
    EXPECT_EQ(parent.depth + 1, row.depth) << row.path;
    EXPECT_TRUE(parent.path.empty() || row.path.starts_with(parent.path + ".")) << row.path;
  }
}

}  // namespace
}  // namespace roofprof
