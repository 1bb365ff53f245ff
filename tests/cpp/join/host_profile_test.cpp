// What passes tell, by hand: work by op, times by the host's clock, and what is said of the count.

#include "join/host_profile.h"

#include <gtest/gtest.h>

#include "support/pass_builder.h"

namespace roofprof {
namespace {

using testing::op_in_pass;

// Two layers, one pass of so many nanoseconds for each wall time; a layer takes a tenth of it.
struct TwoLayers : testing::ObservedBuilder {
  ModuleId a = module("a", "Linear");
  ModuleId b = module("b", "ReLU");

  Pass pass(std::int64_t wall_ns) const {
    Pass pass;
    pass.ops = {op_in_pass(1, "aten::linear", a, 2, wall_ns / 20), op_in_pass(2, "aten::relu", b, 1, wall_ns / 50)};
    pass.clocks = {{{kModel, Phase::forward}, 1, wall_ns * 8 / 10},
                   {{a, Phase::forward}, 2, wall_ns / 10},
                   {{b, Phase::forward}, 1, wall_ns / 10}};
    pass.wall_ns = wall_ns;
    return pass;
  }

  HostProfile host(const Pass& counting, const std::vector<Pass>& timed) const {
    return host_profile(observed.tree.modules, counting, timed, /*in_block=*/false);
  }
};

TEST(HostProfile, RowsComeFromTheMedianPassAndSpreadsFromAll) {
  const TwoLayers net;
  const auto host = net.host(net.pass(9'000), {net.pass(3'000), net.pass(1'000), net.pass(2'000), net.pass(4'000)});
  EXPECT_EQ(host.chosen, 2) << "the lower one of an even number";
  ASSERT_EQ(host.ops.size(), 2);
  EXPECT_EQ(host.ops[0].time_ns, 100);
  EXPECT_EQ(host.ops[1].time_ns, 40);
  ASSERT_EQ(host.times.size(), 3);
  EXPECT_EQ(host.times[1].owner.module, net.a);
  EXPECT_EQ(host.times[1].calls, 2);
  EXPECT_EQ(host.times[1].self_ns, (std::vector<std::int64_t>{300, 100, 200, 400}));
}

TEST(HostProfile, CallsAndWorkComeFromTheCountingPass) {
  const TwoLayers net;
  Pass counting = net.pass(1'000);
  counting.ops[0].calls = 5;
  counting.ops[0].work = testing::work_of(7'000, 300, 20);
  const auto host = net.host(counting, {net.pass(1'000)});
  EXPECT_EQ(host.ops[0].calls, 5);
  EXPECT_EQ(host.ops[0].work, testing::work_of(7'000, 300, 20));
}

TEST(HostProfile, WithoutTimedPassesThereAreNoTimes) {
  const TwoLayers net;
  const auto host = net.host(net.pass(1'000), {});
  EXPECT_EQ(host.chosen, -1);
  EXPECT_EQ(host.ops[0].time_ns, std::nullopt);
  EXPECT_TRUE(host.times[0].self_ns.empty());
  EXPECT_EQ(host.times[0].calls, 1);
}

TEST(HostProfile, WhatBypassedTheDispatcherIsListed) {
  const TwoLayers net;
  Pass counting = net.pass(1'000);
  auto function = op_in_pass(7, "MyFunction", net.a, 3, 0);
  function.kind = Pass::Op::Kind::unobserved_function;
  function.costed = false;
  counting.ops.push_back(function);
  const auto host = net.host(counting, {});
  EXPECT_EQ(host.unobserved, (std::map<std::string, std::int64_t>{{"MyFunction", 3}}));
  EXPECT_FALSE(host.ops.back().costed) << "so that its row is a lower limit";
}

TEST(HostProfile, AModuleWithCountedWorkBelowBypassedNothing) {
  const TwoLayers net;
  for (const ModuleId module : {ModuleId{kModel}, net.b}) {
    Pass counting = net.pass(1'000);
    auto unseen = op_in_pass(7, "Wrapper", module, 1, 0);
    unseen.kind = Pass::Op::Kind::unobserved_module;
    counting.ops.push_back(unseen);
    EXPECT_EQ(net.host(counting, {}).unobserved.size(), module == kModel ? 0 : 1);
  }
}

TEST(HostProfile, NotesSayWhatTheCountMisses) {
  const TwoLayers net;
  Pass counting = net.pass(1'000);
  counting.failures = {{"mine::op", "its cost function threw"}, {"mine::other", "mine::other: no size"}};
  counting.ops_elsewhere = true;
  counting.threads_inside = 2;
  counting.unknown_backward_nodes = 3;
  EXPECT_EQ(testing::texts_of(net.host(counting, {}).notes),
            (std::vector<std::string>{
                "no cost for mine::op: its cost function threw", "no cost for mine::other: no size",
                "ops ran on other threads, outside of the model's modules: they are not counted, because they may "
                "belong to other code",
                "2 other threads were inside of modules when it ended: these calls are counted, with the work that was "
                "done by then",
                "3 backward nodes have no known forward (it ran before the profile began, or more than 65536 nodes "
                "earlier on its thread): their work is in the row (outside)"}));
}

}  // namespace
}  // namespace roofprof
