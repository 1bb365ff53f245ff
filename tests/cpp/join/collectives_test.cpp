// Exposed communication, drawn by hand, and collectives of passes and of kernels.

#include "join/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "support/device_builder.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::RunBuilder;
using testing::work_of;

TEST(ExposedShares, ACollectiveIsExposedWhereNothingIsComputed) {
  // call:    10---------------------60
  // computed 0---20     30--40   55-----70
  const auto shares = exposed_shares({{10, 60}}, {{30, 40}, {0, 20}, {55, 70}});
  EXPECT_DOUBLE_EQ(shares.at(0), 10 + 15);
  EXPECT_DOUBLE_EQ(exposed_shares({{10, 60}}, {}).at(0), 50);
  EXPECT_DOUBLE_EQ(exposed_shares({{10, 60}}, {{0, 100}}).at(0), 0);
  EXPECT_DOUBLE_EQ(exposed_shares({{10, 10}}, {}).at(0), 0);
  EXPECT_TRUE(exposed_shares({}, {{0, 1}}).empty());
}

TEST(ExposedShares, WhatIsUnderWayAtOnceIsSharedEqually) {
  // a: 0----------------60
  // b:      20-----40
  // computed  30-----50
  const auto shares = exposed_shares({{0, 60}, {20, 40}}, {{30, 50}});
  EXPECT_DOUBLE_EQ(shares.at(0), 20 + 5 + 10);
  EXPECT_DOUBLE_EQ(shares.at(1), 5);
}

// At each moment in which a call is under way and nothing is computed, its share goes to where the thread is.
TEST(ExposedByPlace, IsWhatRanMeanwhile) {
  std::mt19937 random(7);
  const auto next = [&](std::int64_t below) { return static_cast<std::int64_t>(random()) % below; };
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<CollectiveCall> calls;
    PassCollectives pass;
    for (std::int64_t i = next(8); i >= 0; --i) {
      const auto begin = next(900);
      calls.push_back({next(3), -1, begin, begin + next(100)});
    }
    for (std::int64_t i = next(8); i >= 0; --i) {
      const auto begin = next(900);
      pass.computed.push_back({begin, begin + next(100)});
    }
    for (std::int64_t at = 0; at < 1'000;) {  // one thread, always somewhere
      const auto end = at + 1 + next(200);
      pass.ran.push_back({{static_cast<ModuleId>(next(3)), Phase::forward, kNoRegion}, at, end});
      at = end;
    }
    std::map<std::pair<std::int64_t, ModuleId>, double> truth;
    std::vector<double> of_call(calls.size());
    for (std::int64_t at = 0; at < 1'000; ++at) {
      const auto is_at = [at](const auto& one) { return one.begin_ns <= at && at < one.end_ns; };
      if (std::ranges::any_of(pass.computed, is_at)) continue;
      const auto under_way = std::ranges::count_if(calls, is_at);
      const auto place = std::ranges::find_if(pass.ran, is_at);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        if (!is_at(calls[i])) continue;
        of_call[i] += 1.0 / static_cast<double>(under_way);
        truth[{calls[i].collective, place->owner.module}] += 1.0 / static_cast<double>(under_way);
      }
    }
    Intervals intervals;
    for (const auto& call : calls) intervals.push_back({call.begin_ns, call.end_ns});
    const auto shares = exposed_shares(intervals, pass.computed);
    for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_NEAR(shares[i], of_call[i], 1e-6);
    std::map<std::pair<std::int64_t, ModuleId>, double> found;
    for (const auto& part : exposed_by_place(calls, pass)) {
      found[{part.collective, part.owner.module}] = static_cast<double>(part.exposed_ns);
    }
    for (const auto& [key, ns] : truth) EXPECT_NEAR(found[key], ns, 0.5 + 1e-9);
  }
}

// One op in two groups of other sizes.
Pass pass_of(std::vector<CollectiveCall> calls, Intervals computed = {}) {
  Pass pass;
  Pass::Op op;
  op.number = 7;
  op.op = "c10d::allreduce_";
  op.calls = 3;
  pass.ops = {op};
  pass.collectives.groups = {{"0", "gloo", 4}, {"1", "gloo", 2}};
  pass.collectives.counts = {{0, 0, 2}, {0, 1, 1}};
  pass.collectives.calls = std::move(calls);
  pass.collectives.computed = std::move(computed);
  return pass;
}

