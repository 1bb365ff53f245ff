// Which bucket a launch belongs to, by hand.

#include "join/device_launches.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

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
  const std::vector<Pass::Op> with_other_results(2, op_with(inputs_of(kNonzero, 10)));
  EXPECT_EQ(bucket_of_launch(inputs_of(kNonzero, 10), with_other_results), -1);
  const std::vector<Pass::Op> shared = {op_with(inputs_of(kNeg, 10)), op_with(inputs_of(kNeg, kAnyInputs))};
  EXPECT_EQ(bucket_of_launch(inputs_of(kNeg, 99), shared), 1);
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

// ---- kernels that no op launched

// Owners of launches in a pass, by hand: each has that many kernels, and a copy.
class OwnKernels : public ::testing::Test {
 protected:
  void launch(const OpKey& key, const std::string& op, int kernels) {
    keys_.push_back({key, op});
    DeviceTrace trace = pass_.device ? *pass_.device : DeviceTrace{};
    const auto id = static_cast<LaunchId>(keys_.size() - 1);
    for (int i = 0; i < kernels; ++i) trace.records.push_back({.launch = id, .start_ns = 1, .end_ns = 2});
    trace.records.push_back({.kind = KernelKind::copy, .launch = id, .start_ns = 1, .end_ns = 2});
    pass_.device = std::make_shared<const DeviceTrace>(std::move(trace));
  }
  void run(const Pass& counting) {
    ops_ = counting.ops;
    owners_ = launch_owners(keys_, ops_);
    counted_ = ops_.size();
    add_own_kernels(keys_, counting, pass_, owners_, ops_);
  }
  std::size_t added() const { return ops_.size() - counted_; }

  std::vector<LaunchKey> keys_ = {{}};
  Pass pass_;
  std::vector<LaunchOwner> owners_;
  std::vector<Pass::Op> ops_;
  std::size_t counted_ = 0;
};

TEST_F(OwnKernels, HaveAnOpWithoutACost) {
  pass_.ops = {op_with(inputs_of(kNeg, 10))};
  launch(inputs_of(kNeg, 10), "aten::neg", 1);
  launch({0, {kLayer}}, "", 3);
  launch(inputs_of(kNeg, 20), "mine::attention", 2);  // has others inside
  run(pass_);
  ASSERT_EQ(added(), 2U);
  EXPECT_EQ(ops_[1].op, "(no operator)");
  EXPECT_EQ(ops_[1].owner, Owner{kLayer});
  EXPECT_EQ(ops_[1].calls, 3);
  EXPECT_FALSE(ops_[1].costed);
  EXPECT_EQ(ops_[2].op, "mine::attention");
  EXPECT_EQ((std::array{owners_[1].bucket, owners_[2].bucket, owners_[3].bucket}),
            (std::array<std::int64_t, 3>{0, 1, 2}));
  EXPECT_EQ(owners_[2].op, "(no operator)");
}

TEST_F(OwnKernels, OutsideOfAllScopesAreOfNoOperatorEither) {
  launch({0, {kLayer}}, "", 0);
  auto trace = *pass_.device;
  trace.records.push_back({.start_ns = 1, .end_ns = 2});
  trace.records.push_back({.launch = 99, .start_ns = 1, .end_ns = 2});  // of another run
  pass_.device = std::make_shared<const DeviceTrace>(trace);
  run(pass_);
  ASSERT_EQ(added(), 1U);
  EXPECT_EQ(ops_[0].owner, Owner{kOutside});
  EXPECT_EQ(ops_[0].calls, 2);
  EXPECT_EQ(owners_[0].bucket, 0);
  EXPECT_EQ(owners_[1].bucket, -1) << "a copy alone computes nothing";
}

// TorchScript's executor fuses what was counted as single ops: the fused kernel is no op's, and its work is known.
TEST_F(OwnKernels, MayBeOpsThatWereCountedAndDidNotRunAsSuch) {
  Pass counting;
  counting.ops = {op_with(inputs_of(kNeg, 10))};
  counting.ops[0].work.operations_in(DType::fp32) = 100;
  counting.ops[0].signature = 10;
  launch({0, {kLayer}}, "", 1);
  launch({0, {kLayer, Phase::backward}}, "", 1);
  run(counting);
  ASSERT_EQ(added(), 1U);
  EXPECT_EQ(ops_[1].owner, (Owner{kLayer, Phase::backward}));
  EXPECT_EQ(owners_[1].bucket, -1);
}

}  // namespace
}  // namespace roofprof
