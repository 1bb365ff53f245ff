#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/fields.h"
#include "report/json_check.h"
#include "report/json_writer.h"
#include "report/sample_models.h"

namespace roofprof {
namespace {

using testing::is_json;

TEST(JsonText, EscapesWhatMustBe) {
  EXPECT_EQ(json_quoted("plain µ"), "\"plain µ\"");
  EXPECT_EQ(json_quoted("a\"b\\c\n\r\t\x01\x7F"), R"("a\"b\\c\n\r\t\u0001\u007f")");
  EXPECT_EQ(json_quoted(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(json_quoted("a\xFFz\xC3"), R"("a\ufffdz\ufffd")");
}

TEST(JsonText, DoublesReadBackEqual) {
  for (const double value : {0.1, 1.0 / 3, 1e300, 5e-324, 105e9, -2.5}) {
    EXPECT_EQ(std::strtod(json_number(value).c_str(), nullptr), value);
  }
  EXPECT_EQ(json_number(1), "1.0");
  EXPECT_EQ(json_number(1e30), "1e+30");
  EXPECT_EQ(json_number(std::nan("")), "null");
  EXPECT_EQ(json_number(-std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonText, NestsObjectsAndArrays) {
  JsonWriter json;
  json.begin_object();
  json.member("none", std::optional<std::int64_t>());
  json.key("list");
  json.begin_array();
  json.break_line();
  json.write(true);
  json.break_line();
  json.write(std::vector<std::int64_t>{1, 2});
  json.end_array();
  json.member("empty", std::map<std::string, std::int64_t>{});
  json.end_object();
  EXPECT_EQ(json.take(), "{\"none\": null, \"list\": [\ntrue,\n[1, 2]], \"empty\": {}}\n");
}

TEST(JsonCheck, KnowsJson) {
  EXPECT_TRUE(is_json(R"({"a": [1, -2.5e+3, null, true, "\u00ff"], "b": {}})"));
  for (const char* broken : {"", "{", "[1,]", "{\"a\" 1}", "nan", "[1] 2", "\"\n\"", "[.5]"}) {
    EXPECT_FALSE(is_json(broken)) << broken;
  }
}

TEST(ReportJson, IsJsonForEverySample) {
  EXPECT_TRUE(is_json(testing::sample_toy().to_json()));
  EXPECT_TRUE(is_json(testing::sample_cooperative().to_json()));
  EXPECT_TRUE(is_json(testing::sample_transformer(false).to_json()));
}

TEST(ReportJson, NamesAndFiguresThatJsonCannotSayDoNotBreakIt) {
  testing::ProfileBuilder builder;
  builder.module("a\"b\n\xFF", "Odd\\Type");
  builder.data.environment = {{"nan", std::nan("")}, {"text", "x\ty"}};
  builder.data.ceilings.compute[0].provenance.spread = std::numeric_limits<double>::infinity();
  const std::string json = builder.report().to_json();
  EXPECT_TRUE(is_json(json));
  EXPECT_NE(json.find(R"("nan": null)"), std::string::npos);
  EXPECT_NE(json.find(R"("path": "a\"b\n\ufffd")"), std::string::npos);
}

TEST(ReportJson, HoldsEveryFieldUnderItsKey) {
  const std::string json = testing::sample_toy().to_json();
  for_each_figure([&](std::string_view name, Unit unit, auto) {
    EXPECT_NE(json.find("\"" + key_of(name, unit) + "\":"), std::string::npos) << name;
    EXPECT_NE(json.find("\"self_" + key_of(name, unit) + "\":"), std::string::npos) << name;
  });
  for (const char* key : {"schema_version",
                          "generator",
                          "units",
                          "model",
                          "device",
                          "scope",
                          "partial",
                          "environment",
                          "ceilings",
                          "runs",
                          "unobserved",
                          "dropped_records",
                          "unattributed_kernels",
                          "notes",
                          "coverage",
                          "total",
                          "rows",
                          "modules",
                          "ops",
                          "times"}) {
    EXPECT_NE(json.find("\n\"" + std::string(key) + "\": "), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace roofprof
