#include "core/reuse.h"

#include <gtest/gtest.h>

#include "core/pass.h"

namespace roofprof {
namespace {

TEST(Reuse, PartsOfOneOctaveAreOneAtTheMeanOfTheirBytes) {
  Reuse reuse;
  add_reuse(reuse, {1'500, 300, 0, 0});
  add_reuse(reuse, {1'100, 0, 100, 0});
  EXPECT_EQ(reuse, (Reuse{{1'400, 300, 100, 0}}));
  add_reuse(reuse, {1'400, 1, 2, 3});
  EXPECT_EQ(reuse, (Reuse{{1'400, 301, 102, 3}}));
}

TEST(Reuse, PartsStandByRisingDistance) {
  Reuse reuse;
  for (const std::int64_t distance : {5'000, 0, 100, 70'000, 6'000}) add_reuse(reuse, {distance, 10, 0, 0});
  EXPECT_EQ(reuse, (Reuse{{0, 10, 0, 0}, {100, 10, 0, 0}, {5'500, 20, 0, 0}, {70'000, 10, 0, 0}}));
}

TEST(Reuse, WhatDoesNotMoveIsNoPart) {
  Reuse reuse;
  add_reuse(reuse, {100, 0, 0, 0});
  EXPECT_TRUE(reuse.empty());
}

TEST(Reuse, OfAnotherPassIsThatOfTheSameOpsBytesByCalls) {
  const auto op = [](std::uint32_t number, std::int64_t calls, Reuse reuse) {
    Pass::Op result;
    result.number = number;
    result.calls = calls;
    result.reuse = std::move(reuse);
    return result;
  };
  Pass first;
  first.ops = {op(1, 2, {{100, 20, 10, 0}}), op(2, 1, {{7, 1, 0, 0}})};
  Pass later;
  later.ops = {op(3, 1, {}), op(1, 6, {})};
  take_traffic(later, first);
  EXPECT_TRUE(later.ops[0].reuse.empty());
  EXPECT_EQ(later.ops[1].reuse, (Reuse{{100, 60, 30, 0}}));
}

}  // namespace
}  // namespace roofprof
