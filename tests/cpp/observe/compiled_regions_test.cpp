#include "observe/compiled_regions.h"

#include <gtest/gtest.h>

#include "core/join.h"
#include "observe/assemble.h"
#include "observe/op_info.h"
#include "support/profile_builder.h"

namespace roofprof::observe {
namespace {

OpInfo* linear() {
  static auto* info = [] {
    auto* made = new OpInfo;
    made->name = "aten::linear";
    made->kind = OpKind::counted;
    return made;
  }();
  return info;
}

Pass::Op seen(OpInfo* info, ModuleId module, std::int64_t calls, std::int64_t time_ns, Phase phase = Phase::forward) {
  Pass::Op result;
  result.key = {info, module, phase, 1};
  result.calls = calls;
  result.time_ns = time_ns;
  result.costed = info->kind != OpKind::compiled;
  if (result.costed) result.work = testing::work_of(1'000 * calls, 100 * calls);
  return result;
}

// The model calls part, which is compiled with its layer inside; the layer is called once more outside, and a list
// holds another that ran inside.
struct Compiled : testing::ProfileBuilder {
  ModuleId part = module("part", "Part");
  ModuleId layer = module("part.layer", "Linear", part);
  ModuleId list = module("part.list", "ModuleList", part);
  ModuleId listed = module("part.list.0", "Linear", list);
  ModuleId head = module("head", "Linear");
  Pass eager;
  Pass compiled;

  Compiled() {
    data.modules[static_cast<std::size_t>(list)].has_forward = false;
    eager.ops = {seen(linear(), layer, 2, 20), seen(linear(), listed, 1, 10), seen(linear(), head, 1, 10)};
    eager.clocks = {{kModel, Phase::forward, 1, 5},  {part, Phase::forward, 1, 5},   {layer, Phase::forward, 2, 30},
                    {listed, Phase::forward, 1, 15}, {layer, Phase::backward, 0, 9}, {head, Phase::forward, 1, 15}};
    compiled.ops = {seen(linear(), part, 1, 25), seen(linear(), layer, 1, 10), seen(linear(), head, 1, 11),
                    seen(compiled_region(), part, 1, 40)};
    compiled.clocks = {{kModel, Phase::forward, 1, 6},
                       {part, Phase::forward, 1, 70},
                       {layer, Phase::forward, 1, 14},
                       {part, Phase::backward, 0, 20},
                       {head, Phase::forward, 1, 16}};
    compiled.wall_ns = 126;
  }
};

TEST(CompiledRegions, TheRowOfTheRegionHasAllTimesOfWhatRanInside) {
  Compiled net;
  assemble(net.eager, {net.compiled}, net.data);
  const Report report = net.report();
  for (const auto* path : {"part.layer", "part.list", "part.list.0"}) {
    EXPECT_FALSE(report.row(path).time_ns) << path;
    EXPECT_FALSE(report.row(path).self.op_time_ns) << path;
  }
  EXPECT_EQ(report.row("part").self.time_ns, 70 + 14 + 20);
  EXPECT_EQ(report.row("part").self.op_time_ns, 25 + 40);
  EXPECT_EQ(report.row("head").time_ns, 16);
  EXPECT_EQ(report.row("head").op_time_ns, 11);
  EXPECT_EQ(report.row("").time_ns, 126);
}

TEST(CompiledRegions, TheWorkIsThatOfTheEagerTwin) {
  Compiled net;
  assemble(net.eager, {net.compiled}, net.data);
  const Report report = net.report();
  EXPECT_EQ(report.total().flops, 4'000);
  EXPECT_EQ(report.row("part.layer").flops, 2'000);
  EXPECT_EQ(report.row("part.layer").calls, 2);
  EXPECT_EQ(report.row("part").self.flops, 0);
  EXPECT_FALSE(report.total().incomplete);
}

TEST(CompiledRegions, WithoutCompiledCodeNothingIsMoved) {
  Compiled net;
  assemble(net.eager, {net.eager}, net.data);
  for (const auto& module : net.data.modules) EXPECT_EQ(module.compiled_region, -1);
  EXPECT_EQ(net.report().row("part.layer").time_ns, 30 + 9);
}

TEST(CompiledRegions, APassThatWasCountedCompiledSaysWhatItMisses) {
  Compiled net;
  assemble(net.compiled, {net.compiled}, net.data);
  const Report report = net.report();
  EXPECT_EQ(report.total().flops, 3'000);
  EXPECT_TRUE(report.row("part").incomplete);
  EXPECT_TRUE(report.row("part.list.0").incomplete);
  EXPECT_FALSE(report.row("part.list.0").calls);
  // It was called by itself: what it did there is known.
  EXPECT_EQ(report.row("part.layer").time_ns, 14);
  EXPECT_FALSE(report.row("part.layer").incomplete);
  EXPECT_FALSE(report.row("head").incomplete);
  EXPECT_EQ(report.coverage().uncosted.at(std::string(kCompiledRegion)), 1);
}

TEST(CompiledRegions, AFunctionThatWasCompiledMayHaveCalledAnyModule) {
  Compiled net;
  net.compiled.ops = {seen(compiled_region(), kOutside, 1, 40)};
  net.compiled.clocks = {{kOutside, Phase::forward, 0, 60}};
  assemble(net.compiled, {net.compiled}, net.data);
  const Report report = net.report();
  for (const auto& row : report.rows()) EXPECT_TRUE(row.incomplete) << row.path;
  EXPECT_FALSE(report.row("").calls);
}

}  // namespace
}  // namespace roofprof::observe
