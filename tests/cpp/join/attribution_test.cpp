// What torch::nn models' rows say of calls that were seen or not, by hand.

#include "join/attribution.h"

#include <gtest/gtest.h>

#include "support/pass_builder.h"

namespace roofprof {
namespace {

using testing::op_in_pass;

// The model is a custom module that says its calls; it holds a custom one that does not, with a layer inside whose
// calls are intercepted, and a container.
struct Net : testing::ObservedBuilder {
  ModuleId custom = module("custom", "Custom");
  ModuleId layer = module("custom.layer", "Linear", custom);
  ModuleId list = module("list", "ModuleList");

  Net() {
    observed.torch_nn.emplace();
    observed.torch_nn->sights = {CallSight::custom, CallSight::no_module,   CallSight::no_module,
                                 CallSight::custom, CallSight::intercepted, CallSight::container};
    observed.counting.clocks = {{{kModel, Phase::forward}, 1, 10}, {{layer, Phase::forward}, 2, 10}};
    observed.counting.ops = {op_in_pass(1, "aten::linear", layer, 2, 5)};
  }
  Module made(ModuleId id) const { return join(observed).tree.modules.at(index_of(id)); }
};

TEST(Attribution, CallsAreVisibleWhereTheyWereSeenOrWouldHaveBeen) {
  Net net;
  EXPECT_TRUE(net.made(kModel).calls_visible);
  EXPECT_TRUE(net.made(net.layer).calls_visible);
  EXPECT_FALSE(net.made(net.custom).calls_visible);
  EXPECT_FALSE(net.made(net.list).calls_visible);
  net.observed.counting.clocks.pop_back();
  EXPECT_TRUE(net.made(net.layer).calls_visible) << "it was not called";
}

TEST(Attribution, WithoutWorkOfItsOwnNothingIsInferred) {
  const Net net;
  for (const ModuleId id : {ModuleId{kModel}, net.custom, net.layer, net.list}) EXPECT_FALSE(net.made(id).inferred);
}

TEST(Attribution, WorkOfAModuleThatNobodyTellsOfStandsInTheRowAbove) {
  Net net;
  net.observed.counting.ops.push_back(op_in_pass(2, "aten::relu", kModel, 1, 5));
  EXPECT_TRUE(net.made(kModel).inferred);
  EXPECT_TRUE(net.made(net.custom).inferred);
  EXPECT_FALSE(net.made(net.layer).inferred);
}

TEST(Attribution, WorkThatWasFoundByItsParametersIsInferredThereAlone) {
  Net net;
  net.observed.counting.ops.push_back(op_in_pass(2, "aten::matmul", net.custom, 1, 5));
  EXPECT_FALSE(net.made(kModel).inferred);
  EXPECT_TRUE(net.made(net.custom).inferred);
}

TEST(Attribution, WhereNoRowAboveWasCalledItStandsOutside) {
  Net net;
  net.observed.counting.clocks.clear();
  net.observed.counting.ops = {op_in_pass(2, "aten::relu", kOutside, 1, 5)};
  EXPECT_TRUE(net.made(kOutside).inferred);
  EXPECT_TRUE(net.made(kModel).inferred);
}

TEST(Attribution, AModuleTellsOfItsCallsInAnyOfItsRows) {
  Net net;
  const ModuleId again = net.module("again", "Custom");
  net.observed.tree.modules[index_of(again)].same_as = net.custom;
  net.observed.torch_nn->sights.push_back(CallSight::custom);
  EXPECT_FALSE(net.made(net.custom).calls_visible);
  net.observed.counting.clocks.push_back({{again, Phase::forward}, 1, 10});
  EXPECT_TRUE(net.made(net.custom).calls_visible);
  EXPECT_TRUE(net.made(again).calls_visible);
}

TEST(Attribution, APlaceThatIsNotCertainIsMarkedAndNamed) {
  Net net;
  const ModuleId again = net.module("list.0", "Linear", net.list);
  net.observed.tree.modules[index_of(again)].same_as = net.layer;
  net.observed.torch_nn->sights.push_back(CallSight::intercepted);
  net.observed.counting.uncertain_places = {net.layer, again};
  EXPECT_TRUE(net.made(net.layer).inferred);
  EXPECT_TRUE(net.made(again).inferred);
  EXPECT_FALSE(net.made(net.list).inferred);
  const auto notes = join(net.observed).notes;
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].code, "place-not-known");
  EXPECT_EQ(notes[0].where, (std::vector<std::string>{"custom.layer", "list.0"}));
}

TEST(Attribution, NotesSayWhoseCallsWereLeftOut) {
  Net net;
  const auto text = [&] { return join(net.observed).notes.at(0).text; };
  net.observed.others = {.calls = 1};
  EXPECT_EQ(text(),
            "while its own calls were observed, the model was called once on threads that what is profiled did not "
            "start: these "
            "calls are left out");
  net.observed.others = {.calls = 3, .inferred = true};
  EXPECT_NE(text().find("called 3 times"), std::string::npos);
  EXPECT_NE(text().find("ROOFPROF_SCOPE(*this)"), std::string::npos);
  net.observed.others = {.unclear = 2};
  net.observed.others.mixed = true;
  EXPECT_EQ(join(net.observed).notes.at(1).code, "calls-unclear");
  EXPECT_TRUE(text().starts_with("2 calls of modules on other threads are not counted")) << text();
}

TEST(Attribution, ANoteSaysWhereNothingIsIntercepted) {
  Net net;
  EXPECT_TRUE(join(net.observed).notes.empty());
  net.observed.torch_nn->intercepting = false;
  ASSERT_EQ(join(net.observed).notes.size(), 1);
  EXPECT_EQ(join(net.observed).notes[0].code, "calls-not-seen");
  EXPECT_EQ(join(net.observed).notes[0].level, NoteLevel::attention);
}

}  // namespace
}  // namespace roofprof
