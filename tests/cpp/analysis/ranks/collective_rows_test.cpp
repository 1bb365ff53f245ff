// Sizes and bandwidths of collectives, by nccl-tests' definitions (doc/PERFORMANCE.md), and the network's roof.

#include "analysis/ranks/collectives.h"

#include <gtest/gtest.h>

#include "core/collective_kinds.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

// 2 calls that each reduce 800 bytes over 4 ranks.
struct AllReduces : ProfileBuilder {
  ModuleId layer;

  AllReduces() {
    layer = module("layer", "Linear");
    op("c10d::allreduce_", layer, work_of(0, 1'600, 1'600), 10, 2);
    time(layer, {4'000});
    time(kModel, {10});
    data.comms.make().groups = {{"0", "gloo", 4}};
    data.comms.make().collectives = {{.bucket = 0,
                                      .group = 0,
                                      .calls = 2,
                                      .timed_calls = 2,
                                      .time_ns = 2'000,
                                      .exposed_ns = 500,
                                      .exposed_known = true}};
  }
  Collective row() const { return collective_rows(data).at(0); }
};

// Rows as a report has them.
class Rows {
 public:
  explicit Rows(const ProfileBuilder& profile) : derived_(profile.derived()), rows_(derived_.rows()) {
    total_ = derived_.total();
    add_communication(derived_.data(), rows_, total_);
  }
  const std::vector<RooflineRow>& all() const { return rows_; }
  const RooflineRow& row(std::string_view path) const { return row_named(path, rows_, derived_.data()); }
  const RooflineRow& total() const { return total_; }
  const testing::Derived& derived() const { return derived_; }

 private:
  testing::Derived derived_;
  std::vector<RooflineRow> rows_;
  RooflineRow total_;
};

TEST(CollectiveKinds, WireFactorsByAlgorithm) {
  const auto of = [](Algorithm algorithm, CollectiveKind kind) { return wire_factor(kind, algorithm, 8).value_or(-1); };
  EXPECT_DOUBLE_EQ(of(Algorithm::ring, CollectiveKind::all_reduce), 2 * 7.0 / 8);
  EXPECT_DOUBLE_EQ(of(Algorithm::tree, CollectiveKind::all_reduce), 3);
  EXPECT_DOUBLE_EQ(of(Algorithm::direct, CollectiveKind::all_reduce), 7);
  EXPECT_DOUBLE_EQ(of(Algorithm::tree, CollectiveKind::broadcast), 3);
  EXPECT_DOUBLE_EQ(wire_factor(CollectiveKind::broadcast, Algorithm::tree, 5).value_or(-1), 3);  // ceil(log2 5)
  EXPECT_DOUBLE_EQ(of(Algorithm::direct, CollectiveKind::all_gather), 7.0 / 8);
  EXPECT_FALSE(wire_factor(CollectiveKind::all_to_all, Algorithm::tree, 8));
}

TEST(CollectiveKinds, SizesAreOfWhatRanksHoldTogether) {
  EXPECT_EQ(message_bytes(CollectiveKind::all_gather, work_of(0, 100, 400), 4), 400);
  EXPECT_EQ(message_bytes(CollectiveKind::reduce_scatter, work_of(0, 400, 100), 4), 400);
  EXPECT_EQ(message_bytes(CollectiveKind::scatter, work_of(0, 0, 100), 4), 400);
  EXPECT_FALSE(collective_of("_c10d_functional::wait_tensor"));
  EXPECT_TRUE(is_communication("_c10d_functional::wait_tensor"));
}

TEST(CollectiveRows, BandwidthsAreOfTheTimeWhereNoWaitIsKnown) {
  const auto row = AllReduces().row();
  EXPECT_EQ(row.module, "layer");
  EXPECT_EQ(row.bytes, 1'600);
  EXPECT_EQ(row.wire_bytes, 2'400);
  EXPECT_EQ(row.time_ns, 2'000);
  EXPECT_EQ(row.exposed_ns, 500);
  EXPECT_DOUBLE_EQ(row.algorithm_bandwidth.value_or(0), 1'600 / 2e-6);
  EXPECT_DOUBLE_EQ(row.bus_bandwidth.value_or(0), 2'400 / 2e-6);
  EXPECT_FALSE(row.wait_ns);
  EXPECT_EQ(row.bound.kind, BoundKind::unknown);
}

TEST(CollectiveRows, TheNetworkIsARoof) {
  AllReduces profile;
  // 100 ns and 1,000 bytes in 0.5 us a call: 2 x 100 + 2,400 / 2e9.
  profile.data.roofs.network = {{"all_reduce", "gloo", 4, 100, 2e9, {}}, {"all_reduce", "gloo", 2, 1, 1, {}}};
  const auto row = profile.row();
  EXPECT_EQ(row.lower_bound_ns, 200 + 1'200);
  EXPECT_DOUBLE_EQ(row.percent_of_roof.value_or(0), 100 * 1'400.0 / 2'000);
  EXPECT_EQ(row.wasted_ns, 600);
  EXPECT_EQ(to_string(row.bound), "network gloo");
}

TEST(CollectiveRows, CallsWithoutTimesAreLeftOutOfBandwidths) {
  AllReduces profile;
  profile.data.comms.make().collectives[0].timed_calls = 1;
  profile.data.roofs.network = {{"all_reduce", "gloo", 4, 100, 2e9, {}}};
  const auto row = profile.row();
  EXPECT_EQ(row.bytes, 1'600);
  EXPECT_DOUBLE_EQ(row.algorithm_bandwidth.value_or(0), 800 / 2e-6);
  EXPECT_EQ(row.lower_bound_ns, 100 + 600);
}

// What `layer` caused was waited for in the model's own code, for 8 of its 10 ns, and in (outside).
struct WaitedElsewhere : AllReduces {
  WaitedElsewhere() {
    time(kOutside, {600});
    op("aten::add", kOutside, work_of(0, 50'000), 50);  // 50,000 bytes of L2: 50 ns
    data.run.mode = Mode::block;
    data.comms.make().exposed_in = {{0, {kModel, Phase::forward, kNoRegion}, 8},
                                    {0, {kOutside, Phase::forward, kNoRegion}, 492}};
  }
};

TEST(CollectiveRows, RowsHaveTheCommunicationThatTheyCauseAndWhatOfTheirTimeWasExposed) {
  const Rows report{WaitedElsewhere()};
  EXPECT_EQ(report.row("layer").communication_ns, 2'000);
  EXPECT_EQ(report.row("layer").exposed_communication_ns, 0);
  EXPECT_EQ(report.row("").communication_ns, 2'000);
  EXPECT_EQ(report.row("").exposed_communication_ns, 8);
  EXPECT_FALSE(report.row("(outside)").communication_ns);
  EXPECT_EQ(report.row("(outside)").exposed_communication_ns, 492);
  EXPECT_EQ(report.total().exposed_communication_ns, 500);
  for (const auto& row : report.all()) EXPECT_LE(row.exposed_communication_ns.value_or(0), row.time_ns.value_or(0));
  EXPECT_EQ(to_string(report.row("(outside)").bound), "network gloo");
  EXPECT_EQ(to_string(report.row("").self.bound), "network gloo");
  EXPECT_NE(report.total().bound.kind, BoundKind::network);
}

// By the network's roof 1,400 of the 2,000 ns: more than the exposed 500, which then are no waste. At a hundredth of
// its latency and at a hundred times its bandwidth 14 are.
TEST(CollectiveRows, ExposedCommunicationIsWasteButForWhatTheNetworkNeeds) {
  WaitedElsewhere profile;
  const auto outside = [&] { return Rows(profile).row("(outside)"); };
  EXPECT_EQ(outside().lower_bound_time_ns, 50);
  EXPECT_EQ(outside().wasted_time_ns, 550);
  profile.data.roofs.network = {{"all_reduce", "gloo", 4, 100, 2e9, {}}};
  EXPECT_EQ(outside().lower_bound_time_ns, 50 + 492);
  EXPECT_DOUBLE_EQ(outside().percent_of_roof.value_or(0), 100 * 542.0 / 600);
  profile.data.roofs.network = {{"all_reduce", "gloo", 4, 1, 2e11, {}}};
  EXPECT_EQ(outside().lower_bound_time_ns, 50 + 14);  // 492 of 500
  const Rows report(profile);
  EXPECT_EQ(report.total().lower_bound_time_ns,
            *report.row("").lower_bound_time_ns + *report.row("(outside)").lower_bound_time_ns);
}

TEST(CollectiveRows, BytesOfCollectivesAreHeldAgainstNoMemory) {
  AllReduces profile;
  profile.data.counts.ops[0].time_ns = 1;  // 3,200 bytes of L2 would take 3 ns
  const Rows report(profile);
  EXPECT_EQ(report.row("layer").lower_bound_time_ns, 0);
  EXPECT_TRUE(report.derived().coverage().notes.empty());
  EXPECT_EQ(to_string(report.derived().group({"op"}).at(0).bound), "network");
  EXPECT_FALSE(report.derived().group({"op"}).at(0).percent_of_roof);
}

TEST(CollectiveRows, WhatContradictsItselfIsRefused) {
  AllReduces profile;
  profile.data.comms.make().collectives[0].bucket = 1;
  EXPECT_THROW(testing::Derived{profile.data}, std::invalid_argument);
  profile.data.comms.make().collectives[0] = {.bucket = 0, .group = 0, .calls = 1, .timed_calls = 2};
  EXPECT_THROW(testing::Derived{profile.data}, std::invalid_argument);
  profile.data.comms.make().collectives[0] = {.bucket = 0, .group = 0, .calls = 1};
  profile.data.comms.make().calls = {{1, 0, 0, 0}};
  EXPECT_THROW(testing::Derived{profile.data}, std::invalid_argument);
  profile.data.comms.make().calls.clear();
  for (const ExposedIn& wrong :
       {ExposedIn{1, {kModel, Phase::forward, 0}, 1}, ExposedIn{0, {9, Phase::forward, 0}, 1},
        ExposedIn{0, {kModel, Phase::forward, 1}, 1}, ExposedIn{0, {kModel, Phase::forward, 0}, -1}}) {
    profile.data.comms.make().exposed_in = {wrong};
    EXPECT_THROW(testing::Derived{profile.data}, std::invalid_argument);
  }
}

}  // namespace
}  // namespace roofprof
