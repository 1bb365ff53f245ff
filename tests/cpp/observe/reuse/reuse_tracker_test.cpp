#include "observe/reuse/reuse_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace roofprof::observe {
namespace {

using Part = ReuseTracker::Part;

constexpr std::int64_t kMiB = 1 << 20;

TouchedMemory block(std::uintptr_t begin, std::int64_t bytes) {
  return {begin, begin + static_cast<std::uintptr_t>(bytes), bytes};
}

// The distances of blocks that one op touches; then it has touched them.
std::vector<std::int64_t> op(ReuseTracker& tracker, const std::vector<TouchedMemory>& blocks) {
  std::vector<std::int64_t> distances;
  for (const auto& memory : blocks) {
    std::vector<Part> parts;
    tracker.look_up(memory, parts);
    EXPECT_EQ(parts.size(), 1);
    distances.push_back(parts.front().distance);
  }
  for (const auto& memory : blocks) tracker.touch(memory);
  tracker.next_op();
  return distances;
}

using Distances = std::vector<std::int64_t>;

TEST(ReuseTracker, WhatWasNeverTouchedHasNoDistance) {
  ReuseTracker tracker;
  EXPECT_EQ(op(tracker, {block(100, 10)}), Distances{ReuseTracker::kNever});
}

TEST(ReuseTracker, AnOpThatRunsAgainFindsAllAtTheDistanceOfItsFootprint) {
  ReuseTracker tracker;
  const std::vector<TouchedMemory> linear = {block(0, 2048), block(1 << 20, kMiB), block(1 << 24, 2048)};
  op(tracker, linear);
  for (int call = 1; call < 48; ++call) EXPECT_EQ(op(tracker, linear), Distances(3, kMiB + 4096));
}

TEST(ReuseTracker, DifferentLayersAreAsFarAsAllOfThem) {
  ReuseTracker tracker;
  constexpr int kLayers = 48;
  for (int round = 0; round < 3; ++round) {
    for (int layer = 0; layer < kLayers; ++layer) {
      const auto distance = op(tracker, {block(static_cast<std::uintptr_t>(layer + 1) << 24, kMiB)});
      EXPECT_EQ(distance, Distances{round == 0 ? ReuseTracker::kNever : kLayers * kMiB});
    }
  }
}

// Each op reads what the one before wrote: that op's two blocks were touched since, whatever came before.
TEST(ReuseTracker, AChainFindsWhatItsLastOpLeft) {
  ReuseTracker tracker;
  for (std::uintptr_t i = 0; i < 100; ++i) {
    const auto distances = op(tracker, {block(i << 24, kMiB), block((i + 1) << 24, kMiB)});
    EXPECT_EQ(distances, (Distances{i == 0 ? ReuseTracker::kNever : 2 * kMiB, ReuseTracker::kNever}));
  }
}

// What an allocator hands out again is the memory that was freed, whatever its new size.
TEST(ReuseTracker, MemoryIsKnownByItsAddress) {
  ReuseTracker tracker;
  op(tracker, {block(0, 1000)});
  op(tracker, {block(5000, 1000)});
  EXPECT_EQ(op(tracker, {block(0, 400)}), Distances{2000});
  EXPECT_EQ(op(tracker, {block(0, 400)}), Distances{400});
  std::vector<Part> parts;
  tracker.look_up(block(0, 1200), parts);
  ASSERT_EQ(parts.size(), 3);
  EXPECT_EQ(parts[0].distance, 400);
  EXPECT_EQ(parts[1].memory.begin, 400);
  EXPECT_EQ(parts[1].memory.bytes, 600);
  EXPECT_EQ(parts[1].distance, 2000);
  EXPECT_EQ(parts[2].memory.bytes, 200);
  EXPECT_EQ(parts[2].distance, ReuseTracker::kNever);
}

// Three views that take turns along a row (chunk) touch all of what was written, and no more.
TEST(ReuseTracker, ViewsWithGapsTouchTheirStorage) {
  ReuseTracker tracker;
  op(tracker, {block(0, 3000)});
  for (std::uintptr_t i = 0; i < 3; ++i) {
    tracker.touch({400 * i, 2200 + 400 * i, 1000});
    tracker.next_op();
  }
  EXPECT_EQ(tracker.total(), 3000);
}

TEST(ReuseTracker, OneByOneAsByteByByte) {
  std::mt19937 random(7);
  constexpr std::size_t kBytes = 300;
  ReuseTracker tracker;
  std::vector<int> last(kBytes, -1);
  for (int now = 0; now < 20'000; ++now) {  // numbers of ops are given anew meanwhile
    std::vector<TouchedMemory> blocks;
    for (unsigned i = 0; i < 1 + random() % 3; ++i) {
      const std::uintptr_t begin = random() % kBytes;
      blocks.push_back(block(begin, static_cast<std::int64_t>(std::min(1 + random() % 40, kBytes - begin))));
    }
    for (const auto& memory : blocks) {
      std::vector<Part> parts;
      tracker.look_up(memory, parts);
      auto at = memory.begin;
      for (const auto& part : parts) {
        ASSERT_EQ(part.memory.begin, at);
        ASSERT_EQ(part.memory.bytes, static_cast<std::int64_t>(part.memory.end - at));
        for (; at < part.memory.end; ++at) {
          const int touched = last[at];
          const auto since = std::ranges::count_if(last, [&](int other) { return other >= touched; });
          ASSERT_EQ(part.distance, touched < 0 ? ReuseTracker::kNever : since);
        }
      }
      ASSERT_EQ(at, memory.end);
    }
    for (const auto& memory : blocks) {
      tracker.touch(memory);
      std::fill(last.begin() + static_cast<std::ptrdiff_t>(memory.begin),
                last.begin() + static_cast<std::ptrdiff_t>(memory.end), now);
    }
    tracker.next_op();
  }
}

// What may be among them is as far as all that is remembered, which is half of the most at least.
TEST(ReuseTracker, MoreThanIsRememberedIsAsFarAsAllThatIs) {
  ReuseTracker tracker;
  for (std::uintptr_t i = 0; i < 3 * ReuseTracker::kMost; ++i) op(tracker, {block(1000 * i, 100)});
  const auto distance = op(tracker, {block(0, 100)}).front();
  EXPECT_GE(distance, static_cast<std::int64_t>(ReuseTracker::kMost / 2 * 100));
  EXPECT_LE(distance, static_cast<std::int64_t>((ReuseTracker::kMost + 1) * 100));
}

}  // namespace
}  // namespace roofprof::observe
