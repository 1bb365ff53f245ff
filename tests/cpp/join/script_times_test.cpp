// What TorchScript's executor ran in place of what its modules' code has, by hand.

#include "join/host_profile.h"

#include <gtest/gtest.h>

#include "support/pass_builder.h"

namespace roofprof {
namespace {

using testing::op_in_pass;

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
  EXPECT_EQ(others.ops[1].op, "aten::view");
  EXPECT_EQ(others.ops[0].inputs_key(), (OpKey{3, {net.layer, Phase::forward}, 1}));
  EXPECT_EQ(others.ops[1].inputs_key(), (OpKey{4, {net.layer, Phase::forward}, 1}));
  ASSERT_TRUE(others.note);
  EXPECT_EQ(others.note->where, std::vector<std::string>{"layer"});
  EXPECT_EQ(
      others.note->text,
      "TorchScript's executor ran other operators than the code of its modules has (fused_mul in layer): "
      "their work is in the rows of the modules whose code has it, their time in the rows of those that ran them");
}

TEST(ScriptTimes, NothingIsSaidOfOpsThatDoNothing) {
  Fused net;
  net.timed.ops.erase(net.timed.ops.begin() + 1);
  const auto others = other_ops(net.counting, net.timed, net.observed.tree.modules);
  EXPECT_EQ(others.ops.size(), 1);
  EXPECT_FALSE(others.note);
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
