// Which bucket a launch belongs to, by hand.

#include "join/device_launches.h"

#include <gtest/gtest.h>

namespace roofprof {
namespace {

constexpr ModuleId kLayer = 3;
constexpr std::uint32_t kNonzero = 1;
constexpr std::uint32_t kNeg = 2;

OpKey inputs_of(std::uint32_t op, std::uint64_t signature, Phase phase = Phase::forward) {
  return {op, {kLayer, phase}, signature};
}

// An op whose inputs have that key.
Pass::Op op_with(const OpKey& inputs) {
  Pass::Op op;
  op.number = inputs.op;
  op.owner = inputs.owner;
  op.inputs = inputs.signature;
  return op;
}

std::int64_t bucket_of_launch(const OpKey& launch, const std::vector<Pass::Op>& ops) {
  return launch_owners({{launch, "op"}}, ops).at(0).bucket;
}

TEST(LaunchOwners, AreFoundByTheInputs) {
  const std::vector<Pass::Op> ops = {op_with(inputs_of(kNeg, 10)), op_with(inputs_of(kNeg, 20)),
                                     op_with(inputs_of(kNeg, 20, Phase::backward))};
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 10), ops), 0);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 20), ops), 1);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 20, Phase::backward), ops), 2);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 30), ops), -1);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNonzero, 10), ops), -1);
}

TEST(LaunchOwners, HaveNoBucketWhereTheSameInputsHadOtherResults) {
  const std::vector<Pass::Op> ops(2, op_with(inputs_of(kNonzero, 10)));
  EXPECT_EQ(bucket_of_launch(inputs_of(kNonzero, 10), ops), -1);
}

TEST(LaunchOwners, OfInputsWithoutABucketOfTheirOwnIsTheSharedOne) {
  const std::vector<Pass::Op> ops = {op_with(inputs_of(kNeg, 10)), op_with(inputs_of(kNeg, kAnyInputs))};
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 99), ops), 1);
}

TEST(LaunchOwners, InCompiledCodeAreTheRegions) {
  Pass::Op compiled;  // without a number: launches do not know it
  compiled.op = kCompiledRegion;
  compiled.owner = {kLayer};
  std::vector<Pass::Op> ops = {op_with(inputs_of(kNeg, 10)), compiled};
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 10), ops), 1);
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 10, Phase::backward), ops), -1);
  ops[1].costed = false;
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 10), ops), 0);
}

TEST(LaunchOwners, OfAModuleItselfHaveNoOp) {
  const auto owners = launch_owners({{}, {{0, {kLayer, Phase::backward}, 0}, ""}}, {});
  ASSERT_EQ(owners.size(), 2);
  EXPECT_EQ(owners[kNoLaunch].owner.module, kOutside);
  EXPECT_EQ(owners[1].owner.module, kLayer);
  EXPECT_EQ(owners[1].owner.phase, Phase::backward);
  EXPECT_EQ(owners[1].op, "");
  EXPECT_EQ(owners[1].bucket, -1);
}

}  // namespace
}  // namespace roofprof
