// What ran inside what, on a thread whose events have whole microseconds or nanoseconds.

#include "kineto/counted_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace roofprof::kineto {
namespace {

HostEvent event(std::int64_t begin_ns, std::int64_t end_ns, std::uint32_t name, HostKind kind = HostKind::op,
                std::uint32_t thread = 0, std::uint64_t external_id = 0) {
  HostEvent result;
  result.begin_ns = begin_ns;
  result.end_ns = end_ns;
  result.name = name;
  result.kind = kind;
  result.thread = thread;
  result.correlation = external_id;
  return result;
}

// The parent's name by an event's own; -1: none.
std::vector<std::int32_t> parents_by_name(std::vector<HostEvent> events) {
  const auto tree = host_tree(events);
  std::vector<std::int32_t> parents(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto parent = tree.parents[i];
    parents[events[i].name] = parent == kNone ? kNone : static_cast<std::int32_t>(events[at(parent)].name);
  }
  return parents;
}

using Parents = std::vector<std::int32_t>;

TEST(HostTree, TheInnermostAroundIsTheParentInAnyOrder) {
  std::vector<HostEvent> events = {event(0, 100'000, 0),     event(10'000, 40'000, 1), event(10'000, 20'000, 2),
                                   event(20'000, 40'000, 3), event(50'000, 60'000, 4), event(100'000, 120'000, 5)};
  std::vector<std::size_t> order(events.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    std::vector<HostEvent> shuffled;
    for (const auto i : order) shuffled.push_back(events[i]);
    ASSERT_EQ(parents_by_name(shuffled), (Parents{-1, 0, 1, 1, 0, -1}));
  } while (std::ranges::next_permutation(order).found);
}

TEST(HostTree, ThreadsHaveTreesOfTheirOwn) {
  EXPECT_EQ(parents_by_name({event(0, 100'000, 0), event(10'000, 20'000, 1, HostKind::op, 1),
                             event(12'000, 15'000, 2, HostKind::op, 1), event(12'000, 15'000, 3)}),
            (Parents{-1, -1, 1, 0}));
}

// Of equal times, modules and ranges are around ops, ops around launches, and ops with lower ids around others.
TEST(HostTree, OfEqualTimesTheKindDecides) {
  EXPECT_EQ(parents_by_name({event(0, 1'000, 3, HostKind::launch), event(0, 1'000, 2, HostKind::op, 0, 9),
                             event(0, 1'000, 1, HostKind::op, 0, 8), event(0, 1'000, 0, HostKind::module)}),
            (Parents{-1, 0, 1, 2}));
}

TEST(HostTree, ALengthOfZeroIsInsideOfWhatIsAroundIt) {
  EXPECT_EQ(parents_by_name({event(0, 5'000, 0), event(2'000, 2'000, 1), event(5'000, 5'000, 2), event(0, 0, 3)}),
            (Parents{-1, 0, 0, 0}));
}

// In whole microseconds an op seems to begin in the last one of the op before it.
TEST(HostTree, WhatBeginsInTheLastMicrosecondComesAfter) {
  EXPECT_EQ(parents_by_name({event(0, 10'000, 0), event(1'000, 5'500, 1), event(5'000, 9'000, 2)}),
            (Parents{-1, 0, 0}));
}

TEST(HostTree, WhatCrossesTheEndIsTakenToEndThere) {
  std::vector<HostEvent> events = {event(0, 10'000, 0), event(5'000, 20'000, 1), event(12'000, 15'000, 2)};
  const auto tree = host_tree(events);
  EXPECT_EQ(tree.parents, (Parents{-1, 0, -1}));
  EXPECT_EQ(events[1].end_ns, 10'000);
}

TEST(HostTree, AnOpThatIsDispatchedAgain) {
  std::vector<HostEvent> events = {event(0, 10'000, 7), event(1'000, 2'000, 8), event(3'000, 9'000, 7),
                                   event(4'000, 5'000, 7, HostKind::launch), event(20'000, 30'000, 7)};
  EXPECT_EQ(host_tree(events).dispatched_again, (std::vector<bool>{true, false, false, false, false}));
}

// 100,000 in each other, and 100,000 threads: no recursion, and no time that grows with the square.
TEST(HostTree, DeepAndWideTracesAreRead) {
  constexpr std::int64_t kEvents = 100'000;
  std::vector<HostEvent> deep;
  std::vector<HostEvent> wide;
  for (std::int64_t i = 0; i < kEvents; ++i) {
    deep.push_back(event(i * 1'000, (2 * kEvents - i) * 1'000, static_cast<std::uint32_t>(i)));
    wide.push_back(event(i, i + 1'000, 0, HostKind::op, static_cast<std::uint32_t>(i)));
  }
  const auto tree = host_tree(deep);
  for (std::int64_t i = 0; i < kEvents; ++i) ASSERT_EQ(tree.parents[static_cast<std::size_t>(i)], i - 1);
  for (const auto parent : host_tree(wide).parents) ASSERT_EQ(parent, kNone);
}

}  // namespace
}  // namespace roofprof::kineto
