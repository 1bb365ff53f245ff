#include "core/json/members.h"

#include <gtest/gtest.h>

#include <string>

namespace roofprof {
namespace {

template <class Value>
std::string written(const Value& value) {
  JsonWriter json;
  write_value(json, value);
  std::string text = json.take();
  text.pop_back();
  return text;
}

template <class Value>
Value read(const std::string& text) {
  JsonReader json(text);
  Value value;
  read_value(json, value);
  json.finish();
  return value;
}

template <class Value>
std::string problem_of(const std::string& text) {
  try {
    static_cast<void>(read<Value>(text));
  } catch (const JsonError& error) {
    return error.what();
  }
  return "(it was read)";
}

TEST(JsonMembers, DefaultsAreLeftOut) {
  Module module;
  module.path = "head";
  module.type = "Linear";
  EXPECT_EQ(written(module), R"({"path": "head", "type": "Linear"})");
  module.parent = 0;
  module.input_shapes = {{2, 3}, {}};
  module.output_bytes = 0;
  EXPECT_EQ(written(module), R"({"path": "head", "type": "Linear", "parent": 0, "input_shapes": [[2,3],[]], )"
                             R"("output_bytes": 0})");
  EXPECT_EQ(read<Module>(written(module)), module);
}

TEST(JsonMembers, ShapesAreListsOfSizes) {
  OpBucket op;
  op.op = "aten::where";
  EXPECT_EQ(written(op).find("shapes"), std::string::npos);  // it takes no tensors
  op.shapes.tensors = {{8, 256}, {2, kUnknownSize}, {}};
  EXPECT_NE(written(op).find(R"("shapes": [[8,256],[2,-1],[]],)"), std::string::npos) << written(op);
  EXPECT_EQ(read<OpBucket>(written(op)), op);
  EXPECT_EQ(read<OpShapes>(R"("8x256, scalar")"), (OpShapes{{{8, 256}, {}}}));  // of schema version 5
  EXPECT_NE(problem_of<OpShapes>(R"("8 x 256")").find("is no list of sizes"), std::string::npos);
  op.shapes = {.tensors = {}, .others = true};
  EXPECT_NE(written(op).find(R"("shapes": null,)"), std::string::npos) << written(op);
  EXPECT_EQ(read<OpBucket>(written(op)), op);
}

TEST(JsonMembers, KeysMayComeInAnyOrderAndOthersAreSkipped) {
  const auto time = read<ModuleTime>(R"({"self_ns": [1, 2], "new": {"a": [1]}, "phase": "backward", "module": 3})");
  EXPECT_EQ(time.owner.module, 3);
  EXPECT_EQ(time.owner.phase, Phase::backward);
  EXPECT_EQ(time.self_ns, (std::vector<std::int64_t>{1, 2}));
}

TEST(JsonMembers, WhatIsMissingTwiceOrUnknownIsNamed) {
  EXPECT_EQ(problem_of<ModuleTime>(R"({"module": 3})"), "it lacks the key 'phase'");
  EXPECT_EQ(problem_of<std::vector<ModuleTime>>(R"([{"module": 3}])"), "it lacks the key '[0].phase'");
  EXPECT_EQ(problem_of<ModuleTime>(R"({"module": 3, "module": 4, "phase": "forward"})"), "'module' is there twice");
  EXPECT_EQ(problem_of<ModuleTime>(R"({"module": 3, "phase": "sideways"})"), "'phase' cannot be 'sideways'");
  EXPECT_EQ(problem_of<ModuleCounters>(R"({"module": 3, "phase": "forward", "counters": {"hits": 1}})"),
            "'counters.hits' is unknown: there is no counter 'hits'");
  EXPECT_EQ(problem_of<Work>(R"({"operations": {"fp33": 1}})"),
            "'operations.fp33' is unknown: there is no dtype 'fp33'");
  EXPECT_EQ(problem_of<KernelBucket>(R"({"grid": [1]})"), "'grid' has the wrong type: it should be a list of 3");
}

TEST(JsonMembers, ListsOfRecordsAreTables) {
  std::vector<KernelRecord> records(2);
  records[1] = {KernelKind::copy, Memory::pinned, Memory::device, 1, 2, 3, 4, 5, 6, 7, 8, 9, {1, 2, 3}, {4, 5, 6}, 10};
  const std::string text = written(records);
  EXPECT_TRUE(text.starts_with(R"({"columns": ["kind", "name", )")) << text;
  EXPECT_TRUE(
      text.ends_with("[\"copy\", 1, 2, 3, 4, 5, 6, 7, 8, 9, [1, 2, 3], [4, 5, 6], \"pinned\", \"device\", 10]]}"))
      << text;
  EXPECT_EQ(read<std::vector<KernelRecord>>(text), records);
  EXPECT_EQ(read<std::vector<KernelRecord>>(written(std::vector<KernelRecord>())), std::vector<KernelRecord>());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string spoiled = text;
    return problem_of<std::vector<KernelRecord>>(spoiled.replace(spoiled.find(from), from.size(), to));
  };
  EXPECT_EQ(changed("\"stream\"", "\"river\""), "'columns' does not list the columns that this roofprof reads");
  EXPECT_EQ(changed(", 10]", "]"), "'rows[1]' is shorter than 'columns'");
  EXPECT_EQ(changed("columns", "headings"), "'rows' comes before 'columns'");
}

}  // namespace
}  // namespace roofprof
