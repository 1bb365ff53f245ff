#include <gtest/gtest.h>

#include <algorithm>

#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

bool any_note(const testing::Derived& report, const std::vector<std::string>& parts) {
  const auto& notes = report.coverage().notes;
  return std::any_of(notes.begin(), notes.end(), [&](const Note& note) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const auto& part) { return note.text.find(part) != std::string::npos; });
  });
}

TEST(Coverage, ListsUncostedOpsAndMarksEveryParent) {
  ProfileBuilder builder;
  const ModuleId outer = builder.module("outer", "Outer");
  const ModuleId inner = builder.module("outer.inner", "Inner", outer);
  const ModuleId other = builder.module("other", "Other");
  builder.op("mylib::fft", inner, {}, 10, 3).costed = false;
  builder.op("mylib::fft", other, {}, 10, 4).costed = false;
  builder.op("aten::relu", outer, work_of(10, 10));
  const testing::Derived report = builder.derived();
  EXPECT_EQ(report.coverage().uncosted, (std::map<std::string, std::int64_t>{{"mylib::fft", 7}}));
  EXPECT_TRUE(report.row("outer.inner").incomplete);
  EXPECT_TRUE(report.row("outer").incomplete);
  EXPECT_FALSE(report.row("outer").self.incomplete);
  EXPECT_TRUE(report.row("").incomplete);
  EXPECT_TRUE(report.total().incomplete);
  EXPECT_EQ(report.row("outer").flops, 10);
}

TEST(Coverage, NamesOpsOfWhichAPartIsKnown) {
  ProfileBuilder builder;
  builder.op("mylib::short", kModel, work_of(10, 10), 100).work.lower_limit = true;
  builder.op("mylib::long", kModel, work_of(10, 10), 300).work.lower_limit = true;
  builder.op("aten::relu", kModel, work_of(10, 10), 600);
  const testing::Derived report = builder.derived();
  EXPECT_TRUE(report.total().incomplete);
  EXPECT_TRUE(report.coverage().uncosted.empty());
  const auto& notes = report.coverage().notes;
  const auto note = std::ranges::find(notes, "lower-limits", &Note::code);
  ASSERT_NE(note, notes.end());
  EXPECT_EQ(note->where, (std::vector<std::string>{"mylib::long", "mylib::short"}));
  EXPECT_EQ(note->text,
            "only a part of the work is known of mylib::long (30% of the op time), mylib::short (10% of the op time)");
}

TEST(Coverage, SaysWhereUncostedOpsRanAndHowLongTheyTook) {
  ProfileBuilder builder;
  const ModuleId head = builder.module("head", "Head");
  builder.op("mylib::short", kModel, {}, 100, 50).costed = false;
  builder.op("mylib::long", head, {}, 300, 2).costed = false;
  builder.op("mylib::long", kModel, {}, 200, 1).costed = false;
  builder.op("mylib::long", head, {}, 100, 1).costed = false;  // other shapes
  builder.op("aten::relu", head, work_of(10, 10), 300);
  EXPECT_EQ(builder.derived().coverage().uncosted_ops,
            (std::vector<UncostedOp>{{"mylib::long", 4, 60.0, {"", "head"}, 2}, {"mylib::short", 50, 10.0, {""}, 1}}));
  for (auto& op : builder.data.counts.ops) op.time_ns.reset();
  EXPECT_EQ(builder.derived().coverage().uncosted_ops.front(),
            (UncostedOp{"mylib::short", 50, std::nullopt, {""}, 1}));  // without times by calls
  for (int i = 0; i < 20; ++i) {
    builder.op("mylib::wide", builder.module("block" + std::to_string(i), "Block"), {}, {}, 10).costed = false;
  }
  const auto wide = builder.derived().coverage().uncosted_ops.front();
  EXPECT_EQ(wide.modules.size(), 8U);  // many are counted, not listed
  EXPECT_EQ(wide.module_count, 20);
}

TEST(Coverage, WhatBypassedTheDispatcherIsNoUncostedOp) {
  ProfileBuilder builder;
  builder.op("NumpyFft", kModel, {}, 100, 2).costed = false;
  builder.op("mylib::fft", kModel, {}, 100, 1).costed = false;
  builder.data.counts.unobserved["NumpyFft"] = 2;
  const testing::Derived report = builder.derived();
  EXPECT_EQ(report.coverage().uncosted, (std::map<std::string, std::int64_t>{{"mylib::fft", 1}}));
  ASSERT_EQ(report.coverage().uncosted_ops.size(), 1U);
  EXPECT_EQ(report.coverage().uncosted_ops.front().op, "mylib::fft");
}

