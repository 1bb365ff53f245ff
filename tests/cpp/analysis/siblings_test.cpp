#include "analysis/siblings/siblings.h"

#include <gtest/gtest.h>

#include <memory>

#include "analysis/memory_rows.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

// Layers of a norm and an mlp; fp32 work: 1,000 FLOPs take 1 ns.
struct Layers : ProfileBuilder {
  ModuleId list = module("layers", "ModuleList");

  ModuleId add(const std::string& name, std::int64_t ns, std::int64_t flops = 1'000'000) {
    const std::string path = "layers." + name;
    const ModuleId layer = module(path, "Layer", list);
    const ModuleId norm = module(path + ".norm", "LayerNorm", layer);
    const ModuleId mlp = module(path + ".mlp", "Linear", layer);
    op("aten::layer_norm", norm, work_of(2'000, 1'000), 100);
    op("aten::linear", mlp, work_of(flops, 10'000), ns);
    time(norm, {110, 110});
    time(mlp, {ns, 2 * ns});
    time(layer, {10, 10});
    return layer;
  }
  std::vector<Siblings> siblings() const {
    const testing::Derived report = derived();
    return report.siblings();
  }
};

std::vector<std::string> names_of(const std::vector<Siblings>& groups) {
  std::vector<std::string> names;
  for (const auto& group : groups) names.push_back(group.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Siblings, MeanTimesCountIsTheSumOfTheMembers) {
  Layers net;
  for (const int ns : {2'000, 4'000, 3'000, 5'000}) net.add(std::to_string(net.data.tree.modules.size() / 3 - 1), ns);
  const testing::Derived report = net.derived();
  const auto groups = report.siblings();
  ASSERT_EQ(names_of(groups), Names{"layers.0-3"});
  const Siblings& group = groups[0];
  EXPECT_EQ(group.paths, (Names{"layers.0", "layers.1", "layers.2", "layers.3"}));
  EXPECT_EQ(group.count, 4);
  ASSERT_EQ(group.rows.size(), 3U);
  EXPECT_EQ(group.rows[2].path, "layers.0-3.mlp");
  const auto sum = [&](const std::string& below, auto member) {
    std::int64_t all = 0;
    for (const auto& path : group.paths) all += *(report.row(path + below).*member);
    return all;
  };
  const RooflineRow& mean = group.mean();
  EXPECT_EQ(mean.time_ns, 3'500 + 120);
  EXPECT_EQ(*mean.time_ns * 4, sum("", &RooflineRow::time_ns));
  EXPECT_EQ(*mean.wasted_time_ns * 4, sum("", &RooflineRow::wasted_time_ns));
  EXPECT_EQ(*group.rows[2].time_ns * 4, sum(".mlp", &RooflineRow::time_ns));
  EXPECT_EQ(mean.flops, 1'002'000);
  EXPECT_EQ(mean.macs, report.row("layers.0").macs);
  EXPECT_EQ(mean.bytes, 11'000);
  EXPECT_EQ(mean.calls, 1);
  EXPECT_EQ(mean.self.time_ns, 10);
  // Of the sums: 4 x 1,002,000 FLOPs in 14,480 ns, not the mean of four rates.
  EXPECT_DOUBLE_EQ(*mean.achieved_flops, 4 * 1'002'000 / 14'480e-9);
  EXPECT_DOUBLE_EQ(*mean.percent_of_roof, 100.0 * static_cast<double>(4 * *mean.lower_bound_time_ns) / 14'480);
  EXPECT_EQ(mean.depth, report.row("layers.0").depth);
  EXPECT_DOUBLE_EQ(*group.spread, (5'120.0 - 2'120) / ((3'120.0 + 4'120) / 2));
  EXPECT_DOUBLE_EQ(*mean.time_spread, 14'000.0 / (14'480 + 7'000));  // over the runs, all members together
}

TEST(Siblings, DifferInNothingButTimes) {
  const auto groups_after = [](auto change) {
    Layers net;
    for (int i = 0; i < 3; ++i) net.add(std::to_string(i), 1'000 + i);
    change(net);
    return names_of(net.siblings());
  };
  const auto last = [](Layers& net) -> Module& { return net.data.tree.modules.back(); };
  EXPECT_EQ(groups_after([](Layers&) {}), Names{"layers.0-2"});
  EXPECT_EQ(groups_after([&](Layers& net) { last(net).type = "Other"; }), Names{});
  EXPECT_EQ(groups_after([&](Layers& net) { last(net).path = "layers.2.ffn"; }), Names{});
  EXPECT_EQ(groups_after([&](Layers& net) { last(net).input_shapes = {{1, 2}}; }), Names{});
  EXPECT_EQ(groups_after([&](Layers& net) { last(net).inferred = true; }), Names{});
  EXPECT_EQ(groups_after([](Layers& net) { net.data.counts.ops.back().work.read_bytes = 1; }), Names{});
  EXPECT_EQ(groups_after([](Layers& net) { net.data.counts.ops.back().costed = false; }), Names{});
  EXPECT_EQ(groups_after([](Layers& net) { net.data.counts.ops.back().owner.phase = Phase::recompute; }), Names{});
  EXPECT_EQ(groups_after([](Layers& net) { net.data.times.make().modules.back().calls = 2; }), Names{});
  EXPECT_EQ(groups_after([](Layers& net) { net.data.counts.unobserved["layers.2.mlp"] = 1; }), Names{});
}

TEST(Siblings, BlocksFoldAcrossOthersAndStepsDoNot) {
  Layers net;
  for (int i = 0; i < 12; ++i) net.add(std::to_string(i), 1'000, i % 6 == 5 ? 5'000'000 : 1'000'000);
  net.add("12", 1'000, 5'000'000);
  EXPECT_EQ(names_of(net.siblings()), (Names{"layers.0-4, 6-10", "layers.5, 11-12"}));
  Layers pieces;
  for (int i = 0; i < 10; ++i) pieces.add(std::to_string(i), 1'000, i % 2 == 0 ? 1'000 : 2'000);
  EXPECT_EQ(names_of(pieces.siblings()), (Names{"layers.0, 2, ..., 8", "layers.1, 3, ..., 9"}));

  ProfileBuilder steps;
  const ModuleId sequence = steps.module("net", "Sequential");
  for (const int i : {0, 1, 2, 4, 6, 7, 8})
    steps.module("net." + std::to_string(i), i == 4 ? "ReLU" : "Linear", sequence);
  const testing::Derived report = steps.derived();
  EXPECT_EQ(names_of(report.siblings()), (Names{"net.0-2", "net.6-8"}));
}

TEST(Siblings, NamesTellWhetherTheyAreNumbered) {
  ProfileBuilder net;
  for (const char* name : {"query", "key", "value", "conv1", "conv2", "conv3", "x01", "x02", "x03", "a1", "b2", "c3"}) {
    net.module(name, "Linear");
  }
  const testing::Derived report = net.derived();
  const auto groups = report.siblings();
  EXPECT_EQ(names_of(groups), Names{"conv1-3"});
  EXPECT_FALSE(groups[0].spread);  // nothing was timed
}

TEST(Siblings, FoldInsideOthers) {
  ProfileBuilder net;
  for (int i = 0; i < 4; ++i) {
    const std::string path = "layer" + std::to_string(i);
    const ModuleId layer = net.module(path, "MoE");
    for (int j = 0; j < 3; ++j) {
      const ModuleId expert = net.module(path + "." + std::to_string(j), "Linear", layer);
      net.op("aten::linear", expert, work_of(1'000, 10), 10 * i + j);
      net.time(expert, {10 * i + j});
    }
  }
  const testing::Derived report = net.derived();
  const auto groups = report.siblings();
  ASSERT_EQ(names_of(groups), (Names{"layer0-3", "layer0-3.0-2"}));
  EXPECT_EQ(groups[0].rows.size(), 2U);
  EXPECT_EQ(groups[1].count, 3);
  ASSERT_EQ(groups[1].paths.size(), 12U);
  EXPECT_EQ(groups[1].paths[3], "layer1.0");
  EXPECT_EQ(groups[1].mean().time_ns, 16);  // the mean of 0, 1, 2, 10 ... 32
  EXPECT_EQ(groups[0].mean().time_ns, 48);
  EXPECT_EQ(groups[0].mean().flops, 3'000);
  EXPECT_EQ(groups[1].mean().flops, 1'000);
  std::int64_t sum = 0;
  for (const auto& row : report.analysis().folded_rows()) {
    sum += row.mean.self.flops * std::ssize(row.members);
  }
  EXPECT_EQ(sum, report.total().flops);
}

TEST(Siblings, ASlowOneStandsOutFromTheOthersNotFromTheirNoise) {
  const auto slowest = [](const std::vector<int>& times) {
    Layers net;
    for (const int ns : times) net.add(std::to_string(net.data.tree.modules.size() / 3 - 1), ns - 120);
    const auto groups = net.siblings();
    return groups.at(0).slowest;
  };
  EXPECT_EQ(slowest({1'000, 1'010, 990, 2'100, 1'005}), "layers.3");
  EXPECT_EQ(slowest({1'000, 1'000, 2'000}), "layers.2");
  EXPECT_EQ(slowest({1'000, 1'000, 1'000, 1'190}), std::nullopt);                 // 19% is not worth a word
  EXPECT_EQ(slowest({1'000, 1'200, 800, 1'400, 700, 1'250}), std::nullopt);       // they all scatter
  EXPECT_EQ(slowest({1'000, 1'010, 990, 1'900, 2'100, 1'005, 995}), "layers.4");  // two slow ones hide no third
}

// Three equal layers, and everything that can name a module names the last one of each, whose number the folded profile
// has not.
Profile with_all_kinds_of_places() {
  Layers net;
  for (int i = 0; i < 3; ++i) net.add(std::to_string(i), 1'000);
  Profile data = net.data;
  const auto last = static_cast<ModuleId>(data.tree.modules.size() - 1);
  data.counts.memory.alive.push_back({MemoryCategory::parameters, last, Phase::forward, true, 1, 8});
  data.counts.memory.timeline = {.ops_per_point = 1, .peak_point = 0, .points = {{8, last, Phase::backward}}};
  KernelBucket kernel;
  kernel.owner.module = last;
  data.device.make().kernels = {kernel};
  CompiledKernel compiled;
  compiled.owner.module = net.list;
  compiled.parts = {{last - 3, 0.3}, {last - 1, 0.25}, {last, 0.45}};
  data.times.make().compiled_kernels = {compiled};
  data.device.make().timeline.modules = {{last, 1, 0, 1}, {last - 3, 2, 0, 2}};
  data.device.make().counters.modules = {{{last - 6}, {}}, {{last - 3}, {}}, {{last}, {}}};
  data.comms.make().groups = {{}};
  data.comms.make().collectives = {{.bucket = 0, .group = 0}};
  data.comms.make().exposed_in = {{.collective = 0, .owner = {last}}};
  data.times.make().events.kept = true;
  data.times.make().events.names = {"op"};
  data.times.make().events.host = {{.id = 1, .owner = {last}, .name = 0}};
  data.times.make().events.device = {{.name = 0, .owner = {last}}};
  MergedRanks merged;
  merged.ranks.resize(1);
  merged.modules = {{last, {}}};
  data.origin.kind = merged;
  return data;
}

TEST(Siblings, EverythingThatNamesAModuleNamesTheOneThatItIsFoldedInto) {
  const auto profile = std::make_shared<const Profile>(with_all_kinds_of_places());
  ASSERT_NO_THROW(check_consistent(*profile));
  const auto folding = fold_siblings(profile);
  const Profile& folded = *folding.data;
  ASSERT_EQ(folded.tree.modules.back().path, "layers.0-2.mlp");
  const auto mlp = static_cast<ModuleId>(folded.tree.modules.size() - 1);
  EXPECT_NO_THROW(check_consistent(folded));  // nothing names a module that is not there
  EXPECT_EQ(folded.counts.ops.back().owner.module, mlp);
  EXPECT_EQ(folded.counts.memory.alive.front().module, mlp);
  EXPECT_EQ(folded.counts.memory.timeline.points.front().module, mlp);
  EXPECT_EQ(memory_moments(folded).front().module, "layers.0-2.mlp");
  EXPECT_EQ(folded.device->kernels.front().owner.module, mlp);
  EXPECT_EQ(folded.device->counters.modules.back().owner.module, mlp);
  EXPECT_EQ(folded.comms->exposed_in.front().owner.module, mlp);
  EXPECT_EQ(folded.times->events.host.front().owner.module, mlp);
  EXPECT_EQ(folded.times->events.device.front().owner.module, mlp);
  // What equal siblings have of one thing is one sum.
  ASSERT_EQ(folded.device->timeline.modules.size(), 1U);
  EXPECT_EQ(folded.device->timeline.modules.front(), (DeviceTime{mlp, 3, 0, 3}));
  const auto& parts = folded.times->compiled_kernels.front().parts;
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].module, mlp);
  EXPECT_DOUBLE_EQ(parts[0].share, 0.3 + 0.45);
  EXPECT_EQ(parts[1].module, mlp - 1);  // the norm
  EXPECT_DOUBLE_EQ(parts[1].share, 0.25);
  EXPECT_TRUE(folded.origin.merged()->modules.empty());  // a median over ranks is no sum
}

}  // namespace
}  // namespace roofprof
