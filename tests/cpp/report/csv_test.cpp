#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/fields.h"
#include "report/sample_models.h"

namespace roofprof {
namespace {

using Record = std::vector<std::string>;

// RFC 4180 as it is written, independent of the writer.
std::vector<Record> parse_csv(const std::string& text) {
  std::vector<Record> records(1, Record(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        records.back().back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        records.back().back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      records.back().emplace_back();
    } else if (c == '\n') {
      records.emplace_back(1);
    } else if (c != '\r') {
      records.back().back() += c;
    }
  }
  records.pop_back();
  return records;
}

std::size_t column(const std::vector<Record>& csv, const std::string& name) {
  const auto found = std::find(csv[0].begin(), csv[0].end(), name);
  EXPECT_NE(found, csv[0].end()) << name;
  return static_cast<std::size_t>(found - csv[0].begin());
}

TEST(Csv, HasALineForEachRowAndACellForEachColumn) {
  const Report report = testing::sample_cooperative();
  const auto csv = parse_csv(report.to_csv());
  ASSERT_EQ(csv.size(), report.rows().size() + 1);
  for (const auto& record : csv) EXPECT_EQ(record.size(), csv[0].size());
  EXPECT_EQ(csv[2][column(csv, "path")], report.rows()[1].path);
}

TEST(Csv, SelfColumnsAddUpToTheTotal) {
  for (const Report& report : {testing::sample_resnet50(), testing::sample_cooperative()}) {
    const auto csv = parse_csv(report.to_csv());
    const auto sum = [&](const std::string& name) {
      std::int64_t total = 0;
      for (std::size_t i = 1; i < csv.size(); ++i) {
        const auto& cell = csv[i][column(csv, name)];
        total += cell.empty() ? 0 : std::stoll(cell);
      }
      return total;
    };
    EXPECT_EQ(sum("self_macs"), report.total().macs);
    EXPECT_EQ(sum("self_flops"), report.total().flops);
    EXPECT_EQ(sum("self_bytes"), report.total().bytes);
    EXPECT_EQ(sum("self_time_ns"), report.total().time_ns);
    EXPECT_EQ(sum("self_lower_bound_time_ns"), report.total().lower_bound_time_ns);
  }
}

TEST(Csv, OfGroupsHasAColumnForEachKeyAndAddsUpToTheTotal) {
  const Report report = testing::sample_transformer(true);
  const auto groups = report.group({"op", "phase"});
  const auto csv = parse_csv(report.to_csv("op, phase"));
  ASSERT_EQ(csv.size(), groups.size() + 1);
  EXPECT_EQ(csv[0][0] + " " + csv[0][1] + " " + csv[0][2], "op phase calls");
  std::int64_t macs = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    EXPECT_EQ(csv[i + 1][0], groups[i].op);
    EXPECT_EQ(csv[i + 1][1], name_of(groups[i].phase.value()));
    macs += std::stoll(csv[i + 1][column(csv, "macs")]);
  }
  EXPECT_EQ(macs, report.total().macs);
}

TEST(Csv, UnknownFiguresAreEmptyAndKnownZerosAreNot) {
  const auto csv = parse_csv(testing::sample_transformer(false).to_csv());
  EXPECT_EQ(csv[1][column(csv, "time_ns")], "");
  EXPECT_EQ(csv[1][column(csv, "percent_of_roof")], "");
  EXPECT_EQ(csv[1][column(csv, "self_flops")], "0");
}

TEST(Csv, QuotesWhatWouldBreakALine) {
  testing::ProfileBuilder builder;
  const ModuleId odd = builder.module("a,\"b\"\nc", "Type");
  builder.data.tree.modules[static_cast<std::size_t>(odd)].input_shapes = {{1, 2}, {3}};
  const auto csv = parse_csv(builder.report().to_csv());
  ASSERT_EQ(csv.size(), 3U);
  EXPECT_EQ(csv[2][column(csv, "path")], "a,\"b\"\nc");
  EXPECT_EQ(csv[2][column(csv, "input_shapes")], "1x2, 3");
}

// As a spreadsheet takes them: OWASP's list of what begins a formula.
TEST(Csv, NoTextIsAFormula) {
  testing::ProfileBuilder builder;
  for (const char* name : {"=1+1", "+x", "-x", "@x", "\tx", "\rx", "'x", "x=1"}) builder.module(name, name);
  const auto csv = parse_csv(builder.report().to_csv());
  std::vector<std::string> paths;
  for (std::size_t row = 2; row < csv.size(); ++row) {
    paths.push_back(csv[row][column(csv, "path")]);
    EXPECT_EQ(csv[row][column(csv, "type")], paths.back());
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"'=1+1", "'+x", "'-x", "'@x", "'\tx", "'\rx", "''x", "x=1"}));
}

TEST(Csv, NamesCarryTheirUnits) {
  const auto csv = parse_csv(testing::sample_toy().to_csv());
  for_each_figure([&](std::string_view name, Unit unit, auto) {
    column(csv, key_of(name, unit));
    column(csv, "self_" + key_of(name, unit));
  });
  column(csv, "time_ns");
  column(csv, "param_bytes");
}

}  // namespace
}  // namespace roofprof
