// What a program reads of a report, and how wide it has it printed.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "commas.h"
#include "report/sample_models.h"
#include "roofprof/report.h"

namespace roofprof {
namespace {

// Nobody outside makes a report of anything but a file.
static_assert(!std::is_constructible_v<Report, std::shared_ptr<const Profile>>);

// Of a report that nobody keeps nothing is referred to.
#define ROOFPROF_BY_VALUE(call) static_assert(!std::is_reference_v<decltype(std::declval<Report>().call)>)
ROOFPROF_BY_VALUE(rows());
ROOFPROF_BY_VALUE(total());
ROOFPROF_BY_VALUE(row(""));
ROOFPROF_BY_VALUE(regions());
ROOFPROF_BY_VALUE(kernels());
ROOFPROF_BY_VALUE(ranks());
ROOFPROF_BY_VALUE(missing_ranks());
ROOFPROF_BY_VALUE(coverage());
ROOFPROF_BY_VALUE(ceilings());
ROOFPROF_BY_VALUE(environment());
ROOFPROF_BY_VALUE(step_times_ns());
ROOFPROF_BY_VALUE(run_times_ns());
ROOFPROF_BY_VALUE(bare_times_ns());
ROOFPROF_BY_VALUE(prediction());

TEST(Temporaries, GiveWhatTheReportHas) {
  const Report report = testing::sample_resnet50();
  std::size_t rows = 0;
  for (const auto& row : testing::sample_resnet50().rows()) rows += row.depth >= 0 ? 1 : 0;
  EXPECT_EQ(rows, report.rows().size());
  EXPECT_EQ(testing::sample_resnet50().total().macs, report.total().macs);
  EXPECT_EQ(testing::sample_resnet50().row("").macs, report.row("").macs);
}

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

TEST(RowsOnly, AreTheRowsOfTheTable) {
  const Report report = testing::sample_resnet50();
  for (const auto* by : {"module", "op"}) {
    const std::string rows = report.table({.by = by, .rows_only = true});
    EXPECT_NE(report.table({.by = by}).find(rows), std::string::npos) << rows;
    EXPECT_EQ(rows.find("roofprof"), std::string::npos);
    EXPECT_EQ(rows.find("columns"), std::string::npos);
  }
}

TEST(Names, OfFiguresAreThoseOfColumnsAndOfJson) {
  const Report report = testing::sample_resnet50();
  const auto& total = report.total();
  EXPECT_EQ(total.figure("time"), total.figure("time_ns"));
  EXPECT_EQ(total.figure("self_time"), total.figure("self_time_ns"));
  EXPECT_EQ(total.figure("time"), static_cast<double>(total.time_ns.value()));
  EXPECT_EQ(report.table({.sort = "time_ns"}), report.table({.sort = "time"}));
  EXPECT_EQ(report.table({.columns = {"self_time_ns"}}), report.table({.columns = {"self_time"}}));
}

TEST(Suggestions, AreNeverEmpty) {
  try {
    static_cast<void>(testing::sample_resnet50().row("x"));
    FAIL();
  } catch (const std::out_of_range& error) {
    EXPECT_EQ(std::string(error.what()).find("''"), std::string::npos) << error.what();
  }
}

TEST(Groups, AreNamedByLiteralsAndFoundByTheirKeys) {
  const Report report = testing::sample_resnet50();
  const std::vector<std::string> keys = {"module", "op"};
  const auto named = report.group({"module", "op"});
  ASSERT_EQ(named.size(), report.group(keys).size());
  EXPECT_EQ(report.by_module_and_operator().size(), named.size());
  EXPECT_THROW(report.group({"colour"}), std::invalid_argument);

  // Every way to group adds up to the same.
  const auto sum = [](const auto& by) {
    std::int64_t macs = 0;
    for (const auto& [key, row] : by) macs += row.macs;
    return macs;
  };
  const std::int64_t total = report.total().macs;
  EXPECT_EQ(sum(report.by_operator()), total);
  EXPECT_EQ(sum(report.by_module()), total);
  EXPECT_EQ(sum(report.by_module_and_operator()), total);
  EXPECT_EQ(sum(report.by_phase()), total);
  for (const auto& row : report.rows()) {
    if (row.self.macs == 0) continue;
    EXPECT_EQ(report.by_module().at(row.path).macs, row.self.macs) << row.path;
  }
  for (const auto& [key, row] : report.by_module_and_operator()) {
    EXPECT_EQ(row.module, key.first);
    EXPECT_EQ(row.op, key.second);
  }
}

TEST(Durations, OfRunsAreTheirNanoseconds) {
  const Report report = testing::sample_resnet50();
  ASSERT_EQ(report.run_times().size(), report.run_times_ns().size());
  for (std::size_t i = 0; i < report.run_times().size(); ++i) {
    EXPECT_EQ(report.run_times()[i].count(), report.run_times_ns()[i]);
  }
  EXPECT_EQ(report.bare_times().size(), report.bare_times_ns().size());
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(Width, OfZeroIsAsWideAsItTakes) {
  const Report report = testing::sample_cooperative();
  const std::string narrow = report.table({.width = 80});
  const std::string wide = report.table({.width = 0});
  EXPECT_EQ(wide, report.table({.width = 100'000}));
  EXPECT_NE(narrow.find("no room for"), std::string::npos);
  EXPECT_EQ(wide.find("no room for"), std::string::npos);
  EXPECT_EQ(wide.find("…"), std::string::npos);
  EXPECT_GT(longest_line(wide), longest_line(narrow));
  EXPECT_EQ(report.table({.by = "op", .width = 0}), report.table({.by = "op", .width = 100'000}));
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

}  // namespace
}  // namespace roofprof
