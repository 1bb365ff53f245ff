#include "core/pass.h"

#include <gtest/gtest.h>

#include "core/crossings.h"
#include "core/reuse.h"

namespace roofprof {
namespace {

Pass::Op op(std::uint32_t number, std::int64_t calls, Pass::Op::Kind kind = Pass::Op::Kind::op) {
  Pass::Op op;
  op.number = number;
  op.signature = 1;
  op.kind = kind;
  op.calls = calls;
  return op;
}

Pass pass_of(std::vector<Pass::Op> ops) {
  Pass pass;
  pass.ops = std::move(ops);
  return pass;
}

TEST(Pass, RepeatsHaveTheSameOpsWithTheSameCalls) {
  const Pass pass = pass_of({op(1, 2), op(2, 1)});
  Pass repeat = pass_of({op(2, 1), op(1, 2)});
  repeat.ops[0].time_ns = 100;
  EXPECT_TRUE(same_work(pass, repeat));
  EXPECT_FALSE(same_work(pass, pass_of({op(1, 2)})));
  EXPECT_FALSE(same_work(pass_of({op(1, 2)}), pass));
  EXPECT_FALSE(same_work(pass, pass_of({op(1, 2), op(2, 3)})));
  EXPECT_FALSE(same_work(pass, pass_of({op(1, 2), op(3, 1)})));
}

TEST(Pass, WhatBypassedTheDispatcherMakesNoOtherWork) {
  const Pass pass = pass_of({op(1, 2)});
  for (const auto kind : {Pass::Op::Kind::unobserved_function, Pass::Op::Kind::unobserved_module}) {
    EXPECT_TRUE(same_work(pass_of({op(1, 2), op(2, 1, kind)}), pass));
  }
  EXPECT_FALSE(same_work(pass_of({op(1, 2), op(2, 1, Pass::Op::Kind::compiled_region)}), pass));
  EXPECT_TRUE(ran_compiled_code(pass_of({op(1, 1), op(2, 1, Pass::Op::Kind::compiled_region)})));
  EXPECT_FALSE(ran_compiled_code(pass));
}

Pass::Op moving(std::uint64_t signature, std::int64_t bytes, std::int64_t logged_bytes) {
  Pass::Op moved = op(1, 1);
  moved.signature = signature;
  moved.work.read_bytes = bytes;
  if (logged_bytes == 0) return moved;
  moved.reuse = {{.distance_bytes = 1000, .read_bytes = logged_bytes}};
  moved.crossings = {{.levels = 1, .read_bytes = logged_bytes}, {.levels = 0, .read_bytes = logged_bytes / 4}};
  return moved;
}

TEST(Pass, ScalesLoggedTrafficToAllBytesAndTakesThatOfOtherInputsWhereNoCallWasLogged) {
  Pass pass = pass_of({moving(1, 800, 200), moving(2, 400, 0)});
  pass.crossings_known = true;
  scale_traffic(pass, {{.read_bytes = 600}, {.read_bytes = 400}});
  EXPECT_EQ(pass.ops[0].reuse, (Reuse{{.distance_bytes = 1000, .read_bytes = 800}}));
  EXPECT_EQ(pass.ops[0].crossings, (Crossings{{.levels = 1, .read_bytes = 800}, {.levels = 0, .read_bytes = 200}}));
  EXPECT_EQ(pass.ops[1].reuse, (Reuse{{.distance_bytes = 1000, .read_bytes = 400}}));
  EXPECT_EQ(pass.ops[1].crossings, (Crossings{{.levels = 1, .read_bytes = 400}, {.levels = 0, .read_bytes = 100}}));
}

TEST(Pass, AllMayCrossWhereNothingIsKnown) {
  Pass pass = pass_of({moving(1, 400, 0)});
  pass.crossings_known = true;
  scale_traffic(pass, {{.read_bytes = 400}});
  EXPECT_TRUE(pass.ops[0].reuse.empty());
  EXPECT_EQ(pass.ops[0].crossings, crossing_whole(400, 0));
}

TEST(Reuse, PartsOfOneOctaveAreOneAtTheMeanOfTheirBytes) {
  Reuse reuse;
  add_reuse(reuse, {1'500, 300, 0, 0});
  add_reuse(reuse, {1'100, 0, 100, 0});
  EXPECT_EQ(reuse, (Reuse{{1'400, 300, 100, 0}}));
  add_reuse(reuse, {1'400, 1, 2, 3});
  EXPECT_EQ(reuse, (Reuse{{1'400, 301, 102, 3}}));
  add_reuse(reuse, {100, 0, 0, 0});
  EXPECT_EQ(reuse.size(), 1U) << "what does not move is no part";
}

TEST(Reuse, PartsStandByRisingDistance) {
  Reuse reuse;
  for (const std::int64_t distance : {5'000, 0, 100, 70'000, 6'000}) add_reuse(reuse, {distance, 10, 0, 0});
  EXPECT_EQ(reuse, (Reuse{{0, 10, 0, 0}, {100, 10, 0, 0}, {5'500, 20, 0, 0}, {70'000, 10, 0, 0}}));
}

TEST(Reuse, OfAnotherPassIsThatOfTheSameOpsBytesByCalls) {
  Pass first = pass_of({op(1, 2), op(2, 1)});
  first.ops[0].reuse = {{100, 20, 10, 0}};
  first.ops[1].reuse = {{7, 1, 0, 0}};
  Pass later = pass_of({op(3, 1), op(1, 6)});
  take_traffic(later, first);
  EXPECT_TRUE(later.ops[0].reuse.empty());
  EXPECT_EQ(later.ops[1].reuse, (Reuse{{100, 60, 30, 0}}));
}

TEST(Crossings, HoldForLevelsAndTheLastForAllFurtherOnes) {
  EXPECT_EQ(by_level({{2, 10, 5}, {0, 4, 0}}, 4), (Crossings{{1, 10, 5}, {1, 10, 5}, {1, 4, 0}, {1, 4, 0}}));
  EXPECT_EQ(by_level({{2, 10, 5}}, 3), (Crossings{{1, 10, 5}, {1, 10, 5}, {1, 0, 0}}));
  EXPECT_EQ(by_level({}, 1), (Crossings{{1, 0, 0}}));
  EXPECT_EQ(by_level({{1, 10, 5}, {0, 4, 0}}, 1), (Crossings{{1, 10, 5}}));
}

TEST(Crossings, OfAFileAreNeverNegativeNorMoreThanTheLevels) {
  EXPECT_EQ(by_level({{-3, 1, 1}, {1, -10, 5}}, 2), (Crossings{{1, 0, 5}, {1, 0, 0}}));
  EXPECT_EQ(by_level({{std::int64_t{1} << 60, 1, 1}}, 2), (Crossings{{1, 1, 1}, {1, 1, 1}}));
}

TEST(Crossings, AddLevelByLevel) {
  Crossings sum;
  add_crossings(sum, {{1, 10, 5}, {1, 10, 5}, {1, 0, 0}});
  EXPECT_EQ(sum, (Crossings{{2, 10, 5}}));
  add_crossings(sum, {{0, 1, 1}});
  EXPECT_EQ(sum, (Crossings{{2, 11, 6}, {0, 1, 1}}));
  add_crossings(sum, {{3, 1, 0}, {1, 0, 1}});
  EXPECT_EQ(sum, (Crossings{{2, 12, 6}, {1, 2, 1}, {1, 1, 2}, {0, 1, 1}}));
  add_crossings(sum, {});
  EXPECT_EQ(sum.size(), 4);
}

}  // namespace
}  // namespace roofprof
