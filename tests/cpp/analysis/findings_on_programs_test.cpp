// Rules about the program around the layers, and about code that is slow by itself.

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/findings/findings.h"
#include "support/profile_builder.h"
#include "support/told_rules.h"

namespace roofprof {
namespace {

using testing::per_element;
using testing::ProfileBuilder;
using testing::Rules;
using testing::rules_of;
using testing::work_of;

Rules rules_of_layout(const std::string& op, bool channels_first, const std::string& device = "cpu",
                      std::int64_t time_ns = 2'000'000) {
  ProfileBuilder net;
  net.data.run.device = device;
  auto& bucket = net.op(op, kModel, work_of(800'000'000, 1'000), time_ns);
  bucket.shapes = testing::shapes("1x96x112x112, 96x96x3x3, 96");
  bucket.channels_first = channels_first;
  net.time(kModel, {time_ns});
  return rules_of(net.derived());
}

TEST(FindingsOnPrograms, ConvolutionsInChannelsFirstOnACpu) {
  EXPECT_EQ(rules_of_layout("aten::conv2d", true), Rules{"channels-last"});
  EXPECT_EQ(rules_of_layout("aten::convolution_backward", true), Rules{"channels-last"});
  EXPECT_EQ(rules_of_layout("aten::conv2d", false), Rules{});
  EXPECT_EQ(rules_of_layout("aten::conv2d", true, "cuda:0"), Rules{});
  // At 80% of the roof little is left to gain.
  EXPECT_EQ(rules_of_layout("aten::conv2d", true, "cpu", 1'000'000), Rules{"compute-bound"});
}

// Reads 4 bytes an element, writes 2.
TEST(FindingsOnPrograms, CastsCountTogether) {
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
    return rules_of(net.derived());
  };
  EXPECT_EQ(rules(2'000, 10), Rules{"casts"});
  EXPECT_EQ(rules(4'000, 10), Rules{"copies"});  // in one type
}

// `copy_` has the elements that it writes as its input's, too.
TEST(FindingsOnPrograms, ACopyThatBroadcastsConvertsNothing) {
  const auto rules = [](const std::string& op, std::int64_t read, std::int64_t written, const std::string& shapes) {
    ProfileBuilder net;
    auto& copy = net.op(op, kModel, work_of(0, read, written), 1'000'000);
    copy.work.input_elements = copy.work.output_elements = 10'000;
    copy.shapes = testing::shapes(shapes);
    net.time(kModel, {1'000'000});
    return rules_of(net.derived());
  };
  EXPECT_EQ(rules("aten::copy_", 400, 40'000, "100x100, 100"), Rules{"copies"});
  EXPECT_EQ(rules("aten::copy_", 20'000, 40'000, "2x5000, 1x5000"), Rules{"copies"});
  EXPECT_EQ(rules("aten::copy_", 20'000, 40'000, "2x5000, 2x5000"), Rules{"casts"});  // fp16 into fp32
  EXPECT_EQ(rules("aten::_to_copy", 400, 40'000, "100x100"), Rules{"copies"});        // of an expanded tensor
}

TEST(FindingsOnPrograms, AnOptimizerThatWorksOpByOp) {
  const auto rules = [](const std::vector<std::string>& ops) {
    ProfileBuilder net;
    net.op("aten::mm", kModel, work_of(450'000, 10), 900);
    net.time(kModel, {900});
    for (const auto& op : ops) net.op(op, kOptimizer, work_of(0, 300'000, 300'000), 100'000 / std::ssize(ops));
    net.time(kOptimizer, {100'000}, 1, Phase::optimizer);
    return rules_of(net.derived());
  };
  EXPECT_EQ(rules({"aten::mul_", "aten::lerp_", "aten::addcdiv_"}), Rules{"optimizer-op-by-op"});
  EXPECT_EQ(rules({"aten::_foreach_mul_", "aten::_foreach_lerp_", "aten::_foreach_addcdiv_"}),
            Rules{"optimizer-op-by-op"});
  EXPECT_EQ(rules({"aten::_fused_adamw_", "aten::_foreach_add_", "aten::mul_", "aten::add_"}), Rules{});
  EXPECT_EQ(rules({"aten::add_"}), Rules{});  // one pass as it is
}

// Beside attention something that reaches half of its roof.
Rules rules_of_attention(const std::vector<OpBucket>& ops) {
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
  return rules_of(net.derived());
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

TEST(FindingsOnPrograms, AttentionThatIsNotFused) {
  const auto fused = [](std::int64_t ns) { return op_of("aten::scaled_dot_product_attention", ns); };
  const Rules unfused{"attention-op-by-op"};
  EXPECT_EQ(rules_of_attention({fused(8'000), op_of("aten::_softmax_backward_data", 2'000, 0, 0, Phase::backward)}),
            unfused);
  const std::string backward = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";
  EXPECT_EQ(rules_of_attention({fused(8'000), op_of(backward, 2'000, 0, 0, Phase::backward)}), Rules{});
  EXPECT_EQ(rules_of_attention({fused(100'000)}), unfused);  // 1% of its roof, and all together 25%
}

// 8 queries and 8 keys of 4 heads with 16 values: 512 elements in, 256 scores, 512 elements out; of two calls.
TEST(FindingsOnPrograms, AttentionByHand) {
  const auto scores = op_of("aten::matmul", 5'000, 1'024, 512);
  const auto values = op_of("aten::matmul", 5'000, 512, 1'024);
  EXPECT_EQ(rules_of_attention({scores, op_of("aten::softmax", 5'000, 512, 512), values}), Rules{"attention-op-by-op"});
  // A router, whose softmax no product reads; products without softmax.
  EXPECT_EQ(rules_of_attention({scores, op_of("aten::softmax", 5'000, 512, 512), scores}), Rules{});
  EXPECT_EQ(rules_of_attention({scores, values}), Rules{});
}

TEST(FindingsOnPrograms, WaitingForData) {
  const auto findings_in = [](const std::string& path) {
    ProfileBuilder net;
    net.op("aten::mm", kModel, work_of(500'000, 10), 1'000);
    net.time(kModel, {1'000});
    const ModuleId region = net.module(path, std::string(kRegionType), kOutside);
    net.time(region, {300});
    const testing::Derived report = net.derived();
    return report.findings();
  };
  const auto findings = findings_in("(outside).(data loading)");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "data-loading");
  EXPECT_EQ(findings[0].text.find("data loading (23% of the time): the program waits for its next batch"), 0U)
      << findings[0].text;
  EXPECT_TRUE(findings_in("(outside).something").empty());
}

TEST(FindingsOnPrograms, SaysNothingOfCompilersWhereOneWasAtWorkOrThereIsNone) {
  const auto text = [](bool compiled, bool cpp) {
    ProfileBuilder net;
    net.data.run.bypass_sought = !cpp;
    net.op("aten::relu", kModel, per_element(5'000'000, 5'000'000, 40'000'000), 800'000);
    net.time(kModel, {800'000});
    const ModuleId region = net.module("region", "Layer");
    net.op(compiled ? std::string(kCompiledRegion) : "aten::rest", region, work_of(500, 10), 1);
    net.time(region, {1});
    const testing::Derived report = net.derived();
    return report.findings().at(0).action;
  };
  EXPECT_NE(text(false, false).find("torch.compile"), std::string::npos);
  EXPECT_EQ(text(true, false).find("torch.compile"), std::string::npos);
  EXPECT_EQ(text(false, true).find("torch.compile"), std::string::npos);
}

// 800,000 ns of relu and 800,000 ns outside of ops, of which observing took 300,000: one gain of compiling all of it.
TEST(FindingsOnPrograms, CompilingIsProposedOnceForTheWholeModel) {
  ProfileBuilder net;
  net.op("aten::relu", kModel, per_element(5'000'000, 5'000'000, 40'000'000), 800'000);
  net.op("aten::mm", kModel, work_of(200'000'000, 10), 400'000).calls = 20;
  net.time(kModel, {2'000'000});
  net.data.run.runs.total_ns = {2'000'000, 2'000'000};
  net.data.run.runs.chosen = 0;
  net.data.run.runs.bare_ns = {1'700'000, 1'700'000};
  const auto found = net.derived().findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].try_it, "model = torch.compile(model)");
  EXPECT_EQ(found[0].gain_low_ns, 260'000);     // a fifth of 800,000 + 500,000
  EXPECT_EQ(found[0].gain_high_ns, 1'235'000);  // 95% of the same
  EXPECT_EQ(found[0].evidence.at("percent_outside_ops"), 40);
  EXPECT_EQ(found[0].evidence.at("percent_fusible"), 40);
}

// Of 9,000 ns outside of ops observing took 4,000: a fifth to 95% of the rest is to be had. Where it took 8,500,
// nothing of note is.
TEST(FindingsOnPrograms, WhatObservingTookIsNoGain) {
  const auto found = [](std::int64_t bare_ns) {
    ProfileBuilder net;
    net.op("aten::mm", kModel, work_of(500'000, 10), 1'000);
    net.time(kModel, {10'000, 10'000});
    net.data.run.runs.bare_ns = {bare_ns, bare_ns};
    return net.derived().findings();
  };
  const auto some = found(6'000);
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].gain_low_ns, 1'000);
  EXPECT_EQ(some[0].gain_high_ns, 4'750);
  EXPECT_EQ(found(10'000).at(0).gain_high_ns, 8'550);
  EXPECT_EQ(found(12'000).at(0).gain_high_ns, 8'550);  // a bare call that took longer takes nothing away
  EXPECT_TRUE(found(1'500).empty());
}

// Code that tries channels_last changes the image only where the model takes one tensor, and that is an image.
TEST(FindingsOnPrograms, ChannelsLastIsTriedOnImages) {
  const auto tried = [](std::vector<std::vector<std::int64_t>> inputs, const char* other = "aten::rest") {
    ProfileBuilder net;
    net.data.tree.modules[kModel].input_shapes = std::move(inputs);
    Work pooled = per_element(1'000, 1'000, 10'000'000);
    net.op("aten::max_pool2d", kModel, pooled, 2'000'000).channels_first = true;
    net.op(other, kModel, work_of(1'000'000'000, 10), 2'000'000);
    net.time(kModel, {4'000'000});
    return net.derived().findings().at(0).try_it.value_or("");
  };
  const std::string model = "model = model.to(memory_format=torch.channels_last)";
  EXPECT_EQ(tried({{1, 3, 32, 32}}), model + "; x = x.to(memory_format=torch.channels_last)");
  EXPECT_EQ(tried({{3, 32, 32}}), model);              // an image of a list, as detection takes them
  EXPECT_EQ(tried({{1, 3, 32, 32}, {1, 10}}), model);  // of a dict or several arguments
  EXPECT_EQ(tried({}), model);
  EXPECT_EQ(tried({{1, 3, 8, 32, 32}}, "aten::conv3d"), "");
}

// The run that the rows come from took 700 ns outside of ops; the others as much, or 10 ns.
TEST(FindingsOnPrograms, WhatInterruptsOneRunIsNotTheCode) {
  const auto rules = [](std::int64_t others_ns) {
    ProfileBuilder net;
    const ModuleId layer = net.module("layer", "Layer");
    net.op("aten::mm", layer, work_of(500'000, 10), 1'000);
    net.time(layer, {1'000, 1'000, 1'000});
    net.time(kModel, {700, others_ns, others_ns});
    return rules_of(net.derived());
  };
  EXPECT_EQ(rules(700), Rules{"outside-ops"});
  EXPECT_EQ(rules(10), Rules{});
}

TEST(FindingsOnPrograms, PoolingInChannelsFirst) {
  const auto rules = [](const std::string& op, bool channels_first) {
    ProfileBuilder net;
    Work pooled = per_element(1'000, 1'000, 10'000'000);
    pooled.output_elements = 250;
    net.op(op, kModel, pooled, 2'000'000).channels_first = channels_first;
    net.op("aten::rest", kModel, work_of(1'000'000'000, 10), 2'000'000);
    net.time(kModel, {4'000'000});
    return rules_of(net.derived());
  };
  EXPECT_EQ(rules("aten::max_pool2d", true), Rules{"pooling"});
  EXPECT_EQ(rules("aten::avg_pool2d", true), Rules{"pooling"});
  EXPECT_EQ(rules("aten::adaptive_avg_pool2d", true), Rules{"far-from-roof"});
  EXPECT_EQ(rules("aten::max_pool2d", false), Rules{"far-from-roof"});
}

// 600 of 1,600 ns, waited for in two modules.
TEST(FindingsOnPrograms, ExposedCommunicationOfAllModulesTogether) {
  ProfileBuilder net;
  net.data.run.mode = Mode::block;
  net.op("aten::mm", kModel, work_of(500'000, 10), 1'000);
  net.time(kModel, {1'200});
  net.op("c10d::allreduce_", kModel, work_of(0, 8'000'000, 8'000'000), 0, 2);
  net.time(kOutside, {400});
  net.data.comms.make().groups = {{"0", "gloo", 4}};
  net.data.comms.make().collectives = {{.bucket = 1,
                                        .group = 0,
                                        .calls = 2,
                                        .timed_calls = 2,
                                        .time_ns = 700,
                                        .exposed_ns = 600,
                                        .exposed_known = true}};
  net.data.comms.make().exposed_in = {{0, {kModel, Phase::forward, kNoRegion}, 200},
                                      {0, {kOutside, Phase::forward, kNoRegion}, 400}};
  const testing::Derived report = net.derived();
  const auto findings = report.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "exposed-communication");
  EXPECT_EQ(
      findings[0].text.find("exposed communication in (outside) and 1 more module (38% of the time): no op computed "
                            "meanwhile, most of it in all_reduce of 4MB a call"),
      0U)
      << findings[0].text;
  EXPECT_TRUE(findings[0].try_it);
  EXPECT_NE(findings[0].action.find("larger buckets"), std::string::npos) << findings[0].action;

  // Buckets are DistributedDataParallel's, and of all_reduce: no larger ones help where they are large.
  for (const auto& [op, bytes] : {std::pair{"c10d::allreduce_", 40'000'000}, {"c10d::alltoall_", 4'000'000}}) {
    auto other = net;
    other.data.counts.ops[1].op = op;
    other.data.counts.ops[1].work = work_of(0, 2 * bytes, 2 * bytes);
    const auto of_other = other.derived().findings();
    ASSERT_EQ(of_other.size(), 1U) << op;
    EXPECT_EQ(of_other[0].rule, "exposed-communication");
    EXPECT_FALSE(of_other[0].try_it) << op;
    EXPECT_EQ(of_other[0].action.find("larger buckets"), std::string::npos) << of_other[0].action;
  }
}

// ---- work that need not be done

Work copy_of(std::int64_t bytes) {
  Work work = work_of(0, bytes, bytes);
  work.macs = work.causal_macs = 0;
  work.input_elements = work.output_elements = bytes / 4;
  return work;
}

TEST(FindingsOnPrograms, CopiesAndWhatIsMadeInTheForward) {
  const auto rules = [](const std::string& op, std::int64_t calls) {
    ProfileBuilder net;
    net.op(op, kModel, copy_of(20'000'000), 500'000).calls = calls;
    net.op("aten::mm", kModel, work_of(250'000'000, 10), 500'000);
    net.time(kModel, {1'000'000});
    return rules_of(net.derived());
  };
  EXPECT_EQ(rules("aten::clone", 1), Rules{"copies"});
  EXPECT_EQ(rules("aten::cat", 1), Rules{});  // that is what it is for
  EXPECT_EQ(rules("aten::cat", 10), Rules{"joined-in-a-loop"});
  EXPECT_EQ(rules("aten::randn", 1), Rules{"made-in-forward"});
}

// Zeros of torch's own forwards: a state that the user can pass, and others that nobody can.
TEST(FindingsOnPrograms, TensorsThatTorchMakes) {
  const auto findings = [](const std::string& type, bool of_torch, const std::string& op = "aten::zeros") {
    ProfileBuilder net;
    const ModuleId layer = net.module("layer", type);
    net.data.tree.modules.back().forward_of_torch = of_torch;
    net.op(op, layer, copy_of(20'000'000), 500'000);
    net.op("aten::mm", kModel, work_of(250'000'000, 10), 500'000);
    net.time(layer, {500'000});
    net.time(kModel, {500'000});
    return net.derived().findings();
  };
  EXPECT_TRUE(findings("MultiheadAttention", true).empty());
  EXPECT_TRUE(findings("torch::nn::MultiheadAttentionImpl", false).empty());
  for (const auto& found : {findings("LSTM", true), findings("GRUCell", true), findings("torch::nn::RNNImpl", false)}) {
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rule, "made-in-forward");
    EXPECT_NE(found[0].action.find("h0"), std::string::npos);
  }
  EXPECT_EQ(findings("LSTM", false).at(0).action, "make them once, in the constructor (register_buffer)");
  EXPECT_NE(findings("Mine", false, "aten::exponential_").at(0).action.find("may have the same"), std::string::npos);
}

// The pooling is fused, too; what the product takes is not.
TEST(FindingsOnPrograms, CompilingSaysWithWhichFindingsItsGainOverlaps) {
  ProfileBuilder net;
  net.op("aten::relu", kModel, per_element(5'000'000, 5'000'000, 40'000'000), 800'000);
  Work pooled = per_element(1'000, 1'000, 10'000'000);
  pooled.output_elements = 250;
  net.op("aten::max_pool2d", kModel, pooled, 2'000'000).channels_first = true;
  net.op("aten::mm", kModel, work_of(800'000'000, 10), 1'000'000);
  net.time(kModel, {3'800'000});
  const auto found = net.derived().findings();
  const auto compiles = std::ranges::find(found, "element-wise", &Finding::rule);
  ASSERT_NE(compiles, found.end());
  EXPECT_TRUE(compiles->text.ends_with("in ops that it can fuse; its gain overlaps with that of pooling"))
      << compiles->text;
}

TEST(FindingsOnPrograms, DoublePrecision) {
  const auto findings = [](DType dtype) {
    ProfileBuilder net;
    net.data.roofs.compute.push_back({DType::fp64, 2.5e11, {}});
    auto& bucket = net.op("aten::linear", kModel, work_of(100'000'000, 10, 10, dtype), 1'000'000);
    bucket.dtype = dtype;
    bucket.shapes = testing::shapes("1x100, 100x100");
    net.time(kModel, {1'000'000});
    return net.derived().findings();
  };
  EXPECT_TRUE(findings(DType::fp32).empty());
  const auto found = findings(DType::fp64);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rule, "double-precision");
  EXPECT_EQ(found[0].evidence.at("ratio"), 4);  // of the roofs
  // Three quarters are at stake.
  EXPECT_EQ(found[0].gain_low_ns, 375'000);
  EXPECT_EQ(found[0].gain_high_ns, 1'000'000);  // never more than all
}

// Code that tries fp32 runs where the type of model and input is all that makes it fp64.
TEST(FindingsOnPrograms, DoublePrecisionIsTriedWhereNothingElseMakesIt) {
  const auto tried = [](auto change) {
    ProfileBuilder net;
    net.data.tree.modules[kModel].params = 10;
    net.data.tree.modules[kModel].param_bytes = 80;
    net.data.tree.modules[kModel].input_shapes = {{1, 100}};
    auto& bucket = net.op("aten::linear", kModel, work_of(100'000'000, 10, 10, DType::fp64), 1'000'000);
    bucket.dtype = DType::fp64;
    net.time(kModel, {1'000'000});
    change(net);
    const auto found = net.derived().findings();
    return found.at(0).rule == "double-precision" ? found.at(0).try_it : "another rule";
  };
  const auto copy = [](ProfileBuilder& net, DType from, std::int64_t read, std::int64_t written) {
    auto& bucket = net.op("aten::_to_copy", kModel, work_of(0, read, written), 10);
    bucket.dtype = from;
    bucket.work.input_elements = bucket.work.output_elements = 10;
  };
  ASSERT_TRUE(tried([](ProfileBuilder&) {}));
  EXPECT_FALSE(tried([](ProfileBuilder& net) { net.data.tree.modules[kModel].input_shapes.push_back({1}); }));
  EXPECT_TRUE(tried([&](ProfileBuilder& net) { copy(net, DType::fp64, 80, 80); }));   // a copy
  EXPECT_TRUE(tried([&](ProfileBuilder& net) { copy(net, DType::fp64, 80, 40); }));   // to fp32
  EXPECT_FALSE(tried([&](ProfileBuilder& net) { copy(net, DType::fp32, 40, 80); }));  // .double()
  EXPECT_FALSE(tried([&](ProfileBuilder& net) { copy(net, DType::int64, 80, 80); }));
  EXPECT_FALSE(tried([](ProfileBuilder& net) { net.data.tree.modules[kModel].param_bytes = 40; }));  // a plain tensor's
  EXPECT_TRUE(tried([](ProfileBuilder& net) {
    net.data.tree.modules[kModel].param_bytes = 40;
    net.data.tree.modules[kModel].buffer_bytes = 8;
  }));
}

// Narrower weights meet what the forward makes wider.
TEST(FindingsOnPrograms, CastsAreTriedWhereNoneIsToAWiderType) {
  const auto tried = [](std::int64_t read, std::int64_t written) {
    ProfileBuilder net;
    auto& bucket = net.op("aten::_to_copy", kModel, work_of(0, read, written), 1'000'000);
    bucket.work.input_elements = bucket.work.output_elements = 1'000'000;
    net.data.tree.modules[kModel].input_shapes = {{1'000'000}};
    net.time(kModel, {1'000'000});
    const auto found = net.derived().findings();
    return found.at(0).rule == "casts" ? found.at(0).try_it : "another rule";
  };
  EXPECT_TRUE(tried(4'000'000, 2'000'000));
  EXPECT_FALSE(tried(2'000'000, 4'000'000));
}

TEST(FindingsOnPrograms, ValuesThatAreReadOnTheHost) {
  const auto rules = [](std::int64_t reads) {
    ProfileBuilder net;
    net.op("aten::_local_scalar_dense", kModel, {}, 10).calls = reads;
    net.op("aten::mm", kModel, work_of(500'000, 10), 1'000);
    net.time(kModel, {3'000});
    return rules_of(net.derived());
  };
  EXPECT_EQ(rules(20), Rules{"host-sync"});
  EXPECT_EQ(rules(1), Rules{"outside-ops"});
}

TEST(FindingsOnPrograms, ChannelsThatExceedAVector) {
  const auto rules = [](const std::string& shapes) {
    ProfileBuilder net;
    net.data.run.device = "cpu";
    net.op("aten::conv2d", kModel, work_of(800'000'000, 1'000), 2'000'000).shapes = testing::shapes(shapes);
    net.time(kModel, {2'000'000});
    return rules_of(net.derived());
  };
  EXPECT_EQ(rules("1x33x112x112, 64x33x3x3, 64"), Rules{"misaligned-channels"});
  EXPECT_EQ(rules("1x64x112x112, 33x64x3x3, 33"), Rules{"misaligned-channels"});
  EXPECT_EQ(rules("1x48x112x112, 64x48x3x3, 64"), Rules{});
  EXPECT_EQ(rules("1x3x112x112, 64x3x3x3, 64"), Rules{});  // an image
}

TEST(FindingsOnPrograms, AModuleWhoseResultNothingReads) {
  const auto findings = [](std::int64_t unread_bytes) {
    ProfileBuilder net;
    const ModuleId branch = net.module("branch", "Branch");
    const ModuleId inner = net.module("branch.inner", "Linear", branch);
    net.op("aten::linear", inner, work_of(500'000, 100, 100), 1'000);
    net.data.counts.ops.back().crossings = {{2, 100, 100, unread_bytes}, {0, 100, 0, 0}};
    net.op("aten::mm", kModel, work_of(500'000, 100, 100), 1'000);
    net.data.counts.ops.back().crossings = {{0, 100, 100, 0}};
    net.time(inner, {1'000});
    net.time(kModel, {1'000});
    net.data.counts.crossings_known = true;
    return net.derived().findings();
  };
  EXPECT_TRUE(findings(99).empty());
  const auto found = findings(100);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rule, "never-used");
  EXPECT_EQ(found[0].modules, std::vector<std::string>{"branch"});  // not what is inside it
  EXPECT_EQ(found[0].id, "never-used/branch");
  EXPECT_EQ(found[0].gain_high_ns, 1'000);
}

}  // namespace
}  // namespace roofprof
