// Waits of ranks for each other, drawn by hand.

#include "analysis/ranks/collectives.h"

#include <gtest/gtest.h>

#include "analysis/ranks/rank_merger.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

// One op in one group, called at these times.
struct RankWithCalls : ProfileBuilder {
  RankWithCalls(std::int64_t rank, const std::vector<Interval>& calls, std::int64_t ranks,
                const std::string& boot = "b", const std::string& name = "c10d::allreduce_") {
    data.mode = "block";
    data.environment = {{"rank", rank}, {"world_size", ranks}, {"boot", boot}};
    op(name, kModel, work_of(0, 100, 100), 5, std::ssize(calls));
    time(kModel, {1'000});
    CollectiveBucket bucket{.bucket = 0, .group = 0, .calls = std::ssize(calls), .timed_calls = std::ssize(calls)};
    bucket.exposed_known = true;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      data.collectives.calls.push_back({0, static_cast<std::int64_t>(i), calls[i].begin_ns, calls[i].end_ns});
      bucket.time_ns += calls[i].end_ns - calls[i].begin_ns;
    }
    data.collectives.groups = {{"0", "gloo", ranks}};
    data.collectives.collectives = {bucket};
    data.collectives.time_ns = bucket.time_ns;
  }
};

Collective only_row(const ProfileData& data) {
  const auto rows = collective_rows(data);
  EXPECT_EQ(rows.size(), 1);
  return rows.at(0);
}

std::vector<std::string> notes_of(const ProfileData& data, std::string_view code) {
  std::vector<std::string> texts;
  for (const auto& note : data.notes) {
    if (note.code == code) texts.push_back(note.text);
  }
  return texts;
}

TEST(MergedCollectives, WaitIsUntilTheLastRankCallsAndTransferTheRest) {
  RankMerger merger;
  // rank 0: 100-----------------300        500---560
  // rank 1:            220------310      480-----555
  // rank 2:     150-------------290          510-550
  merger.add(RankWithCalls(0, {{100, 300}, {500, 560}}, 3).data, "0", 0, "host");
  merger.add(RankWithCalls(1, {{220, 310}, {480, 555}}, 3).data, "1", 1, "host");
  merger.add(RankWithCalls(2, {{150, 290}, {510, 550}}, 3).data, "2", 2, "another");
  const auto data = merger.finish();
  const auto row = only_row(data);
  EXPECT_EQ(row.calls, 6);
  EXPECT_EQ(row.hosts, 2);
  EXPECT_EQ(row.time_ns, 200 + 90 + 140 + 60 + 75 + 40);
  EXPECT_EQ(row.wait_ns, 120 + 0 + 70 + 10 + 30 + 0);
  EXPECT_EQ(*row.wait_ns + *row.transfer_ns, *row.time_ns);
  EXPECT_EQ(data.merged()->ranks[0].waiting_ns, 130);
  EXPECT_EQ(data.merged()->ranks[1].waiting_ns, 30);
  EXPECT_EQ(data.merged()->ranks[2].waiting_ns, 70);
  EXPECT_TRUE(data.collectives.calls.empty());
}

TEST(MergedCollectives, WithoutARankOfTheGroupWaitsAreNotKnown) {
  RankMerger merger;
  merger.add(RankWithCalls(0, {{100, 300}}, 3).data, "0");
  merger.add(RankWithCalls(1, {{220, 310}}, 3).data, "1");
  const auto data = merger.finish();
  EXPECT_FALSE(only_row(data).wait_ns);
  EXPECT_EQ(only_row(data).time_ns, 290);
  EXPECT_FALSE(data.merged()->ranks[0].waiting_ns);
}

TEST(MergedCollectives, ClocksOfOtherMachinesAreAlignedOrWaitsUnknown) {
  const auto merged = [](const std::optional<ClockOffset>& clock) {
    RankMerger merger;
    merger.add(RankWithCalls(0, {{100, 300}}, 2).data, "0");
    merger.add(RankWithCalls(1, {{1'000'220, 1'000'310}}, 2, "another").data, "1", 1, "", clock);
    return merger.finish();
  };
  const auto known = merged(ClockOffset{-1'000'000, 2'500});
  EXPECT_EQ(only_row(known).wait_ns, 120);
  ASSERT_EQ(notes_of(known, "ranks-clocks").size(), 1);
  EXPECT_NE(notes_of(known, "ranks-clocks")[0].find("at most 3 us off"), std::string::npos);
  const auto unknown = merged(std::nullopt);
  EXPECT_FALSE(only_row(unknown).wait_ns);
  ASSERT_EQ(notes_of(unknown, "ranks-clocks").size(), 1);
  EXPECT_NE(notes_of(unknown, "ranks-clocks")[0].find("clocks of other machines"), std::string::npos);
}

// An all_reduce cannot end on one rank before another has called it: these are not the same call.
TEST(MergedCollectives, CallsThatCannotBeTheSameAreNotMatched) {
  const auto merged = [](const std::string& op) {
    RankMerger merger;
    merger.add(RankWithCalls(0, {{100, 200}}, 2, "b", op).data, "0");
    merger.add(RankWithCalls(1, {{220, 310}}, 2, "b", op).data, "1");
    return merger.finish();
  };
  EXPECT_FALSE(only_row(merged("c10d::allreduce_")).wait_ns);
  // Who broadcasts need not wait for those who receive.
  EXPECT_EQ(only_row(merged("c10d::broadcast_")).wait_ns, 100);
}

}  // namespace
}  // namespace roofprof
