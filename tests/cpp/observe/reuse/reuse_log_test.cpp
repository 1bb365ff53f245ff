#include "observe/reuse/reuse_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace roofprof::observe {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::int64_t kGB = 1'000'000'000;

// Addresses far apart; each name is another block.
Operand operand(std::uintptr_t name, std::int64_t bytes, Operand::Kind kind = Operand::Kind::input) {
  const std::uintptr_t begin = name << 40;
  return {{begin, begin + static_cast<std::uintptr_t>(bytes), bytes}, 0, kind};
}
Operand result(std::uintptr_t name, std::int64_t bytes) { return operand(name, bytes, Operand::Kind::result); }

Work moves(std::int64_t read, std::int64_t write, std::int64_t updated = 0) {
  Work work;
  work.read_bytes = read;
  work.write_bytes = write;
  work.updated_bytes = updated;
  return work;
}

std::vector<Reuse> collected(ReuseLog& log, std::size_t ops) {
  std::vector<Pass::Op> counted(ops);
  log.collect(counted, [](ReuseLog::Place place) { return static_cast<std::int64_t>(place.second); });
  std::vector<Reuse> reuse;
  for (const auto& op : counted) reuse.push_back(op.reuse);
  return reuse;
}

// The sum of what moved, over all distances.
ReusedBytes sum(const Reuse& reuse) {
  return std::accumulate(reuse.begin(), reuse.end(), ReusedBytes{}, [](ReusedBytes all, const ReusedBytes& part) {
    return ReusedBytes{0, all.read_bytes + part.read_bytes, all.write_bytes + part.write_bytes,
                       all.updated_bytes + part.updated_bytes};
  });
}

void linear(ReuseLog& log, std::uint32_t bucket, std::uintptr_t weight, std::uintptr_t from, std::uintptr_t to) {
  log.count({nullptr, bucket}, std::vector{operand(from, 2048), operand(weight, kMebibyte), result(to, 2048)},
            moves(2048 + kMebibyte, 2048));
}

TEST(ReuseLog, OneLayerCalledAgainStaysWithinItsFootprint) {
  ReuseLog log;
  for (int call = 0; call < 48; ++call) linear(log, 0, 1, 2, 3);
  const auto reuse = collected(log, 1).front();
  ASSERT_EQ(reuse.size(), 1);
  EXPECT_EQ(reuse[0], (ReusedBytes{kMebibyte + 4096, 48 * (kMebibyte + 2048), 48 * 2048, 0}));
}

// Their outputs take turns in two blocks. Weights are as far as everything, also in the first call, which is one of
// many; the input is what the layer before wrote.
TEST(ReuseLog, LayersCalledOnceAreAsFarAsAllOfThem) {
  ReuseLog log;
  constexpr std::uintptr_t kLayers = 48;
  for (std::uintptr_t i = 0; i < kLayers; ++i) linear(log, 0, 100 + i, 1 + i % 2, 2 - i % 2);
  const auto reuse = collected(log, 1).front();
  const auto all = static_cast<std::int64_t>(kLayers) * kMebibyte + 4096;
  ASSERT_EQ(reuse.size(), 2);
  EXPECT_EQ(reuse[0], (ReusedBytes{kMebibyte + 4096, kLayers * 2048, kLayers * 2048, 0}));
  EXPECT_EQ(reuse[1], (ReusedBytes{all, kLayers * kMebibyte, 0, 0}));
}

TEST(ReuseLog, WeightsOfAGigabyte) {
  ReuseLog log;
  log.count({nullptr, 0}, std::vector{operand(1, 4096), operand(2, kGB), result(3, 4096)}, moves(kGB + 4096, 4096));
  log.count({nullptr, 1}, std::vector{operand(3, 4096), result(4, 4096)}, moves(4096, 4096));
  const auto reuse = collected(log, 2);
  // The second op's input was written by the first, beside the weights; it is written again soon after it was read.
  // Else all lies between two touches. Distances of one octave are one part.
  constexpr std::int64_t kAll = kGB + 3 * 4096;
  EXPECT_EQ(reuse[0], (Reuse{{8192, 0, 4096, 0}, {kAll, kGB + 4096, 0, 0}}));
  EXPECT_EQ(reuse[1], (Reuse{{(kAll - 4096 + kAll) / 2, 4096, 4096, 0}}));
}

// The table of an embedding is large, and few rows of it are read.
TEST(ReuseLog, NoOperandMovesMoreThanTheOpDoes) {
  ReuseLog log;
  log.count({nullptr, 0}, std::vector{operand(1, kGB), operand(2, 80), result(3, 40'000)}, moves(40'080, 40'000));
  log.count({nullptr, 1}, std::vector{operand(4, 1000), result(5, 1000)}, moves(1000, 1000));
  const auto reuse = collected(log, 2);
  EXPECT_EQ(sum(reuse[0]), (ReusedBytes{0, 40'080 + 80, 40'000, 0}));
  EXPECT_EQ(reuse[1].back().distance_bytes, 40'080 + 80 + 40'000 + 2000);
}

TEST(ReuseLog, WhatMovesNothingTouchesNothingAndTheUnknownTouchesAll) {
  for (const bool known : {true, false}) {
    ReuseLog log;
    linear(log, 0, 1, 2, 3);
    const std::vector view = {operand(4, kGB)};
    known ? log.count({nullptr, 1}, view, Work{}) : log.touch(view);
    linear(log, 0, 1, 2, 3);
    const auto reuse = collected(log, 2);
    const auto away = known ? 0 : kGB;
    EXPECT_EQ(reuse[0].back().distance_bytes, kMebibyte + 4096 + away);
    EXPECT_TRUE(reuse[1].empty());
  }
}

// ---- the distances themselves

using Part = ReuseTracker::Part;

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
