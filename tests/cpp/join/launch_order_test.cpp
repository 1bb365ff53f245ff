// Owners of launches that were recorded alone: made-up traces.

#include "join/launch_order.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace roofprof {
namespace {

// Launches in that order, each under an id of its own, from 10 on: "a b@8" runs a on stream 7 and b on stream 8.
DeviceTrace call_of(const std::string& kernels) {
  DeviceTrace trace;
  std::istringstream words(kernels);
  for (std::string word; words >> word;) {
    const auto at = word.find('@');
    KernelRecord record;
    record.name = static_cast<std::uint32_t>(trace.names.size());
    trace.names.push_back(word.substr(0, at));
    record.stream = at == std::string::npos ? 7 : static_cast<std::uint32_t>(std::stoi(word.substr(at + 1)));
    record.correlation = 100 + trace.records.size();
    record.launch = 10 + trace.records.size();
    record.start_ns = 1'000 * static_cast<std::int64_t>(trace.records.size());
    record.end_ns = record.start_ns + 10;
    record.grid = record.block = {8, 1, 1};
    trace.records.push_back(record);
  }
  return trace;
}

// The same without ids, as it is recorded alone.
DeviceTrace alone(DeviceTrace trace) {
  for (auto& record : trace.records) record.launch = kNoLaunch;
  return trace;
}

// By the names of kernels, as text: "a=10 b=11"; "-" where no order fits.
std::string owners(const DeviceTrace& observed, const DeviceTrace& other) {
  const auto found = with_owners_of(observed, alone(other));
  if (!found) return "-";
  std::string text;
  for (const auto& record : found->records) {
    text += (text.empty() ? "" : " ") + found->names[record.name] + "=" + std::to_string(record.launch);
  }
  return text;
}
std::string owners(const std::string& observed, const std::string& other) {
  return owners(call_of(observed), call_of(other));
}

TEST(LaunchOrder, TheSameLaunchesHaveTheSameOwnersAndTheirOwnTimes) {
  const auto observed = call_of("a b a");
  auto other = observed;
  for (auto& record : other.records) record.start_ns += 77, record.end_ns += 99, record.correlation += 5'000;
  std::swap(other.records[0], other.records[2]);  // records come in any order
  EXPECT_EQ(owners(observed, other), "a=12 b=11 a=10");
  const auto found = with_owners_of(observed, alone(other));
  EXPECT_EQ(found->records[2].start_ns, 77);
  EXPECT_EQ(found->records[2].end_ns, 109);
}

TEST(LaunchOrder, ALaunchMoreOrLessOrAnotherShapeFitsNot) {
  EXPECT_EQ(owners("a b", "a b b"), "-");
  EXPECT_EQ(owners("a b b", "a b"), "-");
  EXPECT_EQ(owners("a b", "a c"), "-");
  EXPECT_EQ(owners("a b", "b a"), "-");
  const auto observed = call_of("a b");
  auto other = observed;
  other.records[1].grid = {9, 1, 1};
  EXPECT_EQ(owners(observed, other), "-");
  other = observed;
  other.records[1].device = 1;
  EXPECT_EQ(owners(observed, other), "-");
  auto copies = observed;
  for (auto& record : copies.records) record.kind = KernelKind::copy;
  EXPECT_EQ(owners(copies, copies), "a=10 b=11");
  other = copies;
  other.records[1].bytes = 300;
  EXPECT_EQ(owners(copies, other), "-");
}

// Two threads launch the same kernels on streams of their own, in any order. torch hands out the streams of its pool in
// turn: the next call has others.
TEST(LaunchOrder, StreamsMayBeOthersOneForOne) {
  EXPECT_EQ(owners("a@7 a@8 b1@7 b2@8", "a@8 b2@8 a@7 b1@7"), "a=11 b2=13 a=10 b1=12");
  EXPECT_EQ(owners("a@7 b@20 c@7", "a@7 b@24 c@7"), "a=10 b=11 c=12");
  EXPECT_EQ(owners("a@7 b@20 c@7", "a@7 b@7 c@7"), "-") << "two streams became one";
}

// A graph's kernels have one launch, and records in any order.
TEST(LaunchOrder, KernelsOfAGraphAreInTheOrderOfTheirNodes) {
  auto observed = call_of("before node node node");
  for (std::size_t node : {1, 2, 3}) {
    observed.records[node].correlation = 200;
    observed.records[node].graph_node = 4 + node;
  }
  auto other = observed;
  std::swap(other.records[1].start_ns, other.records[3].start_ns);
  std::swap(other.records[1].end_ns, other.records[3].end_ns);
  EXPECT_EQ(owners(observed, other), "before=10 node=11 node=12 node=13");
  other.records[2].graph_node = 0;
  EXPECT_EQ(owners(observed, other), "-") << "launched on its own";
}

}  // namespace
}  // namespace roofprof
