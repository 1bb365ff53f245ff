#include "analysis/roofline.h"

#include <gtest/gtest.h>

#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::work_of;

OpBucket bucket_of(const Work& work, std::int64_t calls = 1) {
  OpBucket bucket;
  bucket.op = "aten::op";
  bucket.work = work;
  bucket.calls = calls;
  return bucket;
}

Figures figures_of(const std::vector<OpBucket>& buckets, std::optional<std::int64_t> time_ns,
                   const Ceilings& ceilings = testing::round_ceilings()) {
  Tally tally;
  for (const auto& bucket : buckets) tally.add(bucket, ceilings);
  return derive_figures(tally, {time_ns, std::nullopt}, ceilings);
}

TEST(LowerBound, IsTheLargerOfComputeAndMemory) {
  const Ceilings ceilings = testing::round_ceilings();
  // 8e6 FLOPs at 1e12/s: 8,000 ns; 1,000 bytes from L2: 1 ns.
  const auto compute = roof_shares(bucket_of(work_of(8'000'000, 600, 400)), ceilings);
  EXPECT_EQ(compute.lower_bound_time_ns, 8'000);
  EXPECT_EQ(largest_share(compute), (Bound{BoundKind::compute, "fp32"}));
  // 4e6 bytes do not fit L2: 40,000 ns from DRAM.
  const auto memory = roof_shares(bucket_of(work_of(8'000'000, 3'000'000, 1'000'000)), ceilings);
  EXPECT_EQ(memory.lower_bound_time_ns, 40'000);
  EXPECT_EQ(largest_share(memory), (Bound{BoundKind::memory, "DRAM"}));
  // In 10 calls each holds 4e5 bytes, which fit L2: 4,000 ns.
  const auto of_calls = roof_shares(bucket_of(work_of(0, 4'000'000), 10), ceilings);
  EXPECT_EQ(of_calls.lower_bound_time_ns, 4'000);
  EXPECT_EQ(largest_share(of_calls), (Bound{BoundKind::memory, "L2"}));
}

TEST(LowerBound, AddsTheDtypesOfOneOp) {
  Ceilings ceilings = testing::round_ceilings();
  ceilings.compute.push_back({DType::bf16, 4e12, testing::given_roof()});
  Work work = work_of(1'000'000, 0);
  work.operations_in(DType::bf16) = 8'000'000;
  // 1e6/1e12 + 8e6/4e12 = 1,000 + 2,000 ns; bf16 takes the larger part.
  const auto shares = roof_shares(bucket_of(work), ceilings);
  EXPECT_EQ(shares.lower_bound_time_ns, 3'000);
  EXPECT_EQ(largest_share(shares), (Bound{BoundKind::compute, "bf16"}));
}

// An update in place moves its bytes twice and holds them once: 1,000 bytes, at the curve's 1e12 B/s.
TEST(LowerBound, AnOpIsHeldAgainstTheCurveAtItsOwnFootprintAndMix) {
  Ceilings ceilings = testing::round_ceilings();
  ceilings.curve.points = {{1'000, 5e11, 5e11, 5e11, 5e11, 1e12, 0.1}, {2'000, 1e11, 1e11, 1e11, 1e11, 1e11, 0.1}};
  OpBucket in_place = bucket_of(work_of(0, 4'000));
  in_place.calls = 2;
  in_place.work.read_bytes = in_place.work.write_bytes = in_place.work.updated_bytes = 2'000;
  EXPECT_EQ(roof_shares(in_place, ceilings).lower_bound_time_ns, 4);
  in_place.work.updated_bytes = 0;
  EXPECT_EQ(roof_shares(in_place, ceilings).lower_bound_time_ns, 40);
  // The attainable rate has the curve's bandwidth, not the level's.
  OpBucket reads = bucket_of(work_of(1'000, 1'000));
  Tally tally;
  tally.add(reads, ceilings);
  EXPECT_DOUBLE_EQ(*derive_figures(tally, {}, ceilings).attainable, 5e11);
}

TEST(LowerBound, IsUnknownWithoutARoofForTheDtype) {
  const auto shares = roof_shares(bucket_of(work_of(1'000, 1'000, 0, DType::fp64)), testing::round_ceilings());
  EXPECT_FALSE(shares.known);
  const Figures figures = figures_of({bucket_of(work_of(1'000, 1'000, 0, DType::fp64))}, 10);
  EXPECT_EQ(figures.lower_bound_time_ns, std::nullopt);
  EXPECT_EQ(figures.percent_of_roof, std::nullopt);
  EXPECT_EQ(figures.wasted_time_ns, std::nullopt);
  EXPECT_EQ(figures.attainable, std::nullopt);
  EXPECT_EQ(figures.bound.kind, BoundKind::unknown);
}

TEST(LowerBound, IntegerWorkWithoutMatrixProductsNeedsNoPeak) {
  Work counter;
  counter.operations_in(DType::int64) = 1'000;
  counter.read_bytes = 8'000;
  const auto shares = roof_shares(bucket_of(counter), testing::round_ceilings());
  EXPECT_TRUE(shares.known);
  EXPECT_EQ(shares.lower_bound_time_ns, 8);
  Work product = counter;
  product.macs = 500;
  EXPECT_FALSE(roof_shares(bucket_of(product), testing::round_ceilings()).known);
}

TEST(LowerBound, SaturatesInsteadOfOverflowing) {
  const auto shares = roof_shares(bucket_of(work_of(kSaturated, 0)), [] {
    Ceilings slow;
    slow.compute = {{DType::fp32, 1e-3, {}}};
    return slow;
  }());
  EXPECT_EQ(shares.lower_bound_time_ns, kSaturated);
  EXPECT_EQ(shares.compute_time_ns, kSaturated);
}

TEST(Figures, FollowFromWorkAndTime) {
  struct Case {
    Work work;
    std::optional<std::int64_t> time_ns;
    std::optional<double> intensity, attainable;
    std::optional<std::int64_t> lower_bound_ns, wasted_ns;
    std::optional<double> percent, flops_rate;
    std::string bound;
  };
  for (const auto& expected :
       std::vector<Case>{{work_of(8'000'000, 600'000, 400'000), 16'000, 8, testing::kFp32Peak, 8'000, 8'000, 50, 5e11,
                          "compute fp32"},
                         // Below the ridge the roof slopes: 0.1 at L2's 1e12 B/s.
                         {work_of(1'000, 10'000), 100, 0.1, 0.1 * testing::kL2Bandwidth, 10, 90, 10, 1e10, "memory L2"},
                         {work_of(0, 100'000), 200, 0, 0, 100, 100, 50, 0, "memory L2"},
                         {work_of(100'000, 0), 200, {}, testing::kFp32Peak, 100, 100, 50, 5e11, "compute fp32"},
                         {Work{}, 200, {}, {}, 0, 200, {}, 0, "overhead"},
                         {work_of(8'000'000, 1'000), {}, 8'000, testing::kFp32Peak, 8'000, {}, {}, {}, "unknown"}}) {
    SCOPED_TRACE(expected.work.bytes());
    const auto figures = figures_of({bucket_of(expected.work)}, expected.time_ns);
    const auto near = [](std::optional<double> value, std::optional<double> truth) {
      ASSERT_EQ(value.has_value(), truth.has_value());
      EXPECT_DOUBLE_EQ(value.value_or(0), truth.value_or(0));
    };
    EXPECT_EQ(figures.flops, expected.work.flops());
    EXPECT_EQ(figures.bytes, expected.work.bytes());
    near(figures.intensity, expected.intensity);
    near(figures.attainable, expected.attainable);
    EXPECT_EQ(figures.lower_bound_time_ns, expected.lower_bound_ns);
    EXPECT_EQ(figures.wasted_time_ns, expected.wasted_ns);
    near(figures.percent_of_roof, expected.percent);
    near(figures.achieved_flops, expected.flops_rate);
    EXPECT_EQ(to_string(figures.bound), expected.bound);
  }
  const auto at_once = figures_of({bucket_of(work_of(1'000, 1'000))}, 0);
  EXPECT_FALSE(at_once.achieved_flops || at_once.percent_of_roof);
}

TEST(Figures, TimeOutsideOpsBeyondHalfIsOverhead) {
  OpBucket bucket = bucket_of(work_of(1'000'000, 1'000));
  bucket.time_ns = 4'999;
  EXPECT_EQ(figures_of({bucket}, 10'000).bound.kind, BoundKind::overhead);
  bucket.time_ns = 5'000;
  EXPECT_EQ(figures_of({bucket}, 10'000).bound, (Bound{BoundKind::compute, "fp32"}));
}

TEST(Figures, AnUncostedOpLeavesItsRowIncomplete) {
  OpBucket unknown = bucket_of(Work{});
  unknown.costed = false;
  const auto mixed = figures_of({unknown, bucket_of(work_of(1'000'000, 0))}, 2'000);
  EXPECT_TRUE(mixed.incomplete);
  EXPECT_EQ(mixed.lower_bound_time_ns, 1'000);
  const auto alone = figures_of({unknown}, 2'000);
  EXPECT_TRUE(alone.incomplete);
  EXPECT_EQ(alone.lower_bound_time_ns, std::nullopt);
  EXPECT_EQ(alone.compute_time_ns, std::nullopt);
  EXPECT_EQ(alone.memory_time_ns, std::nullopt);
  EXPECT_EQ(alone.wasted_time_ns, std::nullopt);
  EXPECT_EQ(alone.bound.kind, BoundKind::unknown);
}

TEST(Figures, ALowerLimitLeavesItsRowIncompleteAndCountsWhatIsKnown) {
  OpBucket limit = bucket_of(work_of(0, 400'000));
  limit.work.lower_limit = true;
  limit.time_ns = 10'000;
  const auto figures = figures_of({limit}, 10'000);
  EXPECT_TRUE(figures.incomplete);
  EXPECT_EQ(figures.bytes, 400'000);
  EXPECT_EQ(figures.intensity, std::nullopt);  // none of its operations is known, which is not 0
  EXPECT_EQ(figures.bound, (Bound{BoundKind::memory, "L2"}));
  // So far from the roof, what is not known may be what takes the time.
  limit.time_ns = 10'000'000;
  EXPECT_EQ(figures_of({limit}, 10'000'000).bound, Bound{});
  EXPECT_TRUE(figures_of({limit, bucket_of(work_of(1'000, 10))}, 10'000).incomplete);
}

TEST(Figures, ARowIsBoundByWhatTakesMostOfItsLowerBound) {
  const OpBucket compute = bucket_of(work_of(10'000'000, 1'000));  // 10,000 ns of fp32
  const OpBucket small = bucket_of(work_of(0, 1'000'000));         // 1,000 ns of L2
  const OpBucket large = bucket_of(work_of(0, 950'000'000));       // 9,500,000 ns of DRAM
  EXPECT_EQ(figures_of({compute, small}, 100'000).bound, (Bound{BoundKind::compute, "fp32"}));
  EXPECT_EQ(figures_of({compute, small, large}, 100'000'000).bound, (Bound{BoundKind::memory, "DRAM"}));
  // Each part by itself: compute's 10,000 ns, and the time of 1,000 + 1,000,000 bytes in L2, which no max hides.
  const auto both = figures_of({compute, small}, 100'000);
  EXPECT_EQ(both.compute_time_ns, 10'000);
  EXPECT_EQ(both.memory_time_ns, 1 + 1'000);
  // The sum of the buckets' bounds, not the bound of the summed work.
  EXPECT_EQ(figures_of({compute, small}, 100'000).lower_bound_time_ns, 10'000 + 1'000);
}

// 3,000 ns of FLOPs in 100,000 ns are 3%: a higher roof would take next to nothing from the time of less.
TEST(Bound, NeedsARoofThatTheTimeIsNear) {
  const auto bound_in = [](std::int64_t time_ns) {
    auto bucket = bucket_of(work_of(3'000'000, 10));
    bucket.time_ns = time_ns;
    return to_string(figures_of({bucket}, time_ns).bound);
  };
  EXPECT_EQ(bound_in(3'000), "compute fp32");
  EXPECT_EQ(bound_in(100'000), "compute fp32");
  EXPECT_EQ(bound_in(100'100), "latency/code");
  EXPECT_EQ(bound_in(100'000'000), "latency/code");
}

}  // namespace
}  // namespace roofprof
