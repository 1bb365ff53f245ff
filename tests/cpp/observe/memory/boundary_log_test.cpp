#include "observe/memory/boundary_log.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>
#include <gtest/gtest.h>

#include <vector>

namespace roofprof::observe {
namespace {

using View = TouchedParts::View;

View dense(std::int64_t begin, std::int64_t end) { return {begin, end, end - begin, 0}; }

TEST(TouchedParts, CountEachByteOnce) {
  TouchedParts parts;
  EXPECT_EQ(parts.add(dense(0, 100), 100), 100);
  EXPECT_EQ(parts.add(dense(0, 100), 100), 0);
  EXPECT_EQ(parts.add(dense(50, 150), 100), 50);
  EXPECT_EQ(parts.add(dense(200, 300), 100), 100);
  EXPECT_EQ(parts.add(dense(20, 280), 260), 50);
  EXPECT_EQ(parts.add(dense(0, 300), 300), 0);
}

TEST(TouchedParts, TellViewsWithGapsApart) {
  TouchedParts parts;
  const View left{0, 196, 100, 7};
  const View right{4, 200, 100, 7};
  EXPECT_EQ(parts.add(left, 100), 100);
  EXPECT_EQ(parts.add(right, 100), 100);
  EXPECT_EQ(parts.add(left, 100), 0);
  EXPECT_EQ(parts.add(dense(0, 200), 200), 0);
  EXPECT_EQ(parts.add(right, 100), 0);
}

// The model, the rows beside it, and an outer module with two inner ones.
constexpr ModuleId kBlock = 3;
constexpr ModuleId kFirst = 4;
constexpr ModuleId kSecond = 5;

struct Storage {
  c10::intrusive_ptr<c10::StorageImpl> impl = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), std::size_t{100}, c10::GetCPUAllocator(), false);

  Operand as(Operand::Kind kind) const { return {{0, 100, 100}, 0, kind, impl.get(), 0, 0}; }
};

struct Log {
  BoundaryLog log{{-1, -1, -1, kModel, kBlock, kBlock}};
  std::vector<Pass::Op> ops = std::vector<Pass::Op>(4);

  // Reads one storage and writes another one.
  void op(std::uint32_t bucket, Owner owner, const Storage& from, const Storage& to) {
    const std::vector<Operand> operands = {from.as(Operand::Kind::input), to.as(Operand::Kind::result)};
    Work work;
    work.read_bytes = work.write_bytes = 100;
    log.count({&ops, bucket}, owner, operands, work);
  }
  const Crossings& crossings(std::size_t bucket) {
    if (!collected) log.collect(ops, [](auto place) { return place.second; });
    collected = true;
    return ops[bucket].crossings;
  }
  bool collected = false;
};

TEST(BoundaryLog, WhatStaysInsideCrossesTheInnerBoundariesAlone) {
  Log log;
  const Storage input;
  const Storage output;
  log.log.enter(kModel, Phase::forward);
  log.log.enter(kBlock, Phase::forward);
  {
    const Storage between;
    log.log.enter(kFirst, Phase::forward);
    log.op(0, {kFirst}, input, between);
    log.log.leave(kFirst, Phase::forward);
    log.log.enter(kSecond, Phase::forward);
    log.op(1, {kSecond}, between, output);
    log.log.leave(kSecond, Phase::forward);
  }
  log.log.leave(kBlock, Phase::forward);
  log.log.leave(kModel, Phase::forward);
  EXPECT_EQ(log.crossings(0), (Crossings{{1, 100, 100}, {2, 100, 0}}));
  EXPECT_EQ(log.crossings(1), (Crossings{{1, 100, 100}, {2, 0, 100}}));
}

TEST(BoundaryLog, TellsWhatNothingReads) {
  const auto crossings = [](bool read, bool by_others) {
    Log log;
    const Storage input;
    const Storage output;
    log.log.enter(kModel, Phase::forward);
    log.log.enter(kBlock, Phase::forward);
    {
      const Storage branch;
      log.log.enter(kFirst, Phase::forward);
      log.op(0, {kFirst}, input, branch);
      log.log.leave(kFirst, Phase::forward);
      if (read) log.op(1, {kBlock}, branch, output);
      if (by_others) log.log.read_by_others(branch.impl.get());
    }
    log.log.leave(kBlock, Phase::forward);
    log.log.leave(kModel, Phase::forward);
    return log.crossings(0);
  };
  EXPECT_EQ(crossings(true, false), (Crossings{{1, 100, 100}, {2, 100, 0}}));
  EXPECT_EQ(crossings(false, true), (Crossings{{1, 100, 100}, {2, 100, 0}}));
  EXPECT_EQ(crossings(false, false), (Crossings{{1, 100, 100, 100}, {2, 100, 0}}));
}

TEST(BoundaryLog, TheBackwardIsOneExecutionUntilTheNextForward) {
  Log log;
  const Storage weights;
  const Storage gradient;
  for (int step = 0; step < 2; ++step) {
    log.log.enter(kModel, Phase::forward);
    log.log.leave(kModel, Phase::forward);
    log.op(0, {kFirst, Phase::backward}, weights, gradient);
    log.op(0, {kFirst, Phase::backward}, weights, gradient);
  }
  EXPECT_EQ(log.crossings(0), (Crossings{{3, 200, 200}}));
}

TEST(BoundaryLog, WorkWithoutTensorsCrossesEveryBoundary) {
  Log log;
  Work work;
  work.read_bytes = 30;
  work.write_bytes = 20;
  log.log.count({&log.ops, 2}, {kFirst}, {}, work);
  EXPECT_EQ(log.crossings(2), (Crossings{{3, 30, 20}}));
}

}  // namespace
}  // namespace roofprof::observe
