// What stands on the row of a compiled region, by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "analysis/hotspots.h"
#include "analysis/kernel_rows.h"
#include "support/device_builder.h"
#include "support/pass_builder.h"

namespace roofprof {
namespace {

using testing::op_in_pass;

Pass::Op linear(ModuleId module, std::int64_t calls, std::int64_t time_ns) {
  return op_in_pass(1, "aten::linear", module, calls, time_ns);
}

Pass::Op region(ModuleId module, std::int64_t calls, std::int64_t time_ns) {
  Pass::Op op = op_in_pass(2, std::string(kCompiledRegion), module, calls, time_ns);
  op.kind = Pass::Op::Kind::compiled_region;
  op.costed = false;
  op.work = {};
  return op;
}

// The model calls part, which is compiled with its layer inside; the layer is called once more outside, and a list
// holds another that ran inside.
struct Compiled : testing::ObservedBuilder {
  ModuleId part = module("part", "Part");
  ModuleId layer = module("part.layer", "Linear", part);
  ModuleId list = module("part.list", "ModuleList", part);
  ModuleId listed = module("part.list.0", "Linear", list);
  ModuleId head = module("head", "Linear");
  Pass eager;
  Pass compiled;

  Compiled() {
    observed.tree.modules[index_of(list)].has_forward = false;
    eager.ops = {linear(layer, 2, 20), linear(listed, 1, 10), linear(head, 1, 10)};
    eager.clocks = {{{kModel, Phase::forward}, 1, 5}, {{part, Phase::forward}, 1, 5},
                    {{layer, Phase::forward}, 2, 30}, {{listed, Phase::forward}, 1, 15},
                    {{layer, Phase::backward}, 0, 9}, {{head, Phase::forward}, 1, 15}};
    compiled.ops = {linear(part, 1, 25), linear(layer, 1, 10), linear(head, 1, 11), region(part, 1, 40)};
    compiled.clocks = {{{kModel, Phase::forward}, 1, 6},
                       {{part, Phase::forward}, 1, 70},
                       {{layer, Phase::forward}, 1, 14},
                       {{part, Phase::backward}, 0, 20},
                       {{head, Phase::forward}, 1, 16}};
    compiled.wall_ns = 126;
  }