TEST(Coverage, WhatWasUsedInOtherWaysIsNotDead) {
  ProfileBuilder builder;
  const ModuleId backbone = builder.module("backbone", "Backbone");
  const ModuleId block = builder.module("backbone.block", "Block", backbone);
  const ModuleId conv = builder.module("backbone.block.conv", "Conv2d", block);
  const ModuleId stages = builder.module("stages", "Sequential");
  const ModuleId stage = builder.module("stages.0", "Linear", stages);
  const ModuleId projection = builder.module("projection", "Linear");
  const ModuleId table = builder.module("table", "Table");
  const ModuleId head = builder.module("head", "Linear");
  builder.module("dropout", "Dropout");
  const auto at = [&](ModuleId id) -> Module& { return builder.data.tree.modules[index_of(id)]; };
  for (const ModuleId id : {backbone, block, conv, stages, stage, projection, table, head}) at(id).params = 8;
  at(stages).forward_of_torch = at(projection).forward_of_torch = true;
  at(projection).parameters_read = at(table).parameters_read = true;
  builder.time(kModel, {}, 1);
  builder.time(conv, {}, 1);
  builder.time(stage, {}, 1);
  const testing::Derived report = builder.derived();
  EXPECT_EQ(report.coverage().uncalled_modules, std::vector<std::string>{"head"});
  ASSERT_EQ(report.coverage().notes.size(), 2U);
  EXPECT_EQ(report.coverage().notes[1].code, "weights-used-elsewhere");
  EXPECT_EQ(report.coverage().notes[1].where, (std::vector<std::string>{"projection", "table"}));
  EXPECT_EQ(report.coverage().notes[0].code, "forward-not-called");
  EXPECT_EQ(report.coverage().notes[0].where, (std::vector<std::string>{"backbone", "backbone.block"}));
  EXPECT_EQ(report.coverage().notes[0].text, "forward not called (other methods were): backbone");
}

TEST(Coverage, AnythingAboveItsRoofByMoreThanTheSpreadIsFlagged) {
  ProfileBuilder builder;
  const ModuleId conv = builder.module("conv", "Conv2d");
  // 100,000 ns at least; 5% spread allow 95,239 ns.
  builder.op("aten::conv2d", conv, work_of(100'000'000, 0), 80'000);
  builder.time(conv, {90'000});
  const testing::Derived report = builder.derived();
  EXPECT_DOUBLE_EQ(*report.row("conv").percent_of_roof, 100.0 * 100'000 / 90'000);
  EXPECT_TRUE(any_note(report, {"aten::conv2d", "conv (125%)", "fp32", "5.0%"}));

  builder.data.counts.ops[0].time_ns = 95'300;
  EXPECT_TRUE(builder.derived().coverage().notes.empty());
}

TEST(Coverage, AFlagNamesTheLevelAndCountsFurtherPlaces) {
  ProfileBuilder builder;
  for (int i = 0; i < 5; ++i) {
    const ModuleId act = builder.module("act" + std::to_string(i), "ReLU");
    builder.op("aten::relu", act, work_of(0, 1'000'000), 900 - 100 * i);  // 1,000 ns from L2
  }
  const testing::Derived report = builder.derived();
  EXPECT_EQ(report.coverage().notes.size(), 1U);
  EXPECT_TRUE(any_note(report, {"aten::relu", "act4 (200%)", "2 more", "L2 roof"}));
}

TEST(Coverage, NamesDtypesWithoutARoof) {
  ProfileBuilder builder;
  builder.op("aten::mm", kModel, work_of(100, 100, 0, DType::fp64));
  Work counter;
  counter.operations_in(DType::int64) = 1;
  builder.op("aten::add_", kModel, counter);
  EXPECT_TRUE(any_note(builder.derived(), {"no roof for fp64", "no lower bound"}));
  EXPECT_TRUE(any_note(builder.derived(), {"no roof for int64", "bytes alone"}));
  builder.data.roofs = {};
  EXPECT_TRUE(builder.derived().coverage().notes.empty());
}

TEST(Coverage, SaturatedCountsAreReportedToBe) {
  ProfileBuilder builder;
  builder.op("aten::mm", kModel, work_of(kSaturated - 1, 0));
  EXPECT_FALSE(any_note(builder.derived(), {"64-bit"}));
  builder.op("aten::mm", kModel, work_of(2, 0));
  EXPECT_EQ(builder.derived().total().flops, kSaturated);
  EXPECT_TRUE(any_note(builder.derived(), {"64-bit"}));
}

}  // namespace
}  // namespace roofprof
