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
  EXPECT_EQ(net.host(counting, {net.pass(1'000)}).ops[0].work, testing::work_of(7'000, 300, 20));
  const auto untimed = net.host(counting, {});
  EXPECT_EQ(untimed.ops[0].calls, 5);
  EXPECT_EQ(untimed.ops[0].time_ns, std::nullopt);
  EXPECT_TRUE(untimed.times[0].self_ns.empty());
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

// ---- a first call that did other work than those after it

constexpr const char* kThen = "; counts and times are those of the later calls";

struct SetsUp : testing::ObservedBuilder {
  ModuleId layer = module("layer", "Attention");
  ModuleId head = module("head", "Linear");
  Pass first;
  Pass later;

  SetsUp() {
    first.ops = {op_in_pass(1, "aten::mm", layer, 4, 50), op_in_pass(2, "aten::triu", layer, 1, 5),
                 op_in_pass(3, "aten::arange", layer, 2, 5)};
    later.ops = {op_in_pass(1, "aten::mm", layer, 4, 40)};
  }
  Note note() const { return note_on_first_call(first, later, observed.tree.modules).value(); }
};

TEST(FirstCall, NamesBothAndCountsWhatIsLeft) {
  SetsUp net;
  for (std::uint32_t op = 5; op < 8; ++op) {
    net.first.ops.push_back(op_in_pass(op, "aten::op" + std::to_string(op), net.layer, 1, 5));
  }
  net.later.ops.push_back(op_in_pass(4, "aten::add_", net.head, 2, 5));
  EXPECT_EQ(net.note().text, std::string("the first call ran 6 more operators than those after it: aten::arange (2 "
                                         "calls), aten::op5 (1 call), aten::op6 (1 call) and 2 more; and 2 fewer "
                                         "operators: aten::add_ (2 calls)") +
                                 kThen);
}

// ---- what TorchScript's executor ran in place of what its modules' code has

// The code has mul and add; the executor ran add, a kernel that it fused, and a view.
struct Fused : testing::ObservedBuilder {
  ModuleId layer = module("layer", "Linear");
  Pass counting;
  Pass timed;

  Fused() {
    counting.ops = {op_in_pass(1, "aten::mul", layer, 1, 50), op_in_pass(2, "aten::add", layer, 1, 60)};
    auto fused = op_in_pass(3, "fused_mul", layer, 4, 70);
    fused.costed = false;
    auto view = op_in_pass(4, "aten::view", layer, 1, 5);
    view.work = {};
    timed.ops = {op_in_pass(2, "aten::add", layer, 1, 65), fused, view};
  }
};

TEST(ScriptTimes, OtherOpsHaveTimesAndNoWork) {
  const Fused net;
  const auto others = other_ops(net.counting, net.timed, net.observed.tree.modules);
  ASSERT_EQ(others.ops.size(), 2);
  EXPECT_EQ(others.ops[0].op, "fused_mul");
  EXPECT_EQ(others.ops[0].time_ns, 70);
  EXPECT_EQ(others.ops[0].calls, 0) << "the code does not have it";
  EXPECT_EQ(others.ops[0].work, Work{});
  EXPECT_TRUE(others.ops[0].costed) << "the work is known: it stands where the code has it";
  EXPECT_EQ(others.ops[1].op, "aten::view") << "of which nothing is said";
  ASSERT_TRUE(others.note);
  EXPECT_EQ(others.note->where, std::vector<std::string>{"layer"});
  EXPECT_EQ(
      others.note->text,
      "TorchScript's executor ran other operators than the code of its modules has (fused_mul in layer): "
      "their work is in the rows of the modules whose code has it, their time in the rows of those that ran them");
}

TEST(ScriptTimes, TheRowHasTheTimeOfBoth) {
  Fused net;
  net.observed.counting = net.counting;
  net.observed.timed = {net.timed};
  const auto data = join(net.observed);
  ASSERT_EQ(data.counts.ops.size(), 4);
  EXPECT_EQ(data.counts.ops[0].time_ns, std::nullopt);  // mul did not run
  EXPECT_EQ(data.counts.ops[1].time_ns, 65);
  EXPECT_EQ(data.counts.ops[2].time_ns, 70);
  EXPECT_EQ(data.counts.ops[0].work.flops() + data.counts.ops[1].work.flops(), 2'000);
}

TEST(ScriptTimes, ANoteNamesWhatWasDifferentiatedAsAWhole) {
  Fused net;
  EXPECT_FALSE(note_on_differentiated(net.counting, net.observed.tree.modules));
  net.counting.differentiated_whole = {kModel, net.layer};
  const auto note = note_on_differentiated(net.counting, net.observed.tree.modules);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->where, (std::vector<std::string>{"", "layer"}));
  EXPECT_EQ(
      note->text,
      "TorchScript differentiated parts of the model, layer as a whole: their backward, and all work whose module "
      "is unknown there, is in those rows");
}

}  // namespace
}  // namespace roofprof
