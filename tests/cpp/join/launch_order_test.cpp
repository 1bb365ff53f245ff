// Owners of launches that were recorded alone: made-up traces.

#include "join/launch_order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace roofprof {
namespace {

// Launches in the order in which they are added, each under an id of its own.
struct Call {
  DeviceTrace trace;

  KernelRecord& kernel(const std::string& name, std::uint32_t stream = 7) {
    KernelRecord record;
    record.name = static_cast<std::uint32_t>(trace.names.size());
    trace.names.push_back(name);
    record.stream = stream;
    record.correlation = 100 + trace.records.size();
    record.launch = 10 + trace.records.size();
    record.start_ns = 1'000 * static_cast<std::int64_t>(trace.records.size());
    record.end_ns = record.start_ns + 10;
    record.grid = record.block = {8, 1, 1};
    trace.records.push_back(record);
    return trace.records.back();
  }
  KernelRecord& copy(std::int64_t bytes) {
    auto& record = kernel("");
    record.kind = KernelKind::copy;
    record.bytes = bytes;
    return record;
  }
  // The same without ids, as it is recorded alone.
  DeviceTrace alone() const {
    auto alone = trace;
    for (auto& record : alone.records) record.launch = kNoLaunch;
    return alone;
  }
};

// By the names of kernels, as text: "a=10 b=11"; "-" where no order fits.
std::string owners(const Call& observed, const DeviceTrace& alone) {
  const auto found = with_owners_of(observed.trace, alone);
  if (!found) return "-";
  std::string text;
  for (const auto& record : found->records) {
    text += (text.empty() ? "" : " ") + found->names[record.name] + "=" + std::to_string(record.launch);
  }
  return text;
}

TEST(LaunchOrder, TheSameLaunchesHaveTheSameOwnersAndTheirOwnTimes) {
  Call observed;
  observed.kernel("a");
  observed.kernel("b");
  observed.kernel("a");
  auto alone = observed.alone();
  for (auto& record : alone.records) record.start_ns += 77, record.end_ns += 99, record.correlation += 5'000;
  std::swap(alone.records[0], alone.records[2]);  // records come in any order
  const auto found = with_owners_of(observed.trace, alone);
  ASSERT_TRUE(found);
  EXPECT_EQ(owners(observed, alone), "a=12 b=11 a=10");
  EXPECT_EQ(found->records[2].start_ns, 77);
  EXPECT_EQ(found->records[2].end_ns, 109);
}

TEST(LaunchOrder, ALaunchMoreOrLessOrAnotherShapeFitsNot) {
  Call observed;
  observed.kernel("a");
  observed.kernel("b");
  Call more = observed;
  more.kernel("b");
  EXPECT_EQ(owners(observed, more.alone()), "-");
  EXPECT_EQ(owners(more, observed.alone()), "-");
  auto grid = observed.alone();
  grid.records[1].grid = {9, 1, 1};
  EXPECT_EQ(owners(observed, grid), "-");
  auto name = observed.alone();
  name.names[1] = "c";
  EXPECT_EQ(owners(observed, name), "-");
  auto device = observed.alone();
  device.records[1].device = 1;
  EXPECT_EQ(owners(observed, device), "-");
}

TEST(LaunchOrder, CopiesAreToldApartByTheirBytes) {
  Call observed;
  observed.copy(100);
  observed.copy(200);
  EXPECT_EQ(owners(observed, observed.alone()), "=10 =11");
  auto other = observed.alone();
  other.records[1].bytes = 300;
  EXPECT_EQ(owners(observed, other), "-");
}

TEST(LaunchOrder, OnOneStreamAnotherOrderFitsNot) {
  Call observed;
  observed.kernel("a");
  observed.kernel("b");
  Call other;
  other.kernel("b");
  other.kernel("a");
  EXPECT_EQ(owners(observed, other.alone()), "-");
}

// Two threads launch the same kernels on streams of their own, in any order.
TEST(LaunchOrder, ThreadsWithStreamsOfTheirOwnLaunchInAnyOrder) {
  Call observed;
  observed.kernel("a", 7);   // 10
  observed.kernel("a", 8);   // 11
  observed.kernel("b1", 7);  // 12
  observed.kernel("b2", 8);  // 13
  Call other;
  other.kernel("a", 8);
  other.kernel("b2", 8);
  other.kernel("a", 7);
  other.kernel("b1", 7);
  EXPECT_EQ(owners(observed, other.alone()), "a=11 b2=13 a=10 b1=12");
}

// torch hands out the streams of its pool in turn: the next call has others.
TEST(LaunchOrder, StreamsMayBeOthersOneForOne) {
  Call observed;
  observed.kernel("a", 7);
  observed.kernel("b", 20);
  observed.kernel("c", 7);
  auto other = observed.alone();
  other.records[1].stream = 24;
  EXPECT_EQ(owners(observed, other), "a=10 b=11 c=12");
  other.records[1].stream = 7;  // two streams became one
  EXPECT_EQ(owners(observed, other), "-");
}

// A graph's kernels have one launch, and records in any order.
TEST(LaunchOrder, KernelsOfAGraphAreInTheOrderOfTheirNodes) {
  Call observed;
  observed.kernel("before");
  for (std::uint64_t node : {5, 6, 7}) {
    auto& record = observed.kernel("node");
    record.correlation = 200;
    record.graph_node = node;
  }
  auto other = observed.alone();
  std::swap(other.records[1].start_ns, other.records[3].start_ns);
  std::swap(other.records[1].end_ns, other.records[3].end_ns);
  EXPECT_EQ(owners(observed, other), "before=10 node=11 node=12 node=13");
  other.records[2].graph_node = 0;
  EXPECT_EQ(owners(observed, other), "-") << "launched on its own";
}

TEST(LaunchOrder, IdsOfLaunchesBeginAgainAfterTheLargest) {
  Call observed;
  observed.kernel("a");
  observed.kernel("b");
  auto other = observed.alone();
  other.records[0].correlation = 0xFFFFFFFFU;
  other.records[1].correlation = 1;
  EXPECT_EQ(owners(observed, other), "a=10 b=11");
}

TEST(LaunchOrder, WhatIsSaidOfOwnersIsOfTheObservedCall) {
  Call observed;
  observed.kernel("a");
  add_note(observed.trace.notes, "graph-launches", "1 belongs to the module that captured it");
  add_note(observed.trace.notes, "kernels-missing", "of the observed call alone");
  add_note(observed.trace.notes, "launches-misplaced", "1 belongs to no module");
  add_note(observed.trace.notes, "cupti-shared", "captures were not watched");
  auto alone = observed.alone();
  alone.notes.clear();
  add_note(alone.notes, "graph-launches", "1 belongs to the module that launched it");
  const auto found = with_owners_of(observed.trace, alone);
  ASSERT_EQ(found->notes.size(), 3U);
  EXPECT_EQ(found->notes[0].text, "1 belongs to the module that captured it");
  EXPECT_EQ(found->notes[1].text, "1 belongs to no module");
  EXPECT_EQ(found->notes[2].text, "captures were not watched");
}

}  // namespace
}  // namespace roofprof
