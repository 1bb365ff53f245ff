#include "core/memory_time.h"

#include <gtest/gtest.h>

#include "analysis/roofline.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::kL2Capacity;
using testing::round_ceilings;
using testing::work_of;

constexpr std::int64_t kFar = 2 * kL2Capacity;  // in DRAM

OpBucket bucket_of(std::int64_t read, std::int64_t written, Reuse reuse, std::int64_t calls = 1) {
  OpBucket bucket;
  bucket.op = "aten::op";
  bucket.work = work_of(0, read, written);
  bucket.calls = calls;
  bucket.reuse = std::move(reuse);
  return bucket;
}

std::int64_t bound_ns(const OpBucket& bucket, const Ceilings& ceilings = round_ceilings()) {
  return roof_shares(bucket, ceilings).lower_bound_time_ns;
}

// 10,000 bytes from DRAM take 100 ns, 20,000 from L2 take 20.
TEST(MemoryTime, EachPartOfAnOpHasTheLevelThatHoldsItsDistance) {
  const auto bucket = bucket_of(25'000, 5'000, {{kL2Capacity, 15'000, 5'000, 0}, {kFar, 10'000, 0, 0}});
  const auto shares = roof_shares(bucket, round_ceilings());
  EXPECT_EQ(shares.lower_bound_time_ns, 120);
  EXPECT_EQ(shares.memory_time_ns, 120);
  EXPECT_EQ(largest_share(shares), (Bound{BoundKind::memory, "DRAM"}));
  EXPECT_DOUBLE_EQ(shares.at_level.at("L2").bytes, 20'000);
  EXPECT_DOUBLE_EQ(shares.at_level.at("DRAM").bytes, 10'000);
  EXPECT_DOUBLE_EQ(shares.bound_by_level.at("L2") + shares.bound_by_level.at("DRAM"), 120e-9);
}

// Once called 48 times, the weights stay in L2; of 48 layers they come from DRAM, though one call holds as little.
TEST(MemoryTime, OneLayerCalledAgainAndLayersCalledOnce) {
  constexpr std::int64_t kWeights = 1'000'000;
  const auto again = bucket_of(48 * kWeights, 0, {{kWeights, 48 * kWeights, 0, 0}}, 48);
  const auto layers = bucket_of(48 * kWeights, 0, {{48 * kWeights, 48 * kWeights, 0, 0}}, 48);
  EXPECT_EQ(bound_ns(again), 48'000);
  EXPECT_EQ(bound_ns(layers), 480'000);
}

TEST(MemoryTime, FartherIsNeverFaster) {
  std::int64_t before = 0;
  for (std::int64_t distance = 1; distance < (std::int64_t{1} << 62); distance *= 2) {
    const auto bound = bound_ns(bucket_of(10'000, 3'000, {{distance, 10'000, 3'000, 0}}));
    EXPECT_GE(bound, before);
    before = bound;
  }
  EXPECT_EQ(before, 130);
}

// Of 10,000 bytes the distance of 4,000 is known: they come from DRAM, the others hold 6,000 in L2.
TEST(MemoryTime, WhatIsNotKnownOfAnOpStandsAtItsFootprint) {
  const auto bucket = bucket_of(10'000, 0, {{kFar, 4'000, 0, 0}});
  EXPECT_TRUE(stands_at_footprint(bucket));
  EXPECT_EQ(bound_ns(bucket), 40 + 6);
}

// The operands of an op may hold more than it moves: an embedding's table.
TEST(MemoryTime, WhatIsTooMuchIsTakenFromAllInProportion) {
  const auto bucket = bucket_of(10'000, 1'000, {{100, 10'000, 0, 0}, {kFar, 30'000, 1'000, 0}});
  EXPECT_FALSE(stands_at_footprint(bucket));
  const auto parts = memory_parts(bucket);
  ASSERT_EQ(parts.size(), 2);
  EXPECT_EQ(parts[0].traffic.read_bytes, 2'500);
  EXPECT_EQ(parts[1].traffic.read_bytes, 7'500);
  EXPECT_EQ(parts[1].traffic.write_bytes, 1'000);
  EXPECT_EQ(bound_ns(bucket), 88);  // 2.5 + 85
}

TEST(MemoryTime, APartHasTheCurveAtItsDistanceAndItsOwnMix) {
  auto ceilings = round_ceilings();
  // Of each working set: read, triad, copy, write, update.
  ceilings.curve.points = {{1'000, 1e12, 5e11, 4e11, 2e11, 1e12, 0.1}, {100'000, 1e11, 5e10, 4e10, 2e10, 1e11, 0.2}};
  ceilings.curve.provenance.spread = 0.2;
  // 4,000 bytes are read near (4 ns), as many written far (200 ns).
  const auto bucket = bucket_of(4'000, 4'000, {{1'000, 4'000, 0, 0}, {100'000, 0, 4'000, 0}});
  EXPECT_EQ(bound_ns(bucket, ceilings), 204);
  EXPECT_DOUBLE_EQ(*memory_roof(bucket, ceilings)->spread, 0.2);
  // Both from equally far are a copy: 8,000 bytes at 4e10.
  EXPECT_EQ(bound_ns(bucket_of(4'000, 4'000, {{100'000, 4'000, 4'000, 0}}), ceilings), 200);
}

// What hardware counters saw decides: 10,000 bytes that fit into the L2, where they take 10 ns, and in DRAM 100.
TEST(MemoryTime, WhatDramWasSeenToMoveIsHeldAgainstIt) {
  auto bucket = bucket_of(8'000, 2'000, {{kL2Capacity, 8'000, 2'000, 0}});
  EXPECT_EQ(bound_ns(bucket), 10);
  // DRAM moved more than must move: all of it came from there.
  bucket.counted = CountedBytes{12'000, 9'000, 3'000};
  EXPECT_EQ(bound_ns(bucket), 100);
  EXPECT_EQ(largest_share(roof_shares(bucket, round_ceilings())), (Bound{BoundKind::memory, "DRAM"}));
  // Half of the reads and of the writes: 50 ns, and 5 for the rest in the L2.
  bucket.counted = CountedBytes{5'000, 4'000, 1'000};
  EXPECT_EQ(bound_ns(bucket), 55);
  bucket.counted = CountedBytes{5'000};  // not counted apart
  EXPECT_EQ(bound_ns(bucket), 55);
  // What is written for the op before is not the op's: it writes 2,000 itself.
  bucket.counted = CountedBytes{9'000, 0, 9'000};
  EXPECT_EQ(bound_ns(bucket), 20 + 8);
  // From as far as DRAM by reuse, but nothing was seen there.
  bucket.reuse = {{kFar, 8'000, 2'000, 0}};
  bucket.counted = CountedBytes{0, 0, 0};
  EXPECT_EQ(bound_ns(bucket), 10);
  EXPECT_FALSE(stands_at_footprint(bucket));
}

// Half of the bytes are those of a fill: these stand where reuse puts them, in the L2.
TEST(MemoryTime, WhatHasNoCountersStandsByReuse) {
  auto bucket = bucket_of(5'000, 5'000, {{kL2Capacity, 5'000, 5'000, 0}});
  bucket.counted = CountedBytes{5'000, {}, {}, 5'000};
  EXPECT_EQ(bound_ns(bucket), 50 + 5);
  bucket.counted = CountedBytes{0, {}, {}, 10'000};
  EXPECT_EQ(bound_ns(bucket), 10);
}

TEST(MemoryTime, TheCurveOfACacheHoldsWhatWasFoundThere) {
  auto ceilings = round_ceilings();
  // Of each working set: read, triad, copy, write, update.
  ceilings.curve.points = {{1'000, 1e12, 1e12, 1e12, 1e12, 1e12, 0},
                           {kL2Capacity, 5e11, 5e11, 5e11, 5e11, 5e11, 0},
                           {2 * kL2Capacity, 1e11, 5e10, 4e10, 2e10, 1e11, 0}};
  auto bucket = bucket_of(10'000, 0, {{1'000, 10'000, 0, 0}});
  bucket.counted = CountedBytes{5'000, 5'000, 0};
  EXPECT_EQ(bound_ns(bucket, ceilings), 50 + 5);  // DRAM's reads, and the near half at 1e12
  bucket.reuse = {{kFar, 10'000, 0, 0}};          // the cache's last point holds what was found
  EXPECT_EQ(bound_ns(bucket, ceilings), 50 + 10);
}

TEST(CountedSeconds, AreThoseOfDramsBytesAlone) {
  auto bucket = bucket_of(8'000, 2'000, {});
  EXPECT_FALSE(counted_seconds(bucket, round_ceilings()));
  bucket.counted = CountedBytes{12'000, 9'000, 3'000};
  EXPECT_DOUBLE_EQ(*counted_seconds(bucket, round_ceilings()), 120e-9);
  EXPECT_EQ(roof_shares(bucket, round_ceilings()).counted_bound_ns, 120);
  bucket.work = work_of(1'000'000, 8'000, 2'000);  // 1,000 ns at the peak of fp32
  EXPECT_EQ(roof_shares(bucket, round_ceilings()).counted_bound_ns, 1'000);
  auto shares = roof_shares(bucket, round_ceilings());
  shares += roof_shares(bucket_of(100, 0, {}), round_ceilings());
  EXPECT_TRUE(shares.any_counted);
  EXPECT_FALSE(shares.all_counted);
}

TEST(MemoryTime, AFileMaySayAnything) {
  const auto bucket = bucket_of(100, 100, {{-5, -7, kSaturated, 9}, {kSaturated, kSaturated, 3, -1}});
  std::int64_t read = 0;
  std::int64_t written = 0;
  for (const auto& part : memory_parts(bucket)) {
    EXPECT_GE(part.traffic.footprint_bytes(), 0);
    read += part.traffic.read_bytes;
    written += part.traffic.write_bytes;
  }
  EXPECT_EQ(read, 100);
  EXPECT_EQ(written, 100);
}

}  // namespace
}  // namespace roofprof
