// The time line of collectives beside ops, worked by hand. What ranks send is tested from Python
// (tests/python/prediction/test_ranks.py).

#include "analysis/predict/parallel.h"

#include <gtest/gtest.h>

namespace roofprof {
namespace {

using What = Happening::What;

TEST(Parallel, WhatOpsDoNotHideIsExposed) {
  // Ops until 5. The first collective from 3 to 7, the second one waits for it: from 7 to 8.
  const std::vector<Happening> line = {{What::op, 0},     {What::begins, 0},  {What::op, 1},
                                       {What::begins, 1}, {What::awaited, 0}, {What::awaited, 1}};
  EXPECT_EQ(exposed_seconds(line, {3, 2}, {4, 1}), (std::vector<double>{2, 1}));
  EXPECT_EQ(exposed_seconds(line, {3, 5}, {4, 1}), (std::vector<double>{0, 1}));
}

TEST(Parallel, WhoeverIsUnderWayIsWhatOpsWaitFor) {
  // The second one is awaited at 1, when the first one has 3 to go.
  const std::vector<Happening> line = {{What::begins, 0},  {What::begins, 1}, {What::op, 0},
                                       {What::awaited, 1}, {What::op, 1},     {What::awaited, 0}};
  EXPECT_EQ(exposed_seconds(line, {1, 10}, {4, 2}), (std::vector<double>{3, 2}));
}

TEST(Parallel, NothingIsExposedWithoutCollectives) { EXPECT_TRUE(exposed_seconds({{What::op, 0}}, {1}, {}).empty()); }

}  // namespace
}  // namespace roofprof
