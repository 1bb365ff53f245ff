#include "observe/memory/memory_ledger.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <map>

namespace roofprof::observe {
namespace {

constexpr ModuleId kOuter = 0;
constexpr ModuleId kInner = 3;

const void* block(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

std::map<ModuleId, PassMemory::Module> by_module(const MemoryLedger& ledger) {
  std::map<ModuleId, PassMemory::Module> modules;
  for (const auto& entry : ledger.result().modules) modules.emplace(entry.module, entry);
  return modules;
}

TEST(MemoryLedger, PeaksAreAboveWhatWasThereWhenTheCallBegan) {
  MemoryLedger ledger;
  ledger.allocated(block(1), 1000);
  const auto outer = ledger.enter(kOuter, true);
  ledger.allocated(block(2), 100);
  const auto inner = ledger.enter(kInner, true);
  ledger.allocated(block(3), 30);
  ledger.freed(block(3));
  ledger.allocated(block(4), 20);
  ledger.returns(inner, {block(4)});
  ledger.leave(inner);
  ledger.freed(block(2));
  ledger.returns(outer, {block(4)});
  ledger.leave(outer);
  EXPECT_EQ(by_module(ledger).at(kOuter).peak_bytes, 130);
  EXPECT_EQ(by_module(ledger).at(kInner).peak_bytes, 30);
  EXPECT_EQ(ledger.result().peak_bytes, 1130);
  EXPECT_EQ(by_module(ledger).at(kOuter).kept_bytes, 0);
  EXPECT_EQ(ledger.live(), 1020);
}

TEST(MemoryLedger, WhatWasThereBeforeMayBeFreedAndIsNotKept) {
  MemoryLedger ledger;
  ledger.allocated(block(1), 1000);
  const auto call = ledger.enter(kOuter, true);
  ledger.freed(block(1));
  ledger.allocated(block(2), 100);
  ledger.allocated(block(3), 7);
  ledger.returns(call, {block(3), block(3), block(9), nullptr});
  ledger.leave(call);
  const auto outer = by_module(ledger).at(kOuter);
  EXPECT_EQ(outer.peak_bytes, 0);  // there was more before
  EXPECT_EQ(outer.kept_bytes, 100);
}

TEST(MemoryLedger, WithoutItsOutputsWhatACallKeepsIsNotKnown) {
  MemoryLedger ledger;
  const auto call = ledger.enter(kInner, true);
  ledger.allocated(block(1), 10);
  ledger.leave(call);
  const auto next = ledger.enter(kInner, true);
  ledger.returns(next, {});
  ledger.leave(next);
  EXPECT_EQ(by_module(ledger).at(kInner).kept_bytes, std::nullopt);
  EXPECT_EQ(by_module(ledger).at(kInner).peak_bytes, 10);
}

TEST(MemoryLedger, CallsOfSeveralThreadsMayEndInAnyOrder) {
  MemoryLedger ledger;
  const auto one = ledger.enter(kOuter, false);
  const auto other = ledger.enter(kInner, false);
  ledger.allocated(block(1), 10);
  ledger.leave(one);
  ledger.leave(one);  // nothing more
  ledger.allocated(block(2), 20);
  ledger.leave(other);
  EXPECT_EQ(by_module(ledger).at(kOuter).peak_bytes, 10);
  EXPECT_EQ(by_module(ledger).at(kInner).peak_bytes, 30);
}

TEST(MemoryLedger, BlocksMayGetTheirSizeLater) {
  MemoryLedger ledger;
  ledger.allocated(block(1), 0);
  const auto call = ledger.enter(kOuter, true);
  ledger.allocated(block(2), 0);
  ledger.resized(block(1), 5);  // was there before: it is in the peak, and not kept by the call
  ledger.resized(block(2), 100);
  ledger.resized(block(2), 40);
  ledger.resized(block(3), 1000);  // unknown
  ledger.returns(call, {});
  ledger.leave(call);
  EXPECT_EQ(ledger.live(), 45);
  EXPECT_EQ(by_module(ledger).at(kOuter).peak_bytes, 105);
  EXPECT_EQ(by_module(ledger).at(kOuter).kept_bytes, 40);
}

std::map<MemoryCategory, std::int64_t> by_category(const MemoryLedger& ledger) {
  std::map<MemoryCategory, std::int64_t> bytes;
  std::int64_t all = 0;
  const auto result = ledger.result();
  for (const auto& row : result.alive) {
    bytes[row.category] += row.bytes;
    all += row.bytes;
  }
  EXPECT_EQ(all, result.peak_bytes);
  return bytes;
}

constexpr MemoryOrigin kForward{{kInner, Phase::forward}, true, true};
constexpr MemoryOrigin kBackward{{kInner, Phase::backward}, false, false};
constexpr MemoryOrigin kStep{{kOptimizer, Phase::optimizer}, false, false};

TEST(MemoryLedger, WhatIsAliveAtThePeakHasTheCategoryThatItTurnsOutToHave) {
  MemoryLedger ledger;
  ledger.allocated(block(1), 100, kForward);  // read by the backward
  ledger.allocated(block(2), 20, kForward);   // freed by it
  ledger.allocated(block(3), 3, kForward);    // dropped by the program
  ledger.begin_op(kBackward.owner);
  ledger.allocated(block(4), 50, kBackward);  // stays: a gradient
  ledger.allocated(block(5), 7, kBackward);
  EXPECT_TRUE(ledger.use(block(1), uses::read_by_backward));
  ledger.freed(block(5), uses::freed_in_backward);
  ledger.freed(block(2), uses::freed_in_backward);
  ledger.freed(block(1));
  ledger.freed(block(3));
  ledger.allocated(block(6), 30, kStep);
  ledger.allocated(block(7), 40, kStep);
  ledger.freed(block(7), uses::freed_in_optimizer);
  EXPECT_EQ(by_category(ledger), (std::map<MemoryCategory, std::int64_t>{{MemoryCategory::activations, 120},
                                                                         {MemoryCategory::gradients, 50},
                                                                         {MemoryCategory::temporaries, 10}}));
  ledger.allocated(block(8), 1000, kStep);  // a new peak, of what is there now
  EXPECT_EQ(by_category(ledger), (std::map<MemoryCategory, std::int64_t>{{MemoryCategory::gradients, 50},
                                                                         {MemoryCategory::optimizer_state, 1030}}));
}

TEST(MemoryCurve, PointsAreTheMostOfEquallyManyOpsAndStayFew) {
  MemoryCurve curve;
  constexpr std::int64_t kOps = 10'000;
  for (std::int64_t op = 0; op < kOps; ++op) {
    curve.begin_op(kForward.owner);
    curve.note(op == 7'000 ? 500 : 1, op == 7'000 ? kBackward.owner : kForward.owner);
    if (op == 7'000) curve.note_peak();
    curve.note(1, kForward.owner);
  }
  const auto timeline = curve.result();
  EXPECT_LE(timeline.points.size(), MemoryCurve::kMostPoints);
  EXPECT_EQ(timeline.ops_per_point, 16);
  EXPECT_EQ(timeline.peak_point, 7'000 / 16);
  const auto& peak = timeline.points[7'000 / 16];
  EXPECT_EQ(peak.bytes, 500);
  EXPECT_EQ(peak.phase, Phase::backward);
  EXPECT_EQ(timeline.points.back().bytes, 1);
}

// ---- storages, of which no allocator tells

TEST(StorageWatch, ItHoldsNoMemoryItself) {
  StorageWatch watch;
  bool freed = false;
  {
    auto data = c10::InefficientStdFunctionContext::makeDataPtr(
        new char[8],
        [&freed](void* block) {
          delete[] static_cast<char*>(block);
          freed = true;
        },
        c10::kCPU);
    const c10::Storage storage(c10::Storage::use_byte_size_t(), 8, std::move(data), nullptr, false);
    watch.was_given(storage.getWeakStorageImpl());
    EXPECT_EQ(watch.ledger().live(), 8);
  }
  EXPECT_TRUE(freed);
  watch.look();
  EXPECT_EQ(watch.ledger().live(), 0);
  EXPECT_EQ(watch.ledger().result().peak_bytes, 8);
}

}  // namespace
}  // namespace roofprof::observe
