#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>

#include "core/fields.h"
#include "core/json/file.h"
#include "core/json/reader.h"
#include "core/profile.h"
#include "report/sample_device.h"
#include "report/sample_models.h"
#include "support/device_builder.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

// The keys of an object that stands on one line.
std::set<std::string> keys_of(JsonReader& json) {
  std::set<std::string> keys;
  json.begin_object();
  while (const auto key = json.next_key()) {
    keys.emplace(*key);
    json.skip();
  }
  return keys;
}

std::vector<std::set<std::string>> keys_of_rows(const std::string& text) {
  std::vector<std::set<std::string>> keys;
  JsonReader json(text);
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key != "rows") {
      json.skip();
      continue;
    }
    json.begin_array();
    while (json.next_item()) keys.push_back(keys_of(json));
  }
  return keys;
}

TEST(ReportJson, EveryRowHasEachFigureThatAnyKnows) {
  for (const Report& report :
       {testing::sample_toy(), testing::simulated_convnet(), testing::ProfileBuilder().report()}) {
    const auto rows = keys_of_rows(report.to_json());
    ASSERT_EQ(rows.size(), report.rows().size());
    for_each_figure([&](std::string_view name, Unit unit, auto member) {
      const auto known = [&](const Figures& figures) {
        if constexpr (requires { (figures.*member).has_value(); }) {
          return (figures.*member).has_value();
        } else {
          return true;
        }
      };
      bool any = known(report.total()) || known(report.total().self);
      for (const RooflineRow& row : report.rows()) any = any || known(row) || known(row.self);
      for (const auto& keys : rows) {
        EXPECT_EQ(keys.contains(key_of(name, unit)), any) << name;
        EXPECT_EQ(keys.contains("self_" + key_of(name, unit)), any && keys.contains("self_macs")) << name;
      }
    });
    for (std::size_t i = 0; i < rows.size(); ++i) {  // those of a row without children are its own
      const RooflineRow& row = report.rows()[i];
      const bool has_children = std::ranges::any_of(report.rows(), [&](const RooflineRow& other) {
        return row.path.empty() || other.path.starts_with(row.path + '.');
      });
      EXPECT_TRUE(has_children || !rows[i].contains("self_macs")) << row.path;
      EXPECT_TRUE(rows[i].contains("self_macs") || row.time_ns == row.self.time_ns) << row.path;
    }
  }
}

TEST(ReportJson, ReadsBackAsTheSameReport) {
  for (const Report& report : {testing::sample_toy(), testing::sample_cooperative(), testing::sample_resnet50(false),
                               testing::simulated_convnet(), testing::ProfileBuilder().report()}) {
    const std::string text = report.to_json();
    const Report again = Report::from_json_text(text);
    EXPECT_EQ(data_of(again), data_of(report));
    EXPECT_EQ(again.to_json(), text);
    EXPECT_EQ(again.table(), report.table());
  }
}

// A file of an earlier version tells by its kernels which ops launched nothing.
TEST(ReportJson, WhereOpsRanIsKnownOfFilesThatDoNotSayIt) {
  testing::DeviceProfileBuilder builder;
  const auto net = builder.module("net", "Net");
  const auto linear = builder.op_index("aten::linear", net, testing::work_of(2'000'000, 600'000));
  builder.op_index("aten::div", net, testing::work_of(0, 100'000));
  testing::RunBuilder run;
  run.kernel("gemm", run.owner(net, "aten::linear", linear), 0, 4'000);
  const auto written = builder.report_of({run.run}).to_json();
  const std::string key = ", \"off_device\": true";
  const auto at = written.find(key);
  ASSERT_NE(at, std::string::npos) << written;
  auto older = written;
  older.erase(at, key.size());
  ASSERT_EQ(older.find("off_device"), std::string::npos);
  EXPECT_EQ(Report::from_json_text(older).to_json(), written);
  EXPECT_EQ(Report::from_json_text(written).to_json(), written);
}

std::string problem_of(const std::string& text) {
  try {
    static_cast<void>(Report::from_json_text(text));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "(it was read)";
}

TEST(ReportJson, WhatIsNoReportIsRefusedInASentence) {
  EXPECT_EQ(problem_of("[]"), "not a roofprof report: its outermost value is not an object");
  EXPECT_EQ(problem_of("{}"), "not a roofprof report: it lacks the key 'schema_version'");
  const std::string trace = "not a roofprof report, but a trace: `roofprof import` makes a report of it";
  EXPECT_EQ(problem_of(R"({"schemaVersion": 1, "traceEvents": []})"), trace);
  EXPECT_TRUE(problem_of("\x1f\x8b\x08").starts_with("not a roofprof report, but packed by gzip: `roofprof import`"));
  EXPECT_TRUE(problem_of("SQLite format 3").starts_with("not a roofprof report, but a database of SQLite: `roofprof "));
  EXPECT_EQ(problem_of(R"({"model": 3, "schema_version": 7})"),
            "not a report of schema version 6, which this roofprof reads, but 7: read it with the roofprof that wrote "
            "it, or make it again (roofprof docs report#json)");
  EXPECT_EQ(problem_of(R"({"schema_version": 2, "ceilings": {}, "notes": []})"),
            "not a report, but a file of roofs (--ceilings takes it)");
  EXPECT_EQ(problem_of(R"({"schema_version": 2, "before": {}, "after": {}})"), "not a report, but a comparison of two");
  const std::string text = testing::sample_toy().to_json();
  EXPECT_TRUE(problem_of(text.substr(0, text.size() / 2)).starts_with("not a roofprof report: it is not JSON (line "));
  std::string spoiled = text;
  const std::string phase = "\"phase\": \"forward\"";
  spoiled.replace(spoiled.rfind(phase), phase.size(), "\"phase\": \"sideways\"");
  EXPECT_TRUE(problem_of(spoiled).ends_with(".phase' cannot be 'sideways'")) << problem_of(spoiled);
}

TEST(ReportJson, FilesAreWrittenAndReadByName) {
  const std::string path = ::testing::TempDir() + "/json_test_" + std::to_string(::getpid()) + ".json";
  const Report report = testing::sample_toy();
  report.write_json(path);
  EXPECT_EQ(read_whole_file(path), report.to_json());
  EXPECT_EQ(data_of(Report::from_json(path)), data_of(report));
  write_whole_file(path, "{}");
  try {
    static_cast<void>(Report::from_json(path));
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), path + ": not a roofprof report: it lacks the key 'schema_version'");
  }
  report.write_csv(path);
  EXPECT_EQ(read_whole_file(path), report.to_csv());
  std::filesystem::remove(path);
  EXPECT_THROW(static_cast<void>(Report::from_json(path)), std::runtime_error);
  EXPECT_THROW(report.write_json(path + "/missing/report.json"), std::runtime_error);
}

}  // namespace
}  // namespace roofprof
