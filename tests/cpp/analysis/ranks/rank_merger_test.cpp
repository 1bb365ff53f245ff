#include "analysis/ranks/rank_merger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "analysis/ranks/rank_figures.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

// A layer of 1,000 FLOPs that takes `ns`, and what is around it 10 ns.
struct OfRank : ProfileBuilder {
  ModuleId layer;

  OfRank(std::int64_t rank, std::int64_t ns, std::int64_t world_size = 2) {
    layer = module("layer", "Linear");
    data.run.mode = Mode::block;
    data.run.environment = {{"torch", std::string("2.15.0")}, {"rank", rank}, {"world_size", world_size}};
    data.tree.modules[kModel].params = data.tree.modules[index_of(layer)].params = 50;
    op("aten::linear", layer, work_of(1'000, 300, 100), ns - 1);
    time(layer, {ns});
    time(kModel, {10});
  }
};

// What follows from a merged profile.
struct Derived {
  testing::Derived derived;
  std::vector<RooflineRow> all;
  RooflineRow everything;

  explicit Derived(Profile profile) : derived(std::move(profile)) {
    all = derived.rows();
    everything = derived.total();
    add_times_over_ranks(derived.data(), all, everything);
  }
  const Profile& data() const { return derived.data(); }
  const std::vector<RooflineRow>& rows() const { return all; }
  const RooflineRow& total() const { return everything; }
  const RooflineRow& row(std::string_view path) const { return row_named(path, all, derived.data()); }
};

std::string refusal(RankMerger& merger, const Profile& data) {
  try {
    merger.add(data, "b.json");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> codes_of(const Profile& data) {
  std::vector<std::string> codes;
  for (const auto& note : data.notes) codes.push_back(note.code);
  return codes;
}

TEST(RankMerger, WorkAndTimesAreSumsAndRowsKnowTheirExtremes) {
  RankMerger merger;
  for (const auto& [rank, ns] : {std::pair(2, 500), std::pair(0, 100), std::pair(1, 200)}) {
    merger.add(OfRank(rank, ns, 3).data, "r.json");
  }
  const Derived merged(merger.finish());
  const auto& row = merged.row("layer");
  EXPECT_EQ(row.flops, 3'000);
  EXPECT_EQ(row.calls, 3);
  EXPECT_EQ(row.params, 50);  // replicas
  EXPECT_EQ(row.time_ns, 800);
  EXPECT_EQ(row.time_min_ns, 100);
  EXPECT_EQ(row.time_median_ns, 200);
  EXPECT_EQ(row.time_max_ns, 500);
  EXPECT_EQ(row.slowest_rank, 2);
  EXPECT_DOUBLE_EQ(*row.imbalance, 100 * (500 - 800.0 / 3) / 500);
  EXPECT_EQ(merged.total().time_max_ns, 510);
  EXPECT_EQ(merged.total().wall_ns, 830);
  ASSERT_EQ(merged.data().origin.merged()->ranks.size(), 3);
  for (std::int64_t rank = 0; rank < 3; ++rank) EXPECT_EQ(merged.data().origin.merged()->ranks[rank].rank, rank);
  EXPECT_EQ(merged.data().origin.merged()->ranks[2].wall_ns, 510);
}

TEST(RankMerger, ModulesOfSomeRanksAreFoundByName) {
  OfRank first(0, 100), second(1, 300);
  // As in a pipeline: each rank has another stage.
  first.data.tree.modules[index_of(first.layer)].path = "stage0";
  second.data.tree.modules[index_of(second.layer)].path = "stage1";
  second.data.tree.modules[index_of(second.layer)].params = 70;
  second.data.tree.modules[kModel].params = 70;
  RankMerger merger;
  merger.add(first.data, "a");
  merger.add(second.data, "b");
  const Derived merged(merger.finish());
  EXPECT_EQ(merged.row("stage0").time_max_ns, 100);
  EXPECT_EQ(merged.row("stage1").time_max_ns, 300);
  EXPECT_EQ(merged.row("stage1").slowest_rank, 1);
  EXPECT_EQ(merged.row("stage1").imbalance, 0);
  EXPECT_EQ(merged.row("").params, 120);
  EXPECT_EQ(merged.total().flops, 2'000);
}

TEST(RankMerger, WhatOneRankDoesNotKnowTheSumDoesNotEither) {
  OfRank second(1, 100);
  second.data.counts.ops[0].time_ns.reset();
  second.op("mine::op", second.layer, {}, 5);
  second.data.counts.ops.back().costed = false;
  second.data.run.token_calls = {{.region = "decode", .calls = 1, .sequences = 1, .tokens = 1, .least_context = -1}};
  OfRank first(0, 100);
  first.data.run.token_calls = second.data.run.token_calls;
  first.data.run.token_calls[0].least_context = first.data.run.token_calls[0].most_context = 7;
  RankMerger merger;
  merger.add(first.data, "a");
  merger.add(second.data, "b");
  const auto data = merger.finish();
  EXPECT_EQ(data.counts.ops.at(0).time_ns, std::nullopt);
  EXPECT_EQ(data.run.token_calls.at(0).tokens, 2);
  EXPECT_EQ(data.run.token_calls.at(0).least_context, -1);
  EXPECT_FALSE(data.origin.merged()->ranks[0].incomplete);
  EXPECT_TRUE(data.origin.merged()->ranks[1].incomplete);
}

TEST(RankMerger, MissingRanksAreNamed) {
  RankMerger merger;
  for (const std::int64_t rank : {1, 5}) merger.add(OfRank(rank, 100, 8).data, "r");
  const auto data = merger.finish();
  EXPECT_EQ(data.origin.merged()->missing, (std::vector<std::int64_t>{0, 2, 3, 4, 6, 7}));
  EXPECT_TRUE(data.run.partial);
  ASSERT_EQ(codes_of(data), std::vector<std::string>{"ranks-missing"});
  EXPECT_EQ(data.notes[0].text, "ranks 0, 2-4, 6, 7 of 8 are missing: sums and comparisons are of the others");
}

TEST(RankMerger, RanksThatDifferAreNamed) {
  OfRank other(1, 100);
  other.data.run.model = "Other";
  other.data.run.environment[0].second = std::string("2.14.0");
  RankMerger merger;
  merger.add(OfRank(0, 100).data, "a");
  merger.add(other.data, "b");
  const auto data = merger.finish();
  ASSERT_EQ(codes_of(data), (std::vector<std::string>{"ranks-differ", "ranks-differ"}));
  EXPECT_EQ(data.notes[0].text, "the model is not the same on all ranks: Net on rank 0, Other on rank 1");
  EXPECT_EQ(data.notes[1].text, "torch is not the same on all ranks: 2.14.0 on rank 1, 2.15.0 on rank 0");
}

TEST(RankMerger, RoofsOfTheFirstStandForAllOfTheSameDevice) {
  OfRank second(1, 100);
  second.data.roofs.compute[0].operations_per_second *= 0.97;
  RankMerger merger;
  merger.add(OfRank(0, 100).data, "a");
  merger.add(second.data, "b");
  const auto data = merger.finish();
  EXPECT_EQ(data.roofs, testing::round_ceilings());
  ASSERT_EQ(codes_of(data), std::vector<std::string>{"ranks-roofs"});
  EXPECT_NE(data.notes[0].text.find("up to 3.0% away"), std::string::npos) << data.notes[0].text;

  second.data.roofs.device = "another machine";
  merger.add(OfRank(0, 100).data, "a");
  merger.add(second.data, "b");
  const auto apart = merger.finish();
  EXPECT_TRUE(apart.roofs.empty());
  EXPECT_TRUE(apart.origin.merged()->ranks[1].percent_of_roof.has_value());
}

TEST(RankMerger, WhatDoesNotFitIsRefusedAndLeavesNothing) {
  RankMerger merger;
  EXPECT_THROW(merger.finish(), std::invalid_argument);
  merger.add(OfRank(0, 100).data, "a.json");
  EXPECT_EQ(refusal(merger, OfRank(0, 100).data), "b.json: rank 0 is there already");
  OfRank nobody(1, 100);
  nobody.data.run.environment.clear();
  EXPECT_NE(refusal(merger, nobody.data).find("does not say which rank"), std::string::npos);
  OfRank counted(1, 100);
  counted.data.run.mode = Mode::count;
  counted.data.run.runs.chosen = -1;
  EXPECT_EQ(refusal(merger, counted.data), "b.json: it is a count, and a.json is a block: merge reports of one kind");
  merger.add(OfRank(1, 100).data, "b.json");
  const auto data = merger.finish();
  EXPECT_NE(refusal(merger, data).find("merged report already"), std::string::npos);
  EXPECT_EQ(Derived(data).total().flops, 2'000);
}

TEST(RankMerger, RegionsAreFoundByTheRegionsAroundThem) {
  RankMerger merger;
  for (const std::int64_t rank : {0, 1}) {
    OfRank one(rank, 100);
    if (rank == 1) one.data.tree.regions.push_back({kNoRegion, "warm", 1, {7}});
    const auto outer = static_cast<RegionId>(one.data.tree.regions.size() + 1);
    one.data.tree.regions.push_back({kNoRegion, "step", 2, {50}});
    one.data.tree.regions.push_back({outer, "loss", 2, {20}});
    one.data.counts.ops[0].owner.region = outer + 1;
    merger.add(one.data, "r");
  }
  const auto data = merger.finish();
  ASSERT_EQ(data.tree.regions.size(), 3);
  EXPECT_EQ(data.tree.regions[0].name, "step");
  EXPECT_EQ(data.tree.regions[0].calls, 4);
  EXPECT_EQ(data.tree.regions[0].wall_ns, std::vector<std::int64_t>{100});
  EXPECT_EQ(data.tree.regions[1].name, "loss");
  ASSERT_EQ(data.counts.ops.size(), 1);
  EXPECT_EQ(data.counts.ops[0].owner.region, 2);
}

TEST(RankMerger, KernelsOfAllRanksAreOneSample) {
  RankMerger merger;
  for (const std::int64_t rank : {0, 1}) {
    OfRank one(rank, 100);
    KernelBucket kernel;
    kernel.name = "gemm";
    kernel.owner.module = one.layer;
    kernel.bucket = 0;
    kernel.device = rank;
    kernel.instances = 2;
    kernel.total_ns = rank == 0 ? 30 : 70;  // 10 and 20; 30 and 40
    kernel.min_ns = rank == 0 ? 10 : 30;
    kernel.max_ns = rank == 0 ? 20 : 40;
    kernel.median_ns = rank == 0 ? 15 : 35;
    kernel.stddev_ns = std::sqrt(50.0);
    one.data.device.make().kernels.push_back(kernel);
    merger.add(one.data, "r");
  }
  const auto data = merger.finish();
  ASSERT_EQ(data.device->kernels.size(), 1);
  const auto& kernel = data.device->kernels[0];
  EXPECT_EQ(kernel.instances, 4);
  EXPECT_EQ(kernel.total_ns, 100);
  EXPECT_EQ(kernel.min_ns, 10);
  EXPECT_EQ(kernel.max_ns, 40);
  EXPECT_EQ(kernel.median_ns, 35);
  EXPECT_NEAR(kernel.stddev_ns, std::sqrt(500.0 / 3), 1e-9);  // of 10, 20, 30, 40
}

// A rank whose layer runs a kernel of compiled code in two calls of `ns` each, and a shared one of 3 ns.
struct OfCompiledRank : OfRank {
  explicit OfCompiledRank(std::int64_t rank, std::int64_t ns) : OfRank(rank, 100) {
    const auto folder = "/tmp/rank" + std::to_string(rank) + "/";
    auto& own = kernel("cpp_fused_relu_0", layer, folder + "c0ffee.py:12");
    own.parts = {{layer, 1}};
    own.instances = 2;
    own.total_ns = 2 * ns;
    own.min_ns = own.median_ns = own.max_ns = ns;
    own.work = own.work.times(2);
    own.unfused_bytes *= 2;
    auto& shared = kernel("cpp_fused_add_1", kModel, folder + "c0ffee.py:40");
    shared.parts = {{layer, 0.75}, {kModel, 0.25}};
    shared.instances = 1;
    shared.total_ns = shared.min_ns = shared.median_ns = shared.max_ns = 3;
  }

  CompiledKernel& kernel(const std::string& name, ModuleId owner, const std::string& code) {
    auto& kernel = data.times.make().compiled_kernels.emplace_back();
    kernel.name = name;
    kernel.owner.module = owner;
    kernel.ops = {"aten::relu"};
    kernel.code = code;
    kernel.work = work_of(1'000, 300, 100);
    kernel.unfused_bytes = 700;
    return kernel;
  }
};

TEST(RankMerger, KernelsOfCompiledCodeAreFoundByNameModuleAndLine) {
  RankMerger merger;
  for (const std::int64_t rank : {0, 1}) {
    OfCompiledRank one(rank, rank == 0 ? 10 : 30);
    if (rank == 1) {  // its layer has another id
      one.module("first", "Linear");
      std::swap(one.data.tree.modules[index_of(one.layer)].path, one.data.tree.modules.back().path);
      for (auto& time : one.data.times.make().modules) time.owner.module += time.owner.module == one.layer ? 1 : 0;
      for (auto& op : one.data.counts.ops) op.owner.module += 1;
      auto& kernels = one.data.times.make().compiled_kernels;
      kernels[0].owner.module += 1;
      kernels[0].parts[0].module += 1;
      kernels[1].parts[0].module += 1;
    }
    merger.add(one.data, "r.json");
  }
  const Derived merged(merger.finish());
  const auto& kernels = merged.data().times->compiled_kernels;
  ASSERT_EQ(kernels.size(), 2);
  EXPECT_EQ(kernels[0].name, "cpp_fused_relu_0") << "the longest first";
  EXPECT_EQ(kernels[0].owner.module, 3);
  EXPECT_EQ(kernels[0].instances, 4);
  EXPECT_EQ(kernels[0].total_ns, 80);
  EXPECT_EQ(kernels[0].min_ns, 10);
  EXPECT_EQ(kernels[0].max_ns, 30);
  EXPECT_EQ(kernels[0].median_ns, 30);
  EXPECT_EQ(kernels[0].work, work_of(1'000, 300, 100).times(4));
  EXPECT_EQ(kernels[0].unfused_bytes, 4 * 700);
  EXPECT_EQ(kernels[1].total_ns, 6);
  EXPECT_EQ(kernels[1].parts, (std::vector<KernelPart>{{3, 0.75}, {kModel, 0.25}}));
  EXPECT_EQ(merged.row("layer").shared_time_ns, 5) << "three quarters of 6, rounded";
  ASSERT_EQ(merged.derived.kernels().size(), 2);
  EXPECT_EQ(merged.derived.kernels()[0].bytes, 4 * 400);
}

TEST(RankMerger, RanksWithoutKernelsOfCompiledCodeAreNamed) {
  RankMerger merger;
  merger.add(OfCompiledRank(0, 10).data, "a.json");
  OfRank compiled(1, 100);
  compiled.op(std::string(kCompiledRegion), kModel, {}, 9);
  merger.add(compiled.data, "b.json");
  const auto data = merger.finish();
  EXPECT_EQ(data.times->compiled_kernels.size(), 2);
  ASSERT_EQ(std::ranges::count(data.notes, "ranks-differ", &Note::code), 1);
  EXPECT_EQ(std::ranges::find(data.notes, "ranks-differ", &Note::code)->text,
            "what is known of kernels of compiled code is not the same on all ranks: nothing on rank 1, their times "
            "on rank 0");
}

TEST(SlowRank, IsNamedBeyondTheNoiseOfSteps) {
  const auto merged = [](std::int64_t slow_ns, double spread) {
    RankMerger merger;
    for (const std::int64_t rank : {0, 1, 2}) {
      OfRank one(rank, rank == 2 ? slow_ns : 101, 3);
      one.data.run.runs.steps = 2;
      one.data.run.runs.step_ns = {100, static_cast<std::int64_t>(100 * (1 + spread))};
      merger.add(one.data, "r");
    }
    return Derived(merger.finish());
  };
  const Derived slow = merged(151, 0.2);
  const auto found = slow_rank(slow.data(), slow.rows());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  EXPECT_DOUBLE_EQ(found->ratio, 1.5);
  EXPECT_EQ(found->modules, std::vector<std::string>{"layer"});
  const Derived noisy = merged(106, 0.2);
  EXPECT_FALSE(slow_rank(noisy.data(), noisy.rows()));
  const Derived equal = merged(101, 0);
  EXPECT_FALSE(slow_rank(equal.data(), equal.rows()));
}

}  // namespace
}  // namespace roofprof
