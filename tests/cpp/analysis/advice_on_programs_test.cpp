// Rules about the program around the layers, and about code that is slow by itself.

#include <gtest/gtest.h>

#include "analysis/advice/advice.h"
#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

std::vector<std::string> rules_told(const testing::Derived& report) {
  std::vector<std::string> rules;
  for (const auto& advice : report.advice()) rules.push_back(advice.rule);
  return rules;
}

using RulesTold = std::vector<std::string>;

Work each_element(std::int64_t elements, std::int64_t flops, std::int64_t bytes) {
  Work work = work_of(flops, bytes / 2, bytes - bytes / 2);
  work.macs = work.causal_macs = 0;
  work.input_elements = work.output_elements = elements;
  return work;
}

RulesTold rules_of_layout(const std::string& op, bool channels_first, const std::string& device = "cpu",
                          std::int64_t time_ns = 2'000'000) {
  ProfileBuilder net;
  net.data.device = device;
  auto& bucket = net.op(op, kModel, work_of(800'000'000, 1'000), time_ns);
  bucket.shapes = "1x96x112x112, 96x96x3x3, 96";
  bucket.channels_first = channels_first;
  net.time(kModel, {time_ns});
  return rules_told(net.derived());
}

TEST(AdviceOnPrograms, ConvolutionsInChannelsFirstOnACpu) {
  EXPECT_EQ(rules_of_layout("aten::conv2d", true), RulesTold{"channels-last"});
  EXPECT_EQ(rules_of_layout("aten::convolution_backward", true), RulesTold{"channels-last"});
  EXPECT_EQ(rules_of_layout("aten::conv2d", false), RulesTold{});
  EXPECT_EQ(rules_of_layout("aten::conv2d", true, "cuda:0"), RulesTold{});
  // At 80% of the roof little is left to gain.
  EXPECT_EQ(rules_of_layout("aten::conv2d", true, "cpu", 1'000'000), RulesTold{"compute-bound"});
}

// Reads 4 bytes an element, writes 2.
TEST(AdviceOnPrograms, CastsCountTogether) {
  const auto rules = [](std::int64_t written, int modules) {
    ProfileBuilder net;
    for (int i = 0; i < modules; ++i) {
      const ModuleId layer = net.module("layer" + std::string(1, static_cast<char>('a' + i)), "Layer");
      Work cast = work_of(0, 4'000, written);
      cast.input_elements = cast.output_elements = 1'000;
      net.op("aten::_to_copy", layer, cast, 100);
      net.op("aten::mm", layer, work_of(450'000, 10), 900);
      net.time(layer, {1'000});
    }
    return rules_told(net.derived());
  };
  EXPECT_EQ(rules(2'000, 10), RulesTold{"casts"});
  EXPECT_EQ(rules(4'000, 10), RulesTold{});  // a copy in one type
}

TEST(AdviceOnPrograms, AnOptimizerThatWorksOpByOp) {
  const auto rules = [](const std::vector<std::string>& ops) {
    ProfileBuilder net;
    net.op("aten::mm", kModel, work_of(450'000, 10), 900);
    net.time(kModel, {900});
    for (const auto& op : ops) net.op(op, kOptimizer, work_of(0, 300'000, 300'000), 100'000 / std::ssize(ops));
    net.time(kOptimizer, {100'000}, 1, Phase::optimizer);
    return rules_told(net.derived());
  };
  EXPECT_EQ(rules({"aten::mul_", "aten::lerp_", "aten::addcdiv_"}), RulesTold{"optimizer-op-by-op"});
  EXPECT_EQ(rules({"aten::_foreach_mul_", "aten::_foreach_lerp_", "aten::_foreach_addcdiv_"}),
            RulesTold{"optimizer-op-by-op"});
  EXPECT_EQ(rules({"aten::_fused_adamw_", "aten::_foreach_add_", "aten::mul_", "aten::add_"}), RulesTold{});
  EXPECT_EQ(rules({"aten::add_"}), RulesTold{});  // one pass as it is
}

// Beside attention something that reaches half of its roof.
RulesTold rules_of_attention(const std::vector<OpBucket>& ops) {
  ProfileBuilder net;
  const ModuleId attention = net.module("attention", "Attention");
  std::int64_t all_ns = 0;
  for (const auto& op : ops) {
    auto& bucket = net.op(op.op, attention, work_of(1'000'000, 10), op.time_ns, 2);
    bucket.owner.phase = op.owner.phase;
    bucket.work.input_elements = op.work.input_elements;
    bucket.work.output_elements = op.work.output_elements;
    all_ns += *op.time_ns;
  }
  net.time(attention, {all_ns});
  const ModuleId rest = net.module("rest", "Rest");
  net.op("aten::rest", rest, work_of(50'000'000, 10), 100'000);
  net.time(rest, {100'000});
  return rules_told(net.derived());
}

OpBucket op_of(const std::string& name, std::int64_t time_ns, std::int64_t in = 0, std::int64_t out = 0,
               Phase phase = Phase::forward) {
  OpBucket bucket;
  bucket.op = name;
  bucket.time_ns = time_ns;
  bucket.owner.phase = phase;
  bucket.work.input_elements = in;
  bucket.work.output_elements = out;
  return bucket;
}

TEST(AdviceOnPrograms, AttentionThatIsNotFused) {
  const auto fused = [](std::int64_t ns) { return op_of("aten::scaled_dot_product_attention", ns); };
  const RulesTold unfused{"attention-op-by-op"};
  EXPECT_EQ(rules_of_attention({fused(8'000), op_of("aten::_softmax_backward_data", 2'000, 0, 0, Phase::backward)}),
            unfused);
  const std::string backward = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";
  EXPECT_EQ(rules_of_attention({fused(8'000), op_of(backward, 2'000, 0, 0, Phase::backward)}), RulesTold{});
  EXPECT_EQ(rules_of_attention({fused(100'000)}), unfused);  // 1% of its roof, and all together 25%
}

// 8 queries and 8 keys of 4 heads with 16 values: 512 elements in, 256 scores, 512 elements out; of two calls.
TEST(AdviceOnPrograms, AttentionByHand) {
  const auto scores = op_of("aten::matmul", 5'000, 1'024, 512);
  const auto values = op_of("aten::matmul", 5'000, 512, 1'024);
  EXPECT_EQ(rules_of_attention({scores, op_of("aten::softmax", 5'000, 512, 512), values}),
            RulesTold{"attention-op-by-op"});
  // A router, whose softmax no product reads; products without softmax.
  EXPECT_EQ(rules_of_attention({scores, op_of("aten::softmax", 5'000, 512, 512), scores}), RulesTold{});
  EXPECT_EQ(rules_of_attention({scores, values}), RulesTold{});
}

TEST(AdviceOnPrograms, WaitingForData) {
  const auto advice_in = [](const std::string& path) {
    ProfileBuilder net;
    net.op("aten::mm", kModel, work_of(500'000, 10), 1'000);
    net.time(kModel, {1'000});
    const ModuleId region = net.module(path, std::string(kRegionType), kOutside);
    net.time(region, {300});
    const testing::Derived report = net.derived();
    return report.advice();
  };
  const auto advice = advice_in("(outside).(data loading)");
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].rule, "data-loading");
  EXPECT_EQ(advice[0].text.find("data loading (23% of the time): the program waits for its next batch"), 0U)
      << advice[0].text;
  EXPECT_TRUE(advice_in("(outside).something").empty());
}

TEST(AdviceOnPrograms, SaysNothingOfCompilersWhereOneWasAtWorkOrThereIsNone) {
  const auto text = [](bool compiled, bool cpp) {
    ProfileBuilder net;
    net.data.bypass_sought = !cpp;
    net.op("aten::relu", kModel, each_element(5'000'000, 5'000'000, 40'000'000), 800'000);
    net.time(kModel, {800'000});
    const ModuleId region = net.module("region", "Layer");
    net.op(compiled ? std::string(kCompiledRegion) : "aten::rest", region, work_of(500, 10), 1);
    net.time(region, {1});
    const testing::Derived report = net.derived();
    return report.advice().at(0).text;
  };
  EXPECT_NE(text(false, false).find("torch.compile"), std::string::npos);
  EXPECT_EQ(text(true, false).find("torch.compile"), std::string::npos);
  EXPECT_EQ(text(false, true).find("torch.compile"), std::string::npos);
}

TEST(AdviceOnPrograms, MaxPoolingInChannelsFirst) {
  const auto rules = [](bool channels_first) {
    ProfileBuilder net;
    Work pooled = each_element(1'000, 1'000, 10'000'000);
    pooled.output_elements = 250;
    net.op("aten::max_pool2d", kModel, pooled, 2'000'000).channels_first = channels_first;
    net.op("aten::rest", kModel, work_of(1'000'000'000, 10), 2'000'000);
    net.time(kModel, {4'000'000});
    return rules_told(net.derived());
  };
  EXPECT_EQ(rules(true), RulesTold{"max-pooling"});
  EXPECT_EQ(rules(false), RulesTold{"far-from-roof"});
}

// 600 of 1,600 ns, waited for in two modules.
TEST(AdviceOnPrograms, ExposedCommunicationOfAllModulesTogether) {
  ProfileBuilder net;
  net.data.mode = "block";
  net.op("aten::mm", kModel, work_of(500'000, 10), 1'000);
  net.time(kModel, {1'200});
  net.op("c10d::allreduce_", kModel, work_of(0, 8'000'000, 8'000'000), 0, 2);
  net.time(kOutside, {400});
  net.data.collectives.groups = {{"0", "gloo", 4}};
  net.data.collectives.collectives = {{.bucket = 1,
                                       .group = 0,
                                       .calls = 2,
                                       .timed_calls = 2,
                                       .time_ns = 700,
                                       .exposed_ns = 600,
                                       .exposed_known = true}};
  net.data.collectives.exposed_in = {{0, {kModel, Phase::forward, kNoRegion}, 200},
                                     {0, {kOutside, Phase::forward, kNoRegion}, 400}};
  const testing::Derived report = net.derived();
  const auto advice = report.advice();
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].rule, "exposed-communication");
  EXPECT_EQ(
      advice[0].text.find("exposed communication in (outside) and 1 more module (38% of the time): no op computed "
                          "meanwhile, most of it in all_reduce of 4MB a call"),
      0U)
      << advice[0].text;
}

}  // namespace
}  // namespace roofprof
