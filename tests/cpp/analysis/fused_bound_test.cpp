#include "analysis/fused_bound.h"

#include <gtest/gtest.h>

#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

// block -> fc, act, which memory bounds.
struct Fusible : ProfileBuilder {
  ModuleId block = module("block", "Block");
  ModuleId fc = module("block.fc", "Linear", block);
  ModuleId act = module("block.act", "ReLU", block);

  Fusible() {
    op("aten::linear", fc, work_of(1'000, 300'000, 100'000), 50'000);
    data.counts.ops.back().crossings = {{1, 300'000, 100'000}, {0, 300'000, 0}};
    op("aten::relu", act, work_of(1'000, 100'000, 100'000), 20'000);
    data.counts.ops.back().crossings = {{1, 100'000, 100'000}, {0, 0, 100'000}};
    time(kModel, {1'000, 1'000});
    time(block, {1'000, 1'000});
    time(fc, {50'000, 50'000});
    time(act, {20'000, 20'000});
    data.counts.crossings_known = true;
  }
};

TEST(FusedBound, BytesAreThoseThatCross) {
  const testing::Derived report = Fusible().derived();
  EXPECT_EQ(report.row("block.fc").fused_bytes, 400'000);
  EXPECT_EQ(report.row("block.act").fused_bytes, 200'000);
  EXPECT_EQ(report.row("block").fused_bytes, 400'000);
  EXPECT_EQ(report.row("").fused_bytes, 400'000);
  EXPECT_EQ(report.total().fused_bytes, 400'000);
}

TEST(FusedBound, BytesTakeTheirShareOfTheOpsTime) {
  const testing::Derived report = Fusible().derived();
  const auto& fc = report.row("block.fc");
  const auto& act = report.row("block.act");
  const auto& block = report.row("block");
  EXPECT_EQ(fc.fused_bound_time_ns, fc.lower_bound_time_ns);
  EXPECT_EQ(act.fused_bound_time_ns, act.lower_bound_time_ns);
  // The reads are three quarters of the linear's bytes, the writes half of the activation's.
  EXPECT_NEAR(static_cast<double>(*block.fused_bound_time_ns),
              0.75 * static_cast<double>(*fc.memory_time_ns) + 0.5 * static_cast<double>(*act.memory_time_ns), 2);
  EXPECT_DOUBLE_EQ(*block.percent_of_fused,
                   100.0 * static_cast<double>(*block.fused_bound_time_ns) / static_cast<double>(*block.time_ns));
  Fusible computes;  // the operations of all ops stay
  computes.data.counts.ops[1].work = work_of(1'000'000'000, 100'000, 100'000);
  const testing::Derived bound_by_compute = computes.derived();
  EXPECT_EQ(bound_by_compute.row("block").fused_bound_time_ns, bound_by_compute.row("block").compute_time_ns);
}

TEST(FusedBound, IsNeverMoreThanTheLowerBoundAndNotKnownWhereNothingTellsWhatCrosses) {
  Fusible net;
  for (auto& bucket : net.data.counts.ops) bucket.crossings = {{0, 1'000'000'000, 1'000'000'000}};  // a file may say so
  const testing::Derived report = net.derived();
  for (const auto& row : report.rows()) {
    EXPECT_LE(*row.fused_bytes, row.bytes);
    EXPECT_LE(*row.fused_bound_time_ns, *row.lower_bound_time_ns);
  }
  net.data.counts.crossings_known = false;
  const testing::Derived unknown = net.derived();
  for (const auto& row : unknown.rows()) {
    EXPECT_FALSE(row.fused_bytes || row.fused_bound_time_ns || row.percent_of_fused);
  }
}

TEST(FusedBound, OneFindingNamesTheModuleThatGains) {
  Fusible net;
  for (auto& bucket : net.data.counts.ops) {  // a tenth crosses the block's boundary
    bucket.work.read_bytes *= 10;
    bucket.work.write_bytes *= 10;
    bucket.crossings = {{1, bucket.work.read_bytes, bucket.work.write_bytes}, {0, 1'000, 1'000}};
  }
  int findings = 0;
  const testing::Derived report = net.derived();
  for (const auto& finding : report.findings()) {
    if (finding.rule != "fusion") continue;
    ++findings;
    EXPECT_EQ(finding.module, "block");
    EXPECT_EQ(finding.modules, std::vector<std::string>{"block"});
    // Of time it says no more than the gain does.
    EXPECT_NE(finding.text.find("cross its boundary"), std::string::npos) << finding.text;
    EXPECT_EQ(finding.text.find("could save"), std::string::npos) << finding.text;
  }
  EXPECT_EQ(findings, 1);
}

}  // namespace
}  // namespace roofprof
