#include "observe/memory/traffic_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace roofprof::observe {
namespace {

TEST(TrafficSample, LogsOneInEightOfTheLaterCallsInAnyPattern) {
  // Every period: a program that does something in each n-th call has it logged as often as all else.
  for (const int period : {1, 2, 3, 4, 7, 8, 16}) {
    TrafficSample sample(nullptr);
    int logged = 0;
    int calls = 0;
    for (int call = 0; call < 20000; ++call) {
      sample.begin_call();
      if (call % period != 0) continue;
      ++calls;
      logged += sample.logs_op() ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(logged) / calls, 1.0 / 8, 0.01) << period;
  }
}

TEST(TrafficSample, LogsTheFirstOpsWhereTheModelIsNotCalled) {
  TrafficSample sample(nullptr);
  for (std::int64_t op = 0; op < TrafficSample::kFirstOps; ++op) EXPECT_TRUE(sample.logs_op());
  EXPECT_FALSE(sample.logs_op());
  EXPECT_EQ(sample.parts().all, 0);
  sample.begin_call();
  EXPECT_TRUE(sample.logs_op());
}

TEST(TrafficSample, FollowsStepsOnceTheyAreMarked) {
  TrafficSample sample(nullptr);
  const auto step = [&] {
    for (int call = 0; call < 5; ++call) sample.begin_call();
    const bool logged = sample.logs_op();
    sample.end_step();
    return logged;
  };
  step();
  EXPECT_TRUE(step());
  EXPECT_TRUE(step());
  EXPECT_FALSE(step());
  const auto parts = sample.parts();
  EXPECT_TRUE(parts.are_steps);
  EXPECT_EQ(parts.all, 4);
  EXPECT_EQ(parts.logged, 3);
}

TEST(TrafficSample, TakesCallsThatAccumulateGradientsTogether) {
  TrafficSample sample(nullptr);
  std::vector<bool> logged;
  for (int step = 0; step < 5; ++step) {
    for (int call = 0; call < 4; ++call) {
      sample.begin_call();
      logged.push_back(sample.logs_op());
      sample.backward_runs();
    }
    sample.optimizer_ran();
  }
  std::vector<bool> expected(20, false);
  std::fill_n(expected.begin(), 12, true);
  EXPECT_EQ(logged, expected);
  EXPECT_EQ(sample.parts().all, 5);
}

}  // namespace
}  // namespace roofprof::observe
