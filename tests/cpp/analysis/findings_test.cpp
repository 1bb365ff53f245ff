#include "analysis/findings/findings.h"

#include <gtest/gtest.h>

#include "core/idle.h"
#include "support/device_builder.h"
#include "support/rules_of_findings.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::model_of;
using testing::per_element;
using testing::ProfileBuilder;
using testing::Rules;
using testing::rules_of;
using testing::RunBuilder;
using testing::work_of;

// One op of a module beside a busy one. 1,000 fp32 FLOPs take 1 ns, 1,000 bytes of L2 too, 100 of DRAM: the ridge is 1
// FLOP a byte in L2, 10 in DRAM.
std::vector<Finding> findings_of(const std::string& op, const std::string& shapes, const Work& work,
                                 std::int64_t time_ns, std::int64_t rest_ns = 0) {
  ProfileBuilder net;
  const ModuleId layer = net.module("layer", "Layer");
  net.op(op, layer, work, time_ns).shapes = testing::shapes(shapes);
  net.time(layer, {time_ns});
  if (rest_ns > 0) {  // at half of its roof, of which no rule speaks
    const ModuleId rest = net.module("rest", "Rest");
    net.op("aten::rest", rest, work_of(rest_ns * 500, 10), rest_ns);
    net.time(rest, {rest_ns});
  }
  return net.derived().findings();
}

Rules rules_for(const std::string& op, const std::string& shapes, const Work& work, std::int64_t time_ns,
                std::int64_t rest_ns = 0) {
  Rules rules;
  for (const auto& finding : findings_of(op, shapes, work, time_ns, rest_ns)) rules.push_back(finding.rule);
  return rules;
}

// 40,000,000 bytes of DRAM take 400,000 ns.
TEST(Findings, DepthwiseConvolutionsSayTheirIntensityAndTheRidge) {
  const Work work = work_of(80'000'000, 20'000'000, 20'000'000);
  const auto findings = findings_of("aten::conv2d", "1x96x112x112, 96x1x3x3, 96", work, 1'000'000);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "depthwise-convolution");
  EXPECT_EQ(findings[0].module, "layer");
  EXPECT_EQ(findings[0].ops, std::vector<std::string>{"aten::conv2d"});
  EXPECT_NE(findings[0].text.find("aten::conv2d in layer (100% of the time): depthwise"), std::string::npos);
  EXPECT_NE(findings[0].text.find("AI 2 (FLOPs for each byte) under the ridge at 10, at 40% of the roof"),
            std::string::npos)
      << findings[0].text;
  EXPECT_NE(findings[0].reference.find("1807.11164"), std::string::npos);
  EXPECT_EQ(findings[0].evidence.at("groups"), 96.0);
  EXPECT_EQ(rules_for("aten::conv2d", "1x96x112x112, 96x12x3x3, 96", work, 1'000'000), Rules{"grouped-convolution"});
  // The same work of one group, and a depthwise one past the ridge.
  EXPECT_EQ(rules_for("aten::conv2d", "1x96x112x112, 96x96x3x3, 96", work, 1'000'000), Rules{});
  EXPECT_EQ(rules_for("aten::conv2d", "1x96x112x112, 96x1x3x3, 96", work_of(800'000'000, 40'000'000), 1'600'000),
            Rules{});
}

TEST(Findings, IsSilentBelowATwentiethOfTheTime) {
  const Work work = work_of(80'000'000, 40'000'000);
  const auto share = [&](std::int64_t rest_ns) {
    return rules_for("aten::conv2d", "1x96x112x112, 96x1x3x3", work, 1'000'000, rest_ns);
  };
  EXPECT_EQ(share(18'000'000), Rules{"depthwise-convolution"});
  EXPECT_EQ(share(20'000'000), Rules{});
}

