#include "core/pass.h"

#include <gtest/gtest.h>

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
}

TEST(Pass, KnowsWhetherCompiledCodeRan) {
  EXPECT_FALSE(ran_compiled_code(pass_of({op(1, 1)})));
  EXPECT_TRUE(ran_compiled_code(pass_of({op(1, 1), op(2, 1, Pass::Op::Kind::compiled_region)})));
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

TEST(Pass, ScalesLoggedTrafficToAllBytes) {
  Pass pass = pass_of({moving(1, 800, 200), moving(2, 100, 100)});
  pass.crossings_known = true;
  scale_traffic(pass, {{.read_bytes = 600}, {}});
  EXPECT_EQ(pass.ops[0].reuse, (Reuse{{.distance_bytes = 1000, .read_bytes = 800}}));
  EXPECT_EQ(pass.ops[0].crossings, (Crossings{{.levels = 1, .read_bytes = 800}, {.levels = 0, .read_bytes = 200}}));
  EXPECT_EQ(pass.ops[1].reuse.front().read_bytes, 100);
}

TEST(Pass, TakesTheTrafficOfOtherInputsWhereNoCallWasLogged) {
  Pass pass = pass_of({moving(1, 800, 200), moving(2, 400, 0)});
  pass.crossings_known = true;
  scale_traffic(pass, {{.read_bytes = 600}, {.read_bytes = 400}});
  EXPECT_EQ(pass.ops[1].reuse, (Reuse{{.distance_bytes = 1000, .read_bytes = 400}}));
  EXPECT_EQ(pass.ops[1].crossings, (Crossings{{.levels = 1, .read_bytes = 400}, {.levels = 0, .read_bytes = 100}}));
}

TEST(Pass, ScalesWhatIsReadAndWhatIsWrittenApart) {
  Pass::Op logged = moving(1, 100, 100);
  logged.work.write_bytes = 10;
  logged.crossings = {{.levels = 0, .read_bytes = 100, .write_bytes = 10}};
  Pass::Op other = moving(2, 200, 0);
  other.work.write_bytes = 1000;
  Pass pass = pass_of({logged, other});
  pass.crossings_known = true;
  scale_traffic(pass, {{}, {.read_bytes = 200, .write_bytes = 1000}});
  EXPECT_EQ(pass.ops[1].crossings, (Crossings{{.levels = 0, .read_bytes = 200, .write_bytes = 1000}}));
}

TEST(Pass, AllMayCrossWhereNothingIsKnown) {
  Pass pass = pass_of({moving(1, 400, 0)});
  pass.crossings_known = true;
  scale_traffic(pass, {{.read_bytes = 400}});
  EXPECT_TRUE(pass.ops[0].reuse.empty());
  EXPECT_EQ(pass.ops[0].crossings, crossing_whole(400, 0));
}

}  // namespace
}  // namespace roofprof
