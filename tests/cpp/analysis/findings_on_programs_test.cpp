// Rules about the program around the layers, and about code that is slow by itself.

#include <gtest/gtest.h>

#include "analysis/findings/findings.h"
#include "support/profile_builder.h"
#include "support/rules_of_findings.h"

namespace roofprof {
namespace {

using testing::model_of;
using testing::per_element;
using testing::ProfileBuilder;
using testing::Ran;
using testing::Rules;
using testing::rules_of;
using testing::work_of;

// Moves all of its bytes, of which a quarter comes out.
Work pooled() {
  Work work = per_element(1'000, 1'000, 10'000'000);
  work.output_elements = 250;
  return work;
}

Work copy_of(std::int64_t read_bytes, std::int64_t written_bytes, std::int64_t elements) {
  Work work = work_of(0, read_bytes, written_bytes);
  work.input_elements = work.output_elements = elements;
  return work;
}

TEST(FindingsOnPrograms, ConvolutionsInChannelsFirstOnACpu) {
  const auto net = [](bool channels_first, std::int64_t time_ns) {
    const std::string shapes = "1x96x112x112, 96x96x3x3, 96";
    return model_of({{"aten::conv2d", work_of(800'000'000, 1'000), time_ns, shapes, channels_first}});
  };
  EXPECT_EQ(rules_of(net(true, 2'000'000)), Rules{"channels-last"});
  EXPECT_EQ(rules_of(net(false, 2'000'000)), Rules{});
  EXPECT_EQ(rules_of(net(true, 1'000'000)), Rules{"compute-bound"});  // at 80% of the roof little is left to gain
  auto on_gpu = net(true, 2'000'000);
  on_gpu.data.run.device = "cuda:0";
  EXPECT_EQ(rules_of(on_gpu), Rules{});
}

TEST(FindingsOnPrograms, ChannelsThatExceedAVector) {
  const auto rules = [](const std::string& shapes) {
    return rules_of(model_of({{"aten::conv2d", work_of(800'000'000, 1'000), 2'000'000, shapes}}));
  };
  EXPECT_EQ(rules("1x33x112x112, 64x33x3x3, 64"), Rules{"misaligned-channels"});
  EXPECT_EQ(rules("1x64x112x112, 33x64x3x3, 33"), Rules{"misaligned-channels"});
  EXPECT_EQ(rules("1x48x112x112, 64x48x3x3, 64"), Rules{});
  EXPECT_EQ(rules("1x3x112x112, 64x3x3x3, 64"), Rules{});  // an image
}

TEST(FindingsOnPrograms, PoolingInChannelsFirst) {
  const auto rules = [](const std::string& op, bool channels_first) {
    return rules_of(model_of(
        {{op, pooled(), 2'000'000, "", channels_first}, {"aten::rest", work_of(1'000'000'000, 10), 2'000'000}}));
  };
  EXPECT_EQ(rules("aten::max_pool2d", true), Rules{"pooling"});
  EXPECT_EQ(rules("aten::avg_pool2d", true), Rules{"pooling"});
  EXPECT_EQ(rules("aten::adaptive_avg_pool2d", true), Rules{"far-from-roof"});
  EXPECT_EQ(rules("aten::max_pool2d", false), Rules{"far-from-roof"});
}

// Code that tries channels_last changes the image only where the model takes one tensor, and that is an image.
TEST(FindingsOnPrograms, ChannelsLastIsTriedOnImages) {
  const auto tried = [](std::vector<std::vector<std::int64_t>> inputs, const char* other = "aten::rest") {
    auto net =
        model_of({{"aten::max_pool2d", pooled(), 2'000'000, "", true}, {other, work_of(1'000'000'000, 10), 2'000'000}});
    net.data.tree.modules[kModel].input_shapes = std::move(inputs);
    return net.derived().findings().at(0).try_it.value_or("");
  };
  const std::string model = "model = model.to(memory_format=torch.channels_last)";
  EXPECT_EQ(tried({{1, 3, 32, 32}}), model + "; x = x.to(memory_format=torch.channels_last)");
  EXPECT_EQ(tried({{3, 32, 32}}), model);              // an image of a list, as detection takes them
  EXPECT_EQ(tried({{1, 3, 32, 32}, {1, 10}}), model);  // of a dict or several arguments
  EXPECT_EQ(tried({{1, 3, 8, 32, 32}}, "aten::conv3d"), "");
}

// ---- work that need not be done

TEST(FindingsOnPrograms, CastsCountTogether) {
  const auto rules = [](std::int64_t written) {
    ProfileBuilder net;
    for (int i = 0; i < 10; ++i) {
      const ModuleId layer = net.module("layer" + std::string(1, static_cast<char>('a' + i)), "Layer");
      net.op("aten::_to_copy", layer, copy_of(4'000, written, 1'000), 100);
      net.op("aten::mm", layer, work_of(450'000, 10), 900);
      net.time(layer, {1'000});
    }
    return rules_of(net);
  };
  EXPECT_EQ(rules(2'000), Rules{"casts"});   // reads 4 bytes an element, writes 2
  EXPECT_EQ(rules(4'000), Rules{"copies"});  // in one type
}

// `copy_` has the elements that it writes as its input's, too.
TEST(FindingsOnPrograms, ACopyThatBroadcastsConvertsNothing) {
  const auto rules = [](std::int64_t read, const std::string& shapes) {
    return rules_of(model_of({{"aten::copy_", copy_of(read, 40'000, 10'000), 1'000'000, shapes}}));
  };
  EXPECT_EQ(rules(400, "100x100, 100"), Rules{"copies"});
  EXPECT_EQ(rules(20'000, "2x5000, 1x5000"), Rules{"copies"});
  EXPECT_EQ(rules(20'000, "2x5000, 2x5000"), Rules{"casts"});  // fp16 into fp32
}

TEST(FindingsOnPrograms, CopiesAndWhatIsMadeInTheForward) {
  const auto rules = [](const std::string& op, std::int64_t calls) {
    return rules_of(model_of({{op, copy_of(20'000'000, 20'000'000, 5'000'000), 500'000, "", false, calls},
                              {"aten::mm", work_of(250'000'000, 10), 500'000}}));
  };
  EXPECT_EQ(rules("aten::clone", 1), Rules{"copies"});
  EXPECT_EQ(rules("aten::cat", 1), Rules{});  // that is what it is for
  EXPECT_EQ(rules("aten::cat", 10), Rules{"joined-in-a-loop"});
  EXPECT_EQ(rules("aten::randn", 1), Rules{"made-in-forward"});
}

// Zeros of torch's own forwards: a state that the user can pass, and others that nobody can.
TEST(FindingsOnPrograms, TensorsThatTorchMakes) {
  const auto findings = [](const std::string& type, bool of_torch) {
    ProfileBuilder net;
    const ModuleId layer = net.module("layer", type);
    net.data.tree.modules.back().forward_of_torch = of_torch;
    net.op("aten::zeros", layer, copy_of(20'000'000, 20'000'000, 5'000'000), 500'000);
    net.op("aten::mm", kModel, work_of(250'000'000, 10), 500'000);
    net.time(layer, {500'000});
    net.time(kModel, {500'000});
    return net.derived().findings();
  };
  EXPECT_TRUE(findings("MultiheadAttention", true).empty());
  EXPECT_TRUE(findings("torch::nn::MultiheadAttentionImpl", false).empty());
  for (const auto& found : {findings("LSTM", true), findings("torch::nn::RNNImpl", false)}) {
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rule, "made-in-forward");
    EXPECT_NE(found[0].action.find("h0"), std::string::npos);
  }
  EXPECT_EQ(findings("LSTM", false).at(0).action, "make them once, in the constructor (register_buffer)");
}

TEST(FindingsOnPrograms, DoublePrecision) {
  const auto findings = [](DType dtype) {
    auto net = model_of({{"aten::linear", work_of(100'000'000, 10, 10, dtype), 1'000'000, "1x100, 100x100"}});
    net.data.roofs.compute.push_back({DType::fp64, 2.5e11, {}});
    net.data.counts.ops.back().dtype = dtype;
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

// Narrower weights meet what the forward makes wider.
TEST(FindingsOnPrograms, CastsAreTriedWhereNoneIsToAWiderType) {
  const auto tried = [](std::int64_t read, std::int64_t written) {
    auto net = model_of({{"aten::_to_copy", copy_of(read, written, 1'000'000), 1'000'000}});
    net.data.tree.modules[kModel].input_shapes = {{1'000'000}};
    const auto found = net.derived().findings();
    return found.at(0).rule == "casts" ? found.at(0).try_it : "another rule";
  };
  EXPECT_TRUE(tried(4'000'000, 2'000'000));
  EXPECT_FALSE(tried(2'000'000, 4'000'000));
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
  EXPECT_EQ(found[0].modules, std::vector<std::string>{"branch"});  // not what is inside it
  EXPECT_EQ(found[0].id, "never-used/branch");
  EXPECT_EQ(found[0].gain_high_ns, 1'000);
}

// ---- attention and optimizers

TEST(FindingsOnPrograms, AnOptimizerThatWorksOpByOp) {
  const auto rules = [](const std::vector<std::string>& ops) {
    auto net = model_of({{"aten::mm", work_of(450'000, 10), 900}});
    for (const auto& op : ops) net.op(op, kOptimizer, work_of(0, 300'000, 300'000), 100'000 / std::ssize(ops));
    net.time(kOptimizer, {100'000}, 1, Phase::optimizer);
    return rules_of(net);
  };
  EXPECT_EQ(rules({"aten::mul_", "aten::lerp_", "aten::addcdiv_"}), Rules{"optimizer-op-by-op"});
  EXPECT_EQ(rules({"aten::_foreach_mul_", "aten::_foreach_lerp_", "aten::_foreach_addcdiv_"}),
            Rules{"optimizer-op-by-op"});
  EXPECT_EQ(rules({"aten::_fused_adamw_", "aten::_foreach_add_", "aten::mul_", "aten::add_"}), Rules{});
  EXPECT_EQ(rules({"aten::add_"}), Rules{});  // one pass as it is
}

// Two calls of each op, beside something that reaches half of its roof. Names that end in "backward" are of that phase.
Rules rules_of_attention(const std::vector<Ran>& ops) {
  ProfileBuilder net;
  const ModuleId attention = net.module("attention", "Attention");
  std::int64_t all_ns = 0;
  for (const auto& ran : ops) {
    auto& bucket = net.op(ran.op, attention, work_of(1'000'000, 10), ran.time_ns, 2);
    if (ran.op.find("backward") != std::string::npos) bucket.owner.phase = Phase::backward;
    bucket.work.input_elements = ran.work.input_elements;
    bucket.work.output_elements = ran.work.output_elements;
    all_ns += ran.time_ns;
  }
  net.time(attention, {all_ns});
  const ModuleId rest = net.module("rest", "Rest");
  net.op("aten::rest", rest, work_of(50'000'000, 10), 100'000);
  net.time(rest, {100'000});
  return rules_of(net);
}

TEST(FindingsOnPrograms, AttentionThatIsNotFused) {
  const Rules unfused{"attention-op-by-op"};
  const Ran fused{"aten::scaled_dot_product_attention", {}, 8'000};
  EXPECT_EQ(rules_of_attention({fused, {"aten::_softmax_backward_data", {}, 2'000}}), unfused);
  EXPECT_EQ(rules_of_attention({fused, {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", {}, 2'000}}),
            Rules{});
  EXPECT_EQ(rules_of_attention({{fused.op, {}, 100'000}}), unfused);  // 1% of its roof, and all together 25%
}

// 8 queries and 8 keys of 4 heads with 16 values: 512 elements in, 256 scores, 512 elements out; of two calls.
TEST(FindingsOnPrograms, AttentionByHand) {
  const auto ran = [](const std::string& op, std::int64_t in, std::int64_t out) {
    Work work;
    work.input_elements = in;
    work.output_elements = out;
    return Ran{op, work, 5'000};
  };
  const auto scores = ran("aten::matmul", 1'024, 512), softmax = ran("aten::softmax", 512, 512);
  const auto values = ran("aten::matmul", 512, 1'024);
  EXPECT_EQ(rules_of_attention({scores, softmax, values}), Rules{"attention-op-by-op"});
  // A router, whose softmax no product reads; products without softmax.
  EXPECT_EQ(rules_of_attention({scores, softmax, scores}), Rules{});
  EXPECT_EQ(rules_of_attention({scores, values}), Rules{});
}

// ---- compiling, waiting, and time outside of ops

TEST(FindingsOnPrograms, WaitingForData) {
  const auto findings_in = [](const std::string& path) {
    auto net = model_of({{"aten::mm", work_of(500'000, 10), 1'000}});
    net.time(net.module(path, std::string(kRegionType), kOutside), {300});
    return net.derived().findings();
  };
  const auto findings = findings_in("(outside).(data loading)");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "data-loading");
  EXPECT_TRUE(findings[0].text.starts_with("data loading (23% of the time): the program waits for its next batch"));
  EXPECT_TRUE(findings_in("(outside).something").empty());
}

TEST(FindingsOnPrograms, SaysNothingOfCompilersWhereOneWasAtWorkOrThereIsNone) {
  const auto names_compile = [](bool compiled, bool cpp) {
    auto net = model_of({{"aten::relu", per_element(5'000'000, 5'000'000, 40'000'000), 800'000}});
    net.data.run.bypass_sought = !cpp;
    const ModuleId region = net.module("region", "Layer");
    net.op(compiled ? std::string(kCompiledRegion) : "aten::rest", region, work_of(500, 10), 1);
    net.time(region, {1});
    return net.derived().findings().at(0).action.find("torch.compile") != std::string::npos;
  };
  EXPECT_TRUE(names_compile(false, false));
  EXPECT_FALSE(names_compile(true, false) || names_compile(false, true));
}

// 800,000 ns of relu and 800,000 ns outside of ops, of which observing took 300,000: one gain of compiling all of it.
TEST(FindingsOnPrograms, CompilingIsProposedOnceForTheWholeModel) {
  auto net = model_of({{"aten::relu", per_element(5'000'000, 5'000'000, 40'000'000), 800'000},
                       {"aten::mm", work_of(200'000'000, 10), 400'000, "", false, 20}},
                      800'000);
  net.data.run.runs.total_ns = {2'000'000, 2'000'000};
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
  EXPECT_EQ(found(12'000).at(0).gain_high_ns, 8'550);  // a bare call that took longer takes nothing away
  EXPECT_TRUE(found(1'500).empty());
}

// The run that the rows come from took 700 ns outside of ops; the others as much, or 10 ns.
TEST(FindingsOnPrograms, WhatInterruptsOneRunIsNotTheCode) {
  const auto rules = [](std::int64_t others_ns) {
    ProfileBuilder net;
    const ModuleId layer = net.module("layer", "Layer");
    net.op("aten::mm", layer, work_of(500'000, 10), 1'000);
    net.time(layer, {1'000, 1'000, 1'000});
    net.time(kModel, {700, others_ns, others_ns});
    return rules_of(net);
  };
  EXPECT_EQ(rules(700), Rules{"outside-ops"});
  EXPECT_EQ(rules(10), Rules{});
}

TEST(FindingsOnPrograms, ValuesThatAreReadOnTheHost) {
  const auto rules = [](std::int64_t reads) {
    return rules_of(model_of(
        {{"aten::_local_scalar_dense", {}, 10, "", false, reads}, {"aten::mm", work_of(500'000, 10), 1'000}}, 1'990));
  };
  EXPECT_EQ(rules(20), Rules{"host-sync"});
  EXPECT_EQ(rules(1), Rules{"outside-ops"});
}

// 600 of 1,600 ns, waited for in two modules.
TEST(FindingsOnPrograms, ExposedCommunicationOfAllModulesTogether) {
  const auto found_of = [](const std::string& op, std::int64_t bytes) {
    auto net = model_of({{"aten::mm", work_of(500'000, 10), 1'000}}, 200);
    net.data.run.mode = Mode::block;
    net.op(op, kModel, work_of(0, 2 * bytes, 2 * bytes), 0, 2);
    net.time(kOutside, {400});
    auto& comms = net.data.comms.make();
    comms.groups = {{"0", "gloo", 4}};
    comms.collectives = {{.bucket = 1,
                          .group = 0,
                          .calls = 2,
                          .timed_calls = 2,
                          .time_ns = 700,
                          .exposed_ns = 600,
                          .exposed_known = true}};
    comms.exposed_in = {{0, {kModel, Phase::forward, kNoRegion}, 200}, {0, {kOutside, Phase::forward, kNoRegion}, 400}};
    const auto found = net.derived().findings();
    EXPECT_EQ(found.size(), 1U);
    EXPECT_EQ(found.at(0).rule, "exposed-communication");
    return found.at(0);
  };
  const auto found = found_of("c10d::allreduce_", 4'000'000);
  EXPECT_TRUE(
      found.text.starts_with("exposed communication in (outside) and 1 more module (38% of the time): no op "
                             "computed meanwhile, most of it in all_reduce of 4MB a call"))
      << found.text;
  EXPECT_TRUE(found.try_it && found.action.find("larger buckets") != std::string::npos) << found.action;
  // Buckets are DistributedDataParallel's, and of all_reduce: no larger ones help where they are large.
  for (const auto& other : {found_of("c10d::allreduce_", 40'000'000), found_of("c10d::alltoall_", 4'000'000)}) {
    EXPECT_FALSE(other.try_it || other.action.find("larger buckets") != std::string::npos) << other.action;
  }
}

}  // namespace
}  // namespace roofprof
