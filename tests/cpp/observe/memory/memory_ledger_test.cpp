#include "observe/memory/memory_ledger.h"

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

TEST(MemoryLedger, AnOutputThatWasThereBeforeIsNotTakenFromWhatIsKept) {
  MemoryLedger ledger;
  ledger.allocated(block(1), 1000);
  const auto call = ledger.enter(kOuter, true);
  ledger.allocated(block(2), 100);
  ledger.returns(call, {block(1)});
  ledger.leave(call);
  EXPECT_EQ(by_module(ledger).at(kOuter).kept_bytes, 100);
}

TEST(MemoryLedger, CallsOfOneModuleAddUpWhatTheyKeep) {
  MemoryLedger ledger;
  for (std::uintptr_t i = 1; i <= 2; ++i) {
    const auto call = ledger.enter(kInner, true);
    ledger.allocated(block(i), 10);
    ledger.returns(call, {});
    ledger.leave(call);
  }
  const auto again = ledger.enter(kInner, false);  // recomputed in a backward
  ledger.allocated(block(3), 50);
  ledger.leave(again);
  EXPECT_EQ(by_module(ledger).at(kInner).kept_bytes, 20);
  EXPECT_EQ(by_module(ledger).at(kInner).peak_bytes, 50);
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

TEST(MemoryLedger, UnknownBlocksAndAddressesThatComeAgain) {
  MemoryLedger ledger;
  ledger.freed(block(1));
  EXPECT_EQ(ledger.live(), 0);
  ledger.allocated(block(1), 10);
  ledger.allocated(block(1), 30);
  EXPECT_EQ(ledger.live(), 30);
  EXPECT_EQ(ledger.result().peak_bytes, 30);
}

}  // namespace
}  // namespace roofprof::observe
