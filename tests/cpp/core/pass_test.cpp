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

}  // namespace
}  // namespace roofprof