  testing::Derived derived_of(const Pass& counting, const Pass& timed) {
    observed.counting = counting;
    observed.timed = {timed};
    return derived();
  }
};

TEST(CompiledRegions, TheRowOfTheRegionHasAllTimesOfWhatRanInside) {
  Compiled net;
  const testing::Derived report = net.derived_of(net.eager, net.compiled);
  for (const auto* path : {"part.layer", "part.list", "part.list.0"}) {
    EXPECT_FALSE(report.row(path).time_ns) << path;
    EXPECT_FALSE(report.row(path).self.op_time_ns) << path;
  }
  EXPECT_EQ(report.row("part").self.time_ns, 70 + 14 + 20);
  EXPECT_EQ(report.row("part").self.op_time_ns, 25 + 40);
  EXPECT_EQ(report.row("head").time_ns, 16);
  EXPECT_EQ(report.row("").time_ns, 126);
  // The work is that of the eager model.
  EXPECT_EQ(report.total().flops, 4'000);
  EXPECT_EQ(report.row("part.layer").flops, 2'000);
  EXPECT_EQ(report.row("part.layer").calls, 2);
  EXPECT_EQ(report.row("part").self.flops, 0);
  EXPECT_FALSE(report.total().incomplete);
}

TEST(CompiledRegions, APassThatWasCountedCompiledSaysWhatItMisses) {
  Compiled net;
  const testing::Derived report = net.derived_of(net.compiled, net.compiled);
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

TEST(CompiledRegions, AStepThatWasCompiledHasTheTimeOfTheModelAndOfTheOptimizer) {
  Compiled net;
  net.eager.ops.push_back(op_in_pass(3, "aten::mse_loss", kOutside, 1, 5));
  net.eager.ops.push_back(op_in_pass(4, "aten::add_", kOptimizer, 1, 5, Phase::optimizer));
  net.eager.clocks.push_back({{kOutside, Phase::forward}, 0, 8});
  net.eager.clocks.push_back({{kOptimizer, Phase::optimizer}, 1, 8});
  net.compiled.ops = {region(kOutside, 1, 90)};
  net.compiled.clocks = {{{kOutside, Phase::forward}, 0, 100}};
  const testing::Derived report = net.derived_of(net.eager, net.compiled);
  for (const auto& row : report.rows()) {
    if (row.path == "(outside)") continue;
    EXPECT_FALSE(row.time_ns) << row.path;
    EXPECT_FALSE(row.wasted_time_ns) << row.path;
  }
  const auto& outside = report.row("(outside)");
  EXPECT_EQ(outside.time_ns, 100);
  EXPECT_FALSE(outside.wasted_time_ns) << "its work is a part of what it ran";
  EXPECT_FALSE(outside.percent_of_roof);
  // Of 6,000 FLOPs.
  EXPECT_NEAR(*report.row("part").work_share, 100.0 * 3 / 6, 1e-9);
  EXPECT_NEAR(*report.row("(optimizer)").work_share, 100.0 / 6, 1e-9);
}

TEST(CompiledRegions, NotesNameTheRegionsAndWhatIsNotKnown) {
  Compiled net;
  const auto notes_of = [](const testing::Derived& report) { return testing::texts_of(report.coverage().notes); };
  EXPECT_EQ(notes_of(net.derived_of(net.eager, net.compiled)),
            std::vector<std::string>{"compiled (part): counts from the eager model, time from the compiled run, on the "
                                     "row of each compiled region alone; fused code moves fewer bytes than counted, so "
                                     "%roof may pass 100%"});
  const std::string uncounted = "compiled region of part: 1 call, work inside not counted but for what it dispatches";
  EXPECT_EQ(notes_of(net.derived_of(net.compiled, net.compiled)), std::vector<std::string>{uncounted});
  net.observed.run.mode = Mode::block;
  EXPECT_EQ(notes_of(net.derived_of(net.compiled, net.compiled)),
            std::vector<std::string>{uncounted + "; run() counts it from the eager model"});
}

// The model calls an AOTInductor package twice; one call of the program that it was compiled from has a linear layer
// and an op of its own.
struct Packaged : testing::ObservedBuilder {
  ModuleId place = module("net", "Net");
  ModuleId layer = module("net.fc", "Linear", place);
  testing::ProfileBuilder program;

  Packaged() {
    const ModuleId fc = program.module("fc", "Linear");
    program.op("aten::linear", fc, testing::work_of(1'000, 100));
    program.op("aten::add", kModel, testing::work_of(10, 20));
    program.time(kModel, {});
    program.time(fc, {});
    Pass& pass = observed.counting;
    pass.ops = {linear(place, 2, 20), op_in_pass(2, std::string(kCompiledPackage), place, 2, 40)};
    pass.ops.back().costed = false;
    pass.ops.back().work = {};
    pass.clocks = {{{kModel, Phase::forward}, 1, 5}, {{place, Phase::forward}, 2, 70}};
    pass.wall_ns = 75;
    observed.timed = {pass};
  }
  PackageCalls& calls(std::int64_t times, const testing::ProfileBuilder& counted) {
    auto& package = observed.packages.emplace_back();
    package.place = place;
    package.counts = std::make_shared<const Profile>(counted.data);
    package.calls = times;
    return package;
  }
};

TEST(Packages, HaveTheWorkOfTheirProgramAndTheirOwnTime) {
  Packaged net;
  net.calls(2, net.program);
  const testing::Derived report = net.derived();
  EXPECT_EQ(report.total().flops, 2 * 1'010);  // and not what the calls dispatched
  EXPECT_EQ(report.row("net.fc").flops, 2 * 1'000);
  EXPECT_EQ(report.row("net.fc").calls, 2);
  EXPECT_FALSE(report.row("net.fc").time_ns);
  EXPECT_EQ(report.row("net").self.time_ns, 70);
  EXPECT_EQ(report.row("net").self.op_time_ns, 60);
  EXPECT_EQ(report.total().time_ns, 75);
  EXPECT_FALSE(report.total().incomplete);
  EXPECT_EQ(testing::texts_of(report.coverage().notes),
            std::vector<std::string>{"AOTInductor package (net): counts from the program that it was exported from, "
                                     "time from the compiled run, on the row of each compiled region alone; fused code "
                                     "moves fewer bytes than counted, so %roof may pass 100%"});
}

TEST(Packages, WithoutCountsNothingInsideIsKnown) {
  Packaged net;
  auto& package = net.calls(2, net.program);
  package.counts.reset();
  package.why_not = "nobody counted it";
  const testing::Derived report = net.derived();
  for (const auto* path : {"", "net", "net.fc"}) EXPECT_TRUE(report.row(path).incomplete) << path;
  EXPECT_FALSE(report.row("net.fc").time_ns);
  EXPECT_EQ(report.total().time_ns, 75);
  EXPECT_EQ(report.coverage().uncosted, (std::map<std::string, std::int64_t>{{std::string(kCompiledPackage), 2}}));
  EXPECT_EQ(testing::texts_of(report.coverage().notes),
            std::vector<std::string>{"AOTInductor package in net: work inside not counted but for what it dispatches, "
                                     "because nobody counted it"});
}

// Of the part's compiled code, 20 ns are an operator of the layer and 10 ns a kernel of both layers.
struct WithKernels : Compiled {
  WithKernels() {
    auto& graph = observed.graphs.emplace_back();
    graph.kernels = {kernel("aten::linear", {{layer, 1}}), kernel("cpp_fused", {{layer, 0.25}, {listed, 0.75}}),
                     kernel("cpp_unknown", {})};
    observed.kernel_passes = {compiled};
    observed.kernel_passes[0].graph_calls = {
        {0, {part, Phase::forward}, {{"aten::linear", 20}, {"aten::empty", 1}, {"cpp_fused", 10}, {"cpp_unknown", 4}}}};
  }

  static CompiledGraph::Kernel kernel(const std::string& name, std::vector<KernelPart> parts) {
    CompiledKernel kernel;
    kernel.name = name;
    kernel.parts = std::move(parts);
    kernel.work.add_macs(50, DType::fp32);
    kernel.work.read_bytes = 8;
    kernel.unfused_bytes = 12;
    return {kernel, name};
  }
};

// Of 65 ns of the region, kernels take 20, 10 and 4. Each counts for the innermost module around its ops.
TEST(CompiledKernels, GiveModulesTheirTimeAndKeepTheSum) {
  WithKernels net;
  const testing::Derived report = net.derived_of(net.eager, net.compiled);
  EXPECT_EQ(report.row("part.layer").time_ns, 20);
  EXPECT_FALSE(report.row("part.layer").percent_of_roof) << "a part of its work is in a kernel of the part";
  EXPECT_FALSE(report.row("part.list.0").time_ns);
  EXPECT_EQ(report.row("part").self.time_ns, 70 + 14 + 20 - 20);
  EXPECT_EQ(report.row("").time_ns, 126);
  EXPECT_EQ(report.total().op_time_ns, 25 + 40 + 11);
  EXPECT_EQ(report.row("part.layer").shared_time_ns, 3);   // 2.5 of 10
  EXPECT_EQ(report.row("part.list.0").shared_time_ns, 8);  // 7.5
  EXPECT_EQ(report.row("part").shared_time_ns, 0) << "it has the kernel's time";
  const auto kernels = report.data().times->compiled_kernels;
  ASSERT_EQ(kernels.size(), 3);
  EXPECT_EQ(kernels[1].owner.module, net.part);
  EXPECT_EQ(kernels[1].parts, (std::vector<KernelPart>{{net.listed, 0.75}, {net.layer, 0.25}}));
  EXPECT_FALSE(kernels[2].attributed);
  std::map<std::string, std::int64_t> wasted;  // 100 FLOPs take less than 1 ns
  for (const auto& row : most_wasting(ops_in_modules(report.data(), report.rows(), report.total()), 100)) {
    wasted[*row.module + " " + *row.op] = row.wasted_time_ns.value_or(-1);
  }
  EXPECT_EQ(wasted["part.layer aten::linear"], 20);
  EXPECT_EQ(wasted["part cpp_fused"], 10);
  EXPECT_EQ(wasted["part (outside kernels)"], 65 - 34);
  EXPECT_FALSE(wasted.contains("part compiled region"));
}

TEST(CompiledKernels, HaveTheirMedianPartOfTheRegionAndSpreadsOfAllRuns) {
  WithKernels net;
  auto& passes = net.observed.kernel_passes;
  passes[0].graph_calls.push_back(passes[0].graph_calls[0]);
  passes.push_back(passes[0]);
  passes[1].wall_ns += 10;
  passes[1].graph_calls[0].ranges[0].ns = 30;
  net.derived_of(net.eager, net.compiled);
  const auto kernel = join(net.observed).times->compiled_kernels[0];
  EXPECT_EQ(kernel.instances, 2);
  EXPECT_EQ(kernel.total_ns, std::llround(65 * (40 / 68.0 + 50 / 78.0) / 2)) << "kernels took 68 and 78 ns";
  EXPECT_EQ(kernel.max_ns, std::llround(65 * 30 / 78.0));
  EXPECT_EQ(kernel.work.macs, 100);
  EXPECT_EQ(kernel.unfused_bytes, 24);
}

// In each of three runs another kernel is held up by 900 ns: the region takes 65 ns without that.
TEST(CompiledKernels, ThatWereHeldUpInOneRunKeepTheirParts) {
  WithKernels net;
  auto& passes = net.observed.kernel_passes;
  passes.assign(3, passes[0]);
  for (std::size_t run = 0; run < 3; ++run) {
    passes[run].graph_calls[0].ranges[run == 0 ? 0 : run + 1].ns += 900;
    passes[run].ops.back().time_ns = *passes[run].ops.back().time_ns + 900;
    for (auto& clock : passes[run].clocks) clock.self_ns += 900;
  }
  const auto codes_of = [](const testing::Derived& report) {
    std::set<std::string> codes;
    for (const auto& note : report.coverage().notes) codes.insert(note.code);
    return codes;
  };
  EXPECT_FALSE(codes_of(WithKernels().derived_of(net.eager, net.compiled)).contains("kernels-doubtful"));
  const testing::Derived report = net.derived_of(net.eager, net.compiled);
  std::map<std::string, std::int64_t> ns;
  std::int64_t sum = 0;
  for (const auto& kernel : report.data().times->compiled_kernels) {
    ns[kernel.name] = kernel.total_ns;
    sum += kernel.total_ns;
  }
  for (const auto& op : report.data().counts.ops) sum += op.op == kOutsideKernels ? *op.time_ns : 0;
  EXPECT_EQ(sum, 65);
  EXPECT_EQ(ns, (std::map<std::string, std::int64_t>{{"aten::linear", 20}, {"cpp_fused", 10}, {"cpp_unknown", 4}}));
  EXPECT_TRUE(codes_of(report).contains("kernels-doubtful"));
}

void wastes_as_much_by_op_as_all_together(const testing::Derived& report) {
  ASSERT_GT(report.total().lower_bound_time_ns, 0);
  const auto wasted = *report.total().wasted_time_ns - (*report.total().time_ns - *report.total().op_time_ns);
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"op"}, {"module"}, {"module", "op"}, {"op", "phase"}}) {
    std::int64_t sum = 0;
    for (const auto& row : report.group(keys)) sum += row.wasted_time_ns.value_or(0);
    EXPECT_EQ(sum, wasted) << keys.back();
  }
}

// Without kernels as well, and by any keys: compiled code is held against the work of the ops that it ran.
TEST(CompiledRegions, WasteAsMuchByOpAsAllTogether) {
  Compiled plain;
  WithKernels kernels;
  wastes_as_much_by_op_as_all_together(plain.derived_of(plain.eager, plain.compiled));
  wastes_as_much_by_op_as_all_together(kernels.derived_of(kernels.eager, kernels.compiled));
}

// Blocks of one class run one graph, whose parts are those of the first.
TEST(CompiledKernels, OfAGraphThatOtherBlocksRunAreOfTheirModules) {
  testing::ObservedBuilder net;
  std::vector<ModuleId> blocks;
  std::vector<ModuleId> layers;
  Pass eager;
  Pass compiled;
  for (const auto* name : {"0", "1", "2"}) {
    blocks.push_back(net.module(name, "Block"));
    layers.push_back(net.module(std::string(name) + ".layer", "Linear", blocks.back()));
    eager.ops.push_back(linear(layers.back(), 1, 10));
    eager.clocks.push_back({{blocks.back(), Phase::forward}, 1, 5});
    eager.clocks.push_back({{layers.back(), Phase::forward}, 1, 10});
    compiled.ops.push_back(region(blocks.back(), 1, 40));
    compiled.clocks.push_back({{blocks.back(), Phase::forward}, 1, 50});
    compiled.graph_calls.push_back({0, {blocks.back(), Phase::forward}, {{"k", 30}}});
  }
  net.observed.counting = eager;
  net.observed.timed = {compiled};
  net.observed.kernel_passes = {compiled};
  net.observed.graphs.emplace_back().kernels = {WithKernels::kernel("k", {{layers[0], 1}})};
  const testing::Derived report = net.derived();
  EXPECT_EQ(report.row("0.layer").time_ns, 30);
  EXPECT_EQ(report.row("1.layer").time_ns, 30);
  EXPECT_EQ(report.row("1").self.time_ns, 20);
  EXPECT_EQ(report.siblings().at(0).rows[1].time_ns, 30) << "the folded profile has the kernels of all";
}

// The part's code on a device: a generated kernel, two convolutions of which the first launches a fill too, a generated
// kernel of both layers, and a launch that nothing tells. The head is called outside.
struct OnDevice : Compiled {
  testing::RunBuilder run;
  const std::string conv = "aten::convolution";

  OnDevice() {
    observed.run.device = "cuda:0";
    observed.on_device = DeviceFacts{};
    auto& graph = observed.graphs.emplace_back();
    graph.kernels = {WithKernels::kernel("triton_poi_fused_relu_0", {{layer, 1}}),
                     WithKernels::kernel(conv, {{listed, 1}}), WithKernels::kernel(conv, {{layer, 1}}),
                     WithKernels::kernel("triton_red_fused_sum_1", {{layer, 0.25}, {listed, 0.75}})};
    const auto launch = [&](std::uint32_t number, ModuleId module, std::uint64_t inputs, const std::string& op) {
      observed.launches.push_back({{number, {module, Phase::forward}, inputs}, op});
    };
    observed.launches.emplace_back();
    launch(2, part, 1, std::string(kCompiledRegion));
    launch(9, part, 1, conv);
    launch(9, part, 2, conv);
    launch(1, head, 1, "aten::linear");
    run.kernel("triton_poi_fused_relu_0", 1, 100, 120);
    run.fill(2, 120, 122, 64);
    run.kernel("fprop", 2, 130, 160);
    run.kernel("fprop", 3, 160, 200);
    run.kernel("triton_red_fused_sum_1", 1, 200, 210);
    run.kernel("whatever", 1, 210, 215);
    run.kernel("gemm", 4, 220, 227);
  }

  testing::Derived with_trace() {
    compiled.device = std::make_shared<const DeviceTrace>(run.run.trace);
    observed.kernel_passes = {compiled};
    observed.kernel_passes[0].graph_calls = {{0, {part, Phase::forward}, {}}};
    return derived_of(eager, compiled);
  }
};

TEST(KernelsOnADevice, GiveModulesTheTimeOfTheirLaunches) {
  OnDevice net;
  const testing::Derived report = net.with_trace();
  EXPECT_EQ(report.row("part.layer").time_ns, 20 + 40);
  EXPECT_EQ(report.row("part.list.0").time_ns, 2 + 30);
  EXPECT_EQ(report.row("part").self.time_ns, 10 + 5) << "a kernel of both, and what nothing tells";
  EXPECT_EQ(report.row("part").time_ns, 107);
  EXPECT_EQ(report.total().time_ns, 114);
  EXPECT_EQ(report.row("part.layer").shared_time_ns, 3);  // 2.5 of 10
}

TEST(KernelsOnADevice, AndTheRestOfTheRegionAddUpToItsTime) {
  OnDevice net;
  const testing::Derived report = net.with_trace();
  std::map<std::string, std::int64_t> times;
  for (const auto& op : report.data().counts.ops) times[op.op] += op.time_ns.value_or(0);
  EXPECT_EQ(times[std::string(kCompiledRegion)], 20 + 2 + 30 + 40 + 10);
  EXPECT_EQ(times[std::string(kOutsideKernels)], 5);
  EXPECT_EQ(times["aten::linear"], 7);
  std::int64_t kernels_ns = 0;
  for (const auto& kernel : report.data().times->compiled_kernels) kernels_ns += kernel.total_ns;
  EXPECT_EQ(kernels_ns, 102);
  const auto texts = testing::texts_of(report.coverage().notes);
  EXPECT_TRUE(std::ranges::any_of(texts, [](const std::string& text) {
    return text.starts_with("4 kernels of compiled code, found by the names") &&
           text.find("1 launch that no name, operator or order tells") != text.npos;
  }));
}

TEST(KernelsOnADevice, WasteAsMuchByOpAsAllTogether) {
  OnDevice net;
  wastes_as_much_by_op_as_all_together(net.with_trace());
  net.observed.graphs.clear();
  wastes_as_much_by_op_as_all_together(net.with_trace());
}

TEST(KernelsOnADevice, HaveOneRowForEachLaunchSizeAndPlace) {
  OnDevice net;
  const testing::Derived report = net.with_trace();
  std::map<std::pair<std::string, std::string>, KernelRow> rows;
  for (const auto& row : kernel_rows(report.data())) rows[{row.name, row.module}] = row;
  ASSERT_EQ(rows.size(), 7);
  const auto row = [&](const std::string& name, const std::string& module) { return rows[{name, module}]; };
  const auto relu = row("triton_poi_fused_relu_0", "part.layer");
  EXPECT_EQ(relu.modules, "part.layer");
  EXPECT_EQ(relu.bytes, 8);
  EXPECT_EQ(relu.unfused_bytes, 12);
  EXPECT_EQ(relu.flops, 100);
  EXPECT_EQ(row("triton_red_fused_sum_1", "part").modules, "part.list.0 75%, part.layer 25%");
  EXPECT_TRUE(row("triton_red_fused_sum_1", "part").shared);
  EXPECT_EQ(row("fprop", "part.layer").bytes, 8);
  EXPECT_FALSE(row("fprop", "part.list.0").bytes) << "the fill is its kernel's too";
  EXPECT_TRUE(row("whatever", "part").modules.empty());
}

TEST(KernelsOnADevice, StayOnTheRegionWhereNoNameIsKnown) {
  OnDevice net;
  net.observed.graphs[0].kernels = {WithKernels::kernel("triton_poi_fused_mul_7", {{net.layer, 1}})};
  const testing::Derived report = net.with_trace();
  EXPECT_TRUE(report.data().times->compiled_kernels.empty());
  EXPECT_TRUE(std::ranges::any_of(report.coverage().notes, [](const Note& note) { return note.code == "no-kernels"; }));
  EXPECT_EQ(report.row("part").time_ns, 107);
  EXPECT_FALSE(report.row("part.layer").time_ns);
}

}  // namespace
}  // namespace roofprof
