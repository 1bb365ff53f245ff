// What torch::nn models' rows say of calls that were seen or not, by hand.

#include "join/attribution.h"

#include <gtest/gtest.h>

#include <array>

#include "analysis/within.h"
#include "join/join.h"
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

TEST(Attribution, WorkOfAModuleThatNobodyTellsOfStandsInTheRowAbove) {
  Net net;
  const auto inferred = [&] {
    return std::array{net.made(kModel).inferred, net.made(net.custom).inferred, net.made(net.layer).inferred};
  };
  EXPECT_EQ(inferred(), (std::array{false, false, false}));
  net.observed.counting.ops.push_back(op_in_pass(2, "aten::relu", kModel, 1, 5));
  EXPECT_EQ(inferred(), (std::array{true, true, false}));
  net.observed.counting.ops.back() = op_in_pass(2, "aten::matmul", net.custom, 1, 5);
  EXPECT_EQ(inferred(), (std::array{false, true, false})) << "found by its parameters";
  net.observed.counting.clocks.clear();
  net.observed.counting.ops = {op_in_pass(2, "aten::relu", kOutside, 1, 5)};
  EXPECT_TRUE(net.made(kOutside).inferred) << "no row above was called";
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

// ---- rows of regions

TEST(Regions, AreRowsBelowTheRowTheyWereOpenedIn) {
  testing::ObservedBuilder net;
  const ModuleId layer = net.module("layer", "Linear");
  const ModuleId first = layer + 1;
  const auto rows =
      modules_with_regions(net.observed.tree.modules, {{layer, "part"}, {kModel, "loss"}, {first, "inner"}});
  ASSERT_EQ(rows.size(), 7);
  EXPECT_EQ(rows[4].path, "layer.part");
  EXPECT_EQ(rows[4].parent, layer);
  EXPECT_EQ(rows[5].path, "loss") << "the model's own path is empty";
  EXPECT_EQ(rows[6].path, "layer.part.inner") << "a region in a region";
  EXPECT_EQ(rows[6].parent, first);
  for (std::size_t id = 4; id < rows.size(); ++id) {
    EXPECT_EQ(rows[id].type, kRegionType);
    EXPECT_FALSE(rows[id].has_forward);
  }
}

TEST(Regions, HavePathsWithCallsAndWallTimes) {
  Pass counting;
  counting.regions = {{1, 1, 90}, {2, 3, 60}};
  Pass timed = counting;
  timed.regions = {{1, 1, 95}, {2, 3, 65}};
  const std::vector<RegionPath> regions = {{kNoRegion, "decode"}, {1, "step"}};
  const auto paths = region_paths(regions, counting, {counting, timed});
  ASSERT_EQ(paths.size(), 2);
  EXPECT_EQ(paths[0].wall_ns, (std::vector<std::int64_t>{90, 95}));
  EXPECT_EQ(paths[1].wall_ns, (std::vector<std::int64_t>{60, 65}));
  EXPECT_EQ(paths[1].calls, 3);
  EXPECT_EQ(paths[1].parent, 1);
  timed.regions = {{1, 1, 95}, {2, 2, 65}};
  EXPECT_TRUE(region_paths(regions, counting, {counting, timed})[1].wall_ns.empty()) << "a run opened it less often";
}

TEST(Regions, TellTheSameWorkOfAModuleApart) {
  testing::ObservedBuilder net;
  const ModuleId layer = net.module("layer", "Linear");
  net.observed.tree.regions = {{kNoRegion, "prefill"}, {kNoRegion, "decode"}};
  auto& counting = net.observed.counting;
  for (const RegionId region : {1, 2}) {
    auto op = testing::op_in_pass(1, "aten::linear", layer, region, 10 * region);
    op.owner.region = region;
    counting.ops.push_back(op);
    counting.clocks.push_back({{layer, Phase::forward, region}, region, 100 * region});
    counting.regions.push_back({region, 1, 200 * region});
  }
  counting.wall_ns = 700;
  net.observed.timed = {counting};
  const auto data = join(net.observed);
  const testing::Derived decode(within_region(data, "decode"));
  EXPECT_EQ(decode.row("layer").flops, 2'000);
  EXPECT_EQ(decode.row("layer").calls, 2);
  EXPECT_EQ(decode.row("layer").time_ns, 200);
  EXPECT_EQ(decode.row("layer").op_time_ns, 20);
  EXPECT_EQ(decode.total().wall_ns, 400);
  EXPECT_EQ(net.derived().row("layer").time_ns, 300);
}

}  // namespace
}  // namespace roofprof
