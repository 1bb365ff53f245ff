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
    data.run.mode = Mode::block;
    data.run.environment = {{"rank", rank}, {"world_size", ranks}, {"boot", boot}};
    op(name, kModel, work_of(0, 100, 100), 5, std::ssize(calls));
    time(kModel, {1'000});
    CollectiveBucket bucket{.bucket = 0, .group = 0, .calls = std::ssize(calls), .timed_calls = std::ssize(calls)};
    bucket.exposed_known = true;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      data.comms.make().calls.push_back({0, static_cast<std::int64_t>(i), calls[i].begin_ns, calls[i].end_ns});
      bucket.time_ns += calls[i].end_ns - calls[i].begin_ns;
    }
    data.comms.make().groups = {{"0", "gloo", ranks}};
    data.comms.make().collectives = {bucket};
    data.comms.make().time_ns = bucket.time_ns;
  }
};

Collective only_row(const Profile& data) {
  const auto rows = collective_rows(data);
  EXPECT_EQ(rows.size(), 1);
  return rows.at(0);
}

std::vector<std::string> notes_of(const Profile& data, std::string_view code) {
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
  EXPECT_EQ(data.origin.merged()->ranks[0].waiting_ns, 130);
  EXPECT_EQ(data.origin.merged()->ranks[1].waiting_ns, 30);
  // Without a rank of the group they are not known.
  merger.add(RankWithCalls(0, {{100, 300}}, 3).data, "0");
  merger.add(RankWithCalls(1, {{220, 310}}, 3).data, "1");
  const auto lacking = merger.finish();
  EXPECT_FALSE(only_row(lacking).wait_ns);
  EXPECT_EQ(only_row(lacking).time_ns, 290);
  EXPECT_FALSE(lacking.origin.merged()->ranks[0].waiting_ns);
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
  EXPECT_NE(notes_of(known, "ranks-clocks")[0].find("at most 3 µs off"), std::string::npos);
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

// A rank's trace, by a clock of its own.
struct RankOfTrace : RankWithCalls {
  RankOfTrace(std::int64_t rank, std::vector<Interval> calls, std::int64_t ranks, std::int64_t ahead_ns,
              const std::string& group = "0")
      : RankWithCalls(rank, shifted(std::move(calls), ahead_ns), ranks, "") {
    data.origin.imported = Imported{"torch.profiler"};
    data.run.environment = {{"rank", rank}, {"recorded_steps", std::string("0-2")}};
    data.comms.make().groups[0].name = group;
  }
  static std::vector<Interval> shifted(std::vector<Interval> calls, std::int64_t ahead_ns) {
    for (auto& call : calls) call = {call.begin_ns + ahead_ns, call.end_ns + ahead_ns};
    return calls;
  }
};

// Each ends on all ranks at the same time: 300, 600, 900, 1200.
const std::vector<Interval> kEarly = {{100, 300}, {500, 600}, {800, 900}, {1'000, 1'200}};
const std::vector<Interval> kLate = {{250, 300}, {590, 600}, {870, 900}, {1'190, 1'200}};

TEST(MergedCollectives, ClocksOfTracesAreAlignedByTheEndsOfCollectives) {
  RankMerger merger;
  auto disturbed = kLate;
  disturbed[1].end_ns += 95;  // one does not move the median
  merger.add(RankOfTrace(0, kEarly, 2, 0).data, "0");
  merger.add(RankOfTrace(1, disturbed, 2, -3'000'000).data, "1");
  EXPECT_EQ(merger.finish().origin.merged()->ranks[0].waiting_ns, 150 + 90 + 70 + 190);
  merger.add(RankOfTrace(0, kEarly, 2, 0).data, "0");
  merger.add(RankOfTrace(1, kLate, 2, 7'000'000).data, "1");
  const auto data = merger.finish();
  EXPECT_EQ(data.origin.merged()->ranks[0].waiting_ns, 150 + 90 + 70 + 190);
  EXPECT_EQ(data.origin.merged()->ranks[1].waiting_ns, 0);
  EXPECT_EQ(only_row(data).transfer_ns, 2 * (50 + 10 + 30 + 10));
  const auto notes = notes_of(data, "ranks-clocks");
  ASSERT_EQ(notes.size(), 1);
  EXPECT_NE(notes[0].find("the ends of 4 or more collectives"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("rank 1 is 7000 µs ahead"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("within 0 µs"), std::string::npos) << notes[0];
}

TEST(MergedCollectives, ARankThatSharesNoGroupWithTheFirstIsAlignedToOthers) {
  RankMerger merger;
  merger.add(RankOfTrace(0, kEarly, 2, 0, "a").data, "0");
  auto both = RankOfTrace(1, kLate, 2, 5'000'000, "a").data;
  // The same calls in another group, which rank 2 shares.
  both.comms.make().groups.push_back({"b", "gloo", 2});
  both.comms.make().collectives.push_back(both.comms.make().collectives[0]);
  both.comms.make().collectives[1].group = 1;
  both.counts.ops[0].calls *= 2;
  both.counts.ops[0].work = work_of(0, 200, 200);
  const auto calls = both.comms->calls;
  for (auto call : calls) {
    call.collective = 1;
    both.comms.make().calls.push_back(call);
  }
  merger.add(both, "1");
  merger.add(RankOfTrace(2, kEarly, 2, -9'000'000, "b").data, "2");
  const auto data = merger.finish();
  EXPECT_EQ(data.origin.merged()->ranks[0].waiting_ns, 150 + 90 + 70 + 190);
  EXPECT_EQ(data.origin.merged()->ranks[1].waiting_ns, 0);
  EXPECT_EQ(data.origin.merged()->ranks[2].waiting_ns, 150 + 90 + 70 + 190);
}

TEST(MergedCollectives, WhereClocksCannotBeAlignedWaitsAreNotKnown) {
  const auto waits = [](const Profile& second) {
    RankMerger merger;
    merger.add(RankOfTrace(0, kEarly, 2, 0).data, "0");
    merger.add(second, "1");
    const auto data = merger.finish();
    EXPECT_FALSE(only_row(data).wait_ns);
    return notes_of(data, "ranks-clocks").at(0);
  };
  // Two calls do not show whether they agree.
  EXPECT_NE(waits(RankOfTrace(1, {kLate[0], kLate[1]}, 2, 10).data).find("the clock of rank 1 could not be aligned"),
            std::string::npos);
  // These end at times that are not those of the same calls.
  const std::vector<Interval> strange = {{0, 10}, {5'000, 5'010}, {90'000, 90'010}, {91'000, 91'010}};
  EXPECT_NE(waits(RankOfTrace(1, strange, 2, 0).data).find("the clock of rank 1 could not be aligned"),
            std::string::npos);
  // Another size: another call.
  auto larger = RankOfTrace(1, kLate, 2, 0).data;
  larger.counts.ops[0].work = work_of(0, 1'000, 1'000);
  larger.counts.ops[0].shapes.others = true;
  RankMerger merger;
  merger.add(RankOfTrace(0, kEarly, 2, 0).data, "0");
  merger.add(larger, "1");
  EXPECT_FALSE(merger.finish().origin.merged()->ranks[0].waiting_ns);
  // Other steps: their calls have the same numbers and are others.
  auto later = RankOfTrace(1, kLate, 2, 0).data;
  later.run.environment[1].second = std::string("3-5");
  RankMerger steps;
  steps.add(RankOfTrace(0, kEarly, 2, 0).data, "0");
  steps.add(later, "1");
  const auto data = steps.finish();
  EXPECT_FALSE(data.origin.merged()->ranks[0].waiting_ns);
  EXPECT_EQ(notes_of(data, "ranks-differ").at(0),
            "the range of recorded steps is not the same on all ranks: 0-2 on rank 0, 3-5 on rank 1");
}

TEST(MergedCollectives, RanksOfOneHostHaveOneClockWhereEndsTellNothing) {
  RankMerger merger;
  for (const std::int64_t rank : {0, 1}) {
    auto data = RankOfTrace(rank, {rank == 0 ? kEarly[0] : kLate[0]}, 2, 0).data;
    data.run.environment.emplace_back("host", std::string("node1"));
    merger.add(data, std::to_string(rank));
  }
  const auto data = merger.finish();
  EXPECT_EQ(data.origin.merged()->ranks[0].waiting_ns, 150);
  EXPECT_NE(notes_of(data, "ranks-clocks").at(0).find("rank 1 is taken to have the clock of rank 0"),
            std::string::npos);
}

// Groups of one name with other members are other groups: split_group() names those of all ranks alike.
TEST(MergedCollectives, GroupsOfOneNameAreDistinguishedByTheirRanks) {
  RankMerger merger;
  for (const std::int64_t rank : {0, 1, 2, 3}) {
    auto data = RankOfTrace(rank, rank % 2 == 0 ? kEarly : kLate, 2, 0).data;
    data.comms.make().groups[0].members = rank < 2 ? "[0, 1]" : "[2, 3]";
    merger.add(data, std::to_string(rank));
  }
  const auto data = merger.finish();
  EXPECT_EQ(collective_rows(data).size(), 2);
  EXPECT_EQ(data.origin.merged()->ranks[0].waiting_ns, 150 + 90 + 70 + 190);
  // Ranks 2 and 3 share nothing with the others.
  EXPECT_FALSE(data.origin.merged()->ranks[2].waiting_ns);
}

}  // namespace
}  // namespace roofprof