TEST(CollectiveData, CallsAreCountedAndTimedByGroup) {
  const auto pass = pass_of({{0, 1, 100, 150}, {1, 1, 160, 200}, {0, 2, 300, 310}}, {{140, 170}});
  const auto data = collective_data(pass, &pass, {pass.ops[0]});
  const auto bucket = [](std::int64_t group, std::int64_t calls, std::int64_t time_ns, std::int64_t exposed_ns) {
    return CollectiveBucket{.bucket = 0,
                            .group = group,
                            .calls = calls,
                            .timed_calls = calls,
                            .time_ns = time_ns,
                            .exposed_ns = exposed_ns,
                            .exposed_known = true};
  };
  EXPECT_EQ(data.collectives, (std::vector{bucket(0, 2, 60, 50), bucket(1, 1, 40, 30)}));
  EXPECT_EQ(data.time_ns, 100);
  EXPECT_EQ(data.exposed_ns, 80);
  EXPECT_TRUE(notes_on_collectives(data, pass.collectives).empty());
}

TEST(CollectiveData, ExposedTimeIsWhereItWasWaitedFor) {
  auto pass = pass_of({{0, 1, 100, 150}, {1, 1, 160, 200}}, {{140, 170}});
  pass.collectives.ran = {{{3, Phase::backward, 1}, 90, 120}, {{kOutside, Phase::forward, kNoRegion}, 120, 300}};
  const auto data = collective_data(pass, &pass, {pass.ops[0]});
  const std::vector<ExposedIn> places = {{0, {kOutside, Phase::forward, kNoRegion}, 20},
                                         {0, {3, Phase::backward, 1}, 20},
                                         {1, {kOutside, Phase::forward, kNoRegion}, 30}};
  EXPECT_EQ(data.exposed_in, places);
  pass.collectives.all_ran = false;
  EXPECT_TRUE(collective_data(pass, &pass, {pass.ops[0]}).exposed_in.empty());
}

TEST(CollectiveData, WhatWasComputedAndNotKeptMakesExposureUnknown) {
  auto pass = pass_of({{0, 1, 100, 150}, {1, 1, 160, 200}});
  pass.collectives.computed_until = 155;
  const auto data = collective_data(pass, &pass, {pass.ops[0]});
  EXPECT_TRUE(data.collectives[0].exposed_known);
  EXPECT_FALSE(data.collectives[1].exposed_known);
  EXPECT_EQ(data.time_ns, 90);
  EXPECT_FALSE(data.exposed_ns);
}

TEST(CollectiveData, ACountHasNoTimes) {
  const auto pass = pass_of({{0, 1, 100, 150}});
  const auto data = collective_data(pass, nullptr, {pass.ops[0]});
  EXPECT_EQ(data.collectives[0].calls, 2);
  EXPECT_EQ(data.collectives[0].timed_calls, 0);
  EXPECT_FALSE(data.time_ns);
}

TEST(CollectiveData, WhatHasNoTimesIsReported) {
  auto pass = pass_of({});
  pass.collectives.left_out = 5;
  pass.collectives.unfinished = 1;
  const auto notes = notes_on_collectives({}, pass.collectives);
  ASSERT_EQ(notes.size(), 2);
  EXPECT_EQ(notes[0].text, "5 calls of collectives have no times: there was room for the first 4096");
  EXPECT_EQ(notes[1].text, "1 call of collectives have no times: they had not ended when the run did, or failed");
}

TEST(CollectiveData, OnADeviceKernelsTellTheTimes) {
  DeviceProfileBuilder builder;
  const auto layer = builder.module("layer", "Linear");
  const auto reduce = builder.op_index("c10d::allreduce_", layer, work_of(0, 800, 800), 2);
  const auto mm = builder.op_index("aten::mm", layer, work_of(100, 100));
  builder.data.comms.make().groups = {{"0", "nccl", 2}};
  builder.data.comms.make().collectives = {{.bucket = reduce, .group = 0, .calls = 2}};
  RunBuilder run;
  const auto of_reduce = run.owner(layer, "c10d::allreduce_", reduce);
  const auto of_mm = run.owner(layer, "aten::mm", mm);
  // nccl: 100-----------200      300---340
  // mm:        120--150    180--------310
  run.kernel("ncclDevKernel_AllReduce", of_reduce, 100, 200);
  run.kernel("gemm", of_mm, 120, 150);
  run.kernel("gemm", of_mm, 180, 310);
  run.kernel("ncclDevKernel_AllReduce", of_reduce, 300, 340);
  const auto data = with_kernels_of_collectives(*builder.data.comms, builder.data.counts.ops,
                                                launches_of(run.run.trace, run.run.owners));
  EXPECT_EQ(data.collectives[0].timed_calls, 2);
  EXPECT_EQ(data.collectives[0].exposed_ns, 20 + 30 + 30);
  EXPECT_EQ(data.time_ns, 140);
  EXPECT_EQ(data.exposed_ns, 80);
}

}  // namespace
}  // namespace roofprof
