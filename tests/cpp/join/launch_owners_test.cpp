// Which bucket a launch belongs to, by hand.

#include "join/launch_owners.h"

#include <gtest/gtest.h>

namespace roofprof {
namespace {

constexpr ModuleId kLayer = 3;
constexpr std::uint32_t kNonzero = 1;
constexpr std::uint32_t kNeg = 2;

OpKey inputs_of(std::uint32_t op, std::uint64_t signature, Phase phase = Phase::forward) {
  return {op, {kLayer, phase}, signature};
}

OpBucket bucket(const std::string& op, Phase phase = Phase::forward) {
  OpBucket bucket;
  bucket.op = op;
  bucket.owner = {kLayer, phase};
  return bucket;
}

std::int64_t bucket_of_launch(const OpKey& launch, const std::vector<OpBucket>& ops, const std::vector<OpKey>& inputs) {
  return launch_owners({{launch, "op"}}, ops, inputs).at(0).bucket;
}

TEST(LaunchOwners, AreFoundByTheInputs) {
  const std::vector<OpBucket> ops = {bucket("aten::neg"), bucket("aten::neg"), bucket("aten::neg", Phase::backward)};
  const std::vector<OpKey> inputs = {inputs_of(kNeg, 10), inputs_of(kNeg, 20), inputs_of(kNeg, 20, Phase::backward)};
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 10), ops, inputs), 0);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 20), ops, inputs), 1);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 20, Phase::backward), ops, inputs), 2);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 30), ops, inputs), -1);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNonzero, 10), ops, inputs), -1);
}

TEST(LaunchOwners, HaveNoBucketWhereTheSameInputsHadOtherResults) {
  const std::vector<OpBucket> ops = {bucket("aten::nonzero"), bucket("aten::nonzero")};
  EXPECT_EQ(bucket_of_launch(inputs_of(kNonzero, 10), ops, {inputs_of(kNonzero, 10), inputs_of(kNonzero, 10)}), -1);
}

TEST(LaunchOwners, OfInputsWithoutABucketOfTheirOwnIsTheSharedOne) {
  const std::vector<OpBucket> ops = {bucket("aten::neg"), bucket("aten::neg")};
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 99), ops, {inputs_of(kNeg, 10), inputs_of(kNeg, kAnyInputs)}), 1);
}

TEST(LaunchOwners, InCompiledCodeAreTheRegions) {
  // The region's op stands behind those that launches know.
  const std::vector<OpBucket> ops = {bucket("aten::neg"), bucket(std::string(kCompiledRegion))};
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 10), ops, {inputs_of(kNeg, 10)}), 1);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 10, Phase::backward), ops, {inputs_of(kNeg, 10)}), -1);
  auto uncounted = ops;
  uncounted[1].costed = false;
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 10), uncounted, {inputs_of(kNeg, 10)}), 0);
}

TEST(LaunchOwners, OfAModuleItselfHaveNoOp) {
  const auto owners = launch_owners({{}, {{0, {kLayer, Phase::backward}, 0}, ""}}, {}, {});
  ASSERT_EQ(owners.size(), 2);
  EXPECT_EQ(owners[kNoLaunch].owner.module, kOutside);
  EXPECT_EQ(owners[1].owner.module, kLayer);
  EXPECT_EQ(owners[1].owner.phase, Phase::backward);
  EXPECT_EQ(owners[1].op, "");
  EXPECT_EQ(owners[1].bucket, -1);
}

}  // namespace
}  // namespace roofprof