// G1: c1 + c2 against 2 sqrt(c1 c2): 80 to 64 for a ratio of 4, which is 1.25; of 3 it is 1.155.
TEST(Findings, UnequalChannelsOfPointwiseConvolutions) {
  const Work work = work_of(80'000'000, 40'000'000);
  EXPECT_EQ(rules_for("aten::conv2d", "1x16x112x112, 64x16x1x1", work, 500'000), Rules{"unequal-channels"});
  EXPECT_EQ(rules_for("aten::conv2d", "1x16x112x112, 48x16x1x1", work, 500'000), Rules{});
  EXPECT_EQ(rules_for("aten::conv2d", "1x16x112x112, 64x16x3x3", work, 500'000), Rules{});
  EXPECT_EQ(rules_for("aten::conv2d", "1x16x112x112, 64x16x1x1", work_of(800'000'000, 40'000'000), 1'600'000), Rules{});
}

TEST(Findings, ElementWiseOpsThatOnlyMoveBytes) {
  EXPECT_EQ(rules_for("aten::relu", "", per_element(5'000'000, 5'000'000, 40'000'000), 800'000), Rules{"element-wise"});
  // At 8% of the roof memory is not all that takes the time, but each pass takes as long; short calls are their start.
  const auto far = findings_of("aten::relu", "", per_element(5'000'000, 5'000'000, 40'000'000), 5'000'000);
  ASSERT_EQ(far.size(), 1U);
  EXPECT_NE(far[0].text.find("each a pass over memory of its own, at 8.0% of the roof"), std::string::npos)
      << far[0].text;
  EXPECT_EQ(rules_for("aten::relu", "", per_element(5'000, 5'000, 40'000), 15'000), Rules{});
  // Of such ops a fifth of the time, here 25% and 17%, beside others that are as far from their roofs.
  // A softmax at 2.7% of its roof has no bound by the roofs, and is one of them, too.
  const auto beside = [](std::int64_t rest_ns, std::int64_t bytes = 40'000'000) {
    return rules_of(model_of({{"aten::softmax", per_element(5'000'000, 5'000'000, bytes), 5'000'000},
                              {"aten::rest", work_of(0, rest_ns * 8), rest_ns}}));
  };
  EXPECT_EQ(beside(15'000'000), Rules{"element-wise"});
  EXPECT_EQ(beside(25'000'000), Rules{});
  EXPECT_EQ(beside(15'000'000, 13'500'000), Rules{"element-wise"});
  // A reduction has fewer results; past the ridge arithmetic bounds.
  Work sum = per_element(5'000'000, 5'000'000, 40'000'000);
  sum.output_elements = 1;
  EXPECT_EQ(rules_for("aten::sum", "", sum, 800'000), Rules{});
  EXPECT_EQ(rules_for("aten::gelu", "", per_element(5'000'000, 800'000'000, 40'000'000), 1'600'000), Rules{});
}

TEST(Findings, WeightsThatAreReadAgainForEachRow) {
  const Work work = work_of(20'000'000, 40'000'000);
  const auto findings = findings_of("aten::linear", "1x2000, 5000x2000, 5000", work, 500'000);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "weights-read-again");
  EXPECT_NE(findings[0].text.find("each call reads 10M weights for 1 row"), std::string::npos) << findings[0].text;
  // 3,500 rows move as much as the weights; and what is bound by its arithmetic.
  EXPECT_EQ(rules_for("aten::linear", "3500x2000, 5000x2000, 5000", work, 500'000), Rules{});
  EXPECT_EQ(rules_for("aten::linear", "1x2000, 5000x2000", work_of(800'000'000, 40'000'000), 1'600'000), Rules{});
}

// 1e9 FLOPs take 1,000,000 ns.
TEST(Findings, LowerPrecisionWhereItsRoofIsHigherAndTheRoofIsWhatLimits) {
  const auto rules = [](double bf16_peak, std::int64_t time_ns = 1'900'000, std::int64_t bytes = 100,
                        const std::string& shapes = "") {
    auto net = model_of({{"aten::linear", work_of(1'000'000'000, bytes), time_ns, shapes}});
    if (bf16_peak > 0) net.data.roofs.compute.push_back({DType::bf16, bf16_peak, {}});
    return rules_of(net);
  };
  EXPECT_EQ(rules(2e12), Rules{"lower-precision"});
  EXPECT_EQ(rules(1.4e12), Rules{});
  EXPECT_EQ(rules(0), Rules{});
  // At 48% and at 4% of the roof of fp32 it is not the arithmetic that takes the time, however high bf16's is.
  EXPECT_EQ(rules(7e12, 2'100'000), Rules{});
  EXPECT_EQ(rules(7e12, 25'000'000), Rules{});
  EXPECT_EQ(rules(7e12, 1'900'000, 110'000'000), Rules{});  // memory bounds
  // Nor where the rest of the model takes so long that all of its arithmetic is less than a third.
  const auto beside = [](std::int64_t rest_ns) {
    auto net = model_of(
        {{"aten::mm", work_of(1'000'000'000, 100), 1'900'000}, {"aten::rest", work_of(0, 60'000'000), rest_ns}});
    net.data.roofs.compute.push_back({DType::bf16, 7e12, {}});
    return rules_of(net);
  };
  // Each weight is multiplied 100 times, or 98: it would be cast for few.
  EXPECT_EQ(rules(2e12, 1'900'000, 100, "100x2000, 2500x2000"), Rules{"lower-precision"});
  EXPECT_EQ(rules(2e12, 1'900'000, 100, "98x2000, 2552x2000"), Rules{});
  EXPECT_EQ(beside(1'000'000), Rules{"lower-precision"});
  EXPECT_EQ(beside(1'200'000), Rules{});
}

TEST(Findings, WhatComputeBoundsNearItsRoof) {
  EXPECT_EQ(rules_for("aten::mm", "", work_of(800'000'000, 100), 1'000'000), Rules{"compute-bound"});
  EXPECT_EQ(rules_for("aten::mm", "", work_of(960'000'000, 100), 1'000'000), Rules{});  // at its roof
  EXPECT_EQ(rules_for("aten::mm", "", work_of(700'000'000, 100), 1'000'000), Rules{});
  EXPECT_EQ(rules_for("aten::mm", "", work_of(800'000'000, 100), 1'000'000, 3'200'000), Rules{});  // not a quarter
}

// 10,000,000 bytes of DRAM take 100,000 ns.
TEST(Findings, CodeFarFromAnyRoofWhereTheRestIsNot) {
  Work pooled = per_element(1'000, 1'000, 10'000'000);
  pooled.output_elements = 250;
  const std::int64_t rest_ns = 2'000'000;
  EXPECT_EQ(rules_for("aten::grid_sampler", "", pooled, 2'000'000, rest_ns), Rules{"far-from-roof"});
  EXPECT_EQ(rules_for("aten::grid_sampler", "", pooled, 900'000, rest_ns), Rules{});         // 11% of the roof
  EXPECT_EQ(rules_for("aten::grid_sampler", "", work_of(10, 10), 15'000, 30'000), Rules{});  // a short call
  EXPECT_EQ(rules_for("aten::grid_sampler", "", pooled, 2'000'000), Rules{});                // nothing reaches its roof
}

// All but the softmax is at 8% of its roofs, as on a busy machine; the softmax at 2%, or at 2.1%.
TEST(Findings, CodeFarBehindTheRestOfTheModel) {
  const auto rules = [](std::int64_t softmax_ns) {
    Work softmax = per_element(1'000, 5'000, 10'000'000);
    softmax.output_elements = 250;  // of a kind that no other rule knows
    return rules_of(
        model_of({{"aten::softmax", softmax, softmax_ns}, {"aten::rest", work_of(0, 40'000'000), 5'000'000}}));
  };
  EXPECT_EQ(rules(5'000'000), Rules{"far-from-roof"});
  EXPECT_EQ(rules(4'800'000), Rules{});
}

// Other work interrupted the run that the rows come from: the other runs took as long as the roof explains.
TEST(Findings, CodeThatWasInterruptedIsNotFarFromItsRoof) {
  const auto rules = [](std::int64_t others_ns) {
    ProfileBuilder net;
    const ModuleId layer = net.module("layer", "Layer");
    net.op("aten::grid_sampler", layer, work_of(0, 10'000'000), 2'000'000);
    net.time(layer, {2'000'000, others_ns, others_ns});
    net.op("aten::rest", kModel, work_of(1'000'000'000, 10), 2'000'000);
    net.time(kModel, {2'000'000, 2'000'000, 2'000'000});
    return rules_of(net.derived());
  };
  EXPECT_EQ(rules(2'000'000), Rules{"far-from-roof"});
  EXPECT_EQ(rules(110'000), Rules{});
}

// Two ops waste a twentieth and more each; the others do together.
TEST(Findings, AnOpThatIsFarFromItsRoofHasAFindingOfItsOwn) {
  ProfileBuilder net;
  const auto add = [&](const std::string& op, std::int64_t time_ns) {
    const ModuleId layer = net.module(op, "Layer");
    net.op("aten::" + op, layer, work_of(0, 2'000'000), time_ns);
    net.time(layer, {time_ns});
  };
  add("softmax", 2'000'000);
  add("grid_sampler", 1'500'000);
  for (const std::string op : {"a", "b", "c"}) add(op, 400'000);
  net.op("aten::rest", kModel, work_of(3'000'000'000, 10), 6'000'000);
  net.time(kModel, {6'000'000});
  const auto found = net.derived().findings();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].id, "far-from-roof/softmax/aten::softmax");
  EXPECT_EQ(found[0].evidence.at("percent_of_roof"), 1);
  EXPECT_EQ(found[1].id, "far-from-roof/grid_sampler/aten::grid_sampler");
  EXPECT_EQ(found[2].ops, (std::vector<std::string>{"aten::a", "aten::b", "aten::c"}));
  EXPECT_EQ(found[2].evidence.at("percent_of_roof"), 5);  // of all three
  EXPECT_EQ(found[2].evidence.at("time_per_call_us"), 400);
}

TEST(Findings, TimeOutsideOpsFromAFifthOn) {
  const auto rules = [](std::int64_t outside_ns) {
    return rules_of(model_of({{"aten::mm", work_of(500'000, 10), 1'000}}, outside_ns));
  };
  EXPECT_EQ(rules(300), Rules{"outside-ops"});
  EXPECT_EQ(rules(200), Rules{});
}

// Two kernels with a gap between them; 500 FLOPs a ns is half of the roof.
Rules rules_on_device(std::int64_t gap_ns, const std::string& kernel, const std::string& shapes = "",
                      DType dtype = DType::fp32) {
  DeviceProfileBuilder net;
  net.data.device.make().compute_capability = "8.9";
  net.data.roofs.compute.push_back({DType::fp16, 1e12, {}});
  const ModuleId layer = net.module("layer", "Layer");
  const auto op = net.op_index("aten::linear", layer, work_of(10'000'000, 100, 0, dtype), 2);
  net.data.counts.ops.back().dtype = dtype;
  net.data.counts.ops.back().shapes = testing::shapes(shapes);
  net.clock(layer, {20'000 + gap_ns});
  RunBuilder run;
  const auto owner = run.owner(layer, "aten::linear", op);
  run.kernel(kernel, owner, 0, 10'000);
  run.kernel(kernel, owner, 10'000 + gap_ns, 20'000 + gap_ns);
  return rules_of(net.derived_of({run.run}));
}

// Of a gap as it was seen, observing may have caused so much.
std::int64_t observers_own_ns() {
  Profile data;
  data.device.make().timeline.idle_basis = IdleBasis::seen;
  return idle_by_observing(data.device->timeline, 2);
}

TEST(Findings, ADeviceThatWaitsIsReportedAndABusyOneIsNot) {
  EXPECT_EQ(rules_on_device(observers_own_ns() + 10'000, "gemm"), Rules{"idle-device"});
  EXPECT_EQ(rules_on_device(observers_own_ns() + 8'000, "gemm"), Rules{});  // busy for 71%
  EXPECT_EQ(rules_on_device(observers_own_ns(), "gemm"), Rules{});
}

// Two kernels of 10 us with 20 us between them while they were observed; the bare call takes what it is given.
std::vector<Finding> findings_of_bare_call(std::int64_t bare_ns) {
  DeviceProfileBuilder net;
  const ModuleId layer = net.module("layer", "Layer");
  const auto op = net.op_index("aten::linear", layer, work_of(10'000'000, 100), 2);
  net.data.run.runs.bare_ns = {bare_ns - 1'000, bare_ns, bare_ns + 1'000};
  RunBuilder run;
  const auto owner = run.owner(layer, "aten::linear", op);
  run.kernel("gemm", owner, 0, 10'000);
  run.kernel("gemm", owner, 30'000, 40'000);
  return net.derived_of({run.run}).findings();
}

TEST(Findings, IdleTimeIsThatOfTheBareCall) {
  EXPECT_TRUE(findings_of_bare_call(21'000).empty());  // busy for 95%: the rest of the gap is the observer's
  EXPECT_TRUE(findings_of_bare_call(27'000).empty());  // for 74%
  const auto waits = findings_of_bare_call(32'000);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].rule, "idle-device");
  EXPECT_EQ(waits[0].gain_high_ns, 12'000);
  EXPECT_NE(waits[0].text.find("busy for 62% of the time between its first launch and its last"), std::string::npos)
      << waits[0].text;
  EXPECT_EQ(findings_of_bare_call(100'000).at(0).gain_high_ns, 20'000);  // no more than was seen between launches
}

// Streams that work at once have more time of kernels than the call takes.
TEST(Findings, NoGainIsMoreThanTheBareCall) {
  DeviceProfileBuilder net;
  const ModuleId layer = net.module("layer", "Layer");
  const auto op = net.op_index("aten::clone", layer, work_of(0, 1'000'000, 1'000'000), 2);
  net.data.run.runs.bare_ns = {130'000};
  RunBuilder run;
  const auto owner = run.owner(layer, "aten::clone", op);
  run.kernel("copy", owner, 0, 100'000);
  run.kernel("copy", owner, 0, 100'000);
  const auto findings = net.derived_of({run.run}).findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "copies");
  EXPECT_EQ(findings[0].gain_high_ns, 130'000);
}

// A matmul whose kernel was built for sm_50 on a card of sm_89.
TEST(Findings, KernelsOfOlderGenerations) {
  EXPECT_EQ(rules_on_device(0, "maxwell_sgemm_128x64_nn"), Rules{"older-kernel"});
  EXPECT_EQ(rules_on_device(0, "sm89_xmma_gemm"), Rules{});
}

// An H100 ran such kernels for convolutions of images in channels first (tests/data/gpu/h100).
TEST(Findings, KernelsThatOnlyChangeTheOrderOfChannels) {
  EXPECT_EQ(rules_on_device(0, "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float>"),
            Rules{"reordered-channels"});
  EXPECT_EQ(rules_on_device(0, "sm80_xmma_fprop_implicit_gemm_nhwckrsc_nhwc"), Rules{});
}

TEST(Findings, SizesThatDoNotFillTensorCores) {
  EXPECT_EQ(rules_on_device(0, "gemm", "8x768, 50257x768", DType::fp16), Rules{"tensor-core-multiples"});
  EXPECT_EQ(rules_on_device(0, "gemm", "8x768, 50304x768", DType::fp16), Rules{});
  EXPECT_EQ(rules_on_device(0, "gemm", "8x768, 50257x768", DType::fp32), Rules{});
  // On a CPU there are none.
  EXPECT_EQ(rules_for("aten::linear", "8x768, 50257x768", work_of(500'000'000, 100), 1'000'000), Rules{});
}

TEST(Findings, EqualSiblingsAreSpokenOfTogether) {
  ProfileBuilder net;
  for (int i = 0; i < 40; ++i) {  // a fortieth of the time each
    const ModuleId layer = net.module("act" + std::to_string(i), "ReLU");
    net.op("aten::relu", layer, per_element(5'000'000, 5'000'000, 40'000'000), 800'000);
    net.time(layer, {800'000});
  }
  const testing::Derived report = net.derived();
  const auto findings = report.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].module, "act0-39");
  EXPECT_NE(findings[0].text.find("aten::relu in act0-39 x40 (100% of the time)"), std::string::npos)
      << findings[0].text;
  ASSERT_EQ(findings[0].modules.size(), 40U);  // each by itself
  EXPECT_EQ(findings[0].modules.front(), "act0");
  EXPECT_EQ(findings[0].modules.back(), "act39");
}

TEST(Findings, IsNoneWithoutTimesOrRoofs) {
  ProfileBuilder net;
  net.op("aten::mm", kModel, work_of(800'000'000, 100));
  EXPECT_EQ(rules_of(net.derived()), Rules{});
  net.time(kModel, {1'000'000});
  net.data.roofs = {};
  EXPECT_EQ(rules_of(net.derived()), Rules{});
}

}  // namespace
}  // namespace roofprof
