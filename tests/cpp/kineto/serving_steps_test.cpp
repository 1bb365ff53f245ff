// Steps of serving engines: their annotations read, what attention gets of them, how they are shown; compiled regions.

#include "kineto/serving_steps.h"

#include <gtest/gtest.h>

#include <map>

#include "kineto/trace_builder.h"

namespace roofprof::kineto {
namespace {

using testing::derived_of;
using testing::note_of;
using testing::observed_of;
using testing::TraceText;

struct Request {
  std::int64_t queries;
  std::int64_t keys;
};

// What a step of these requests does, request by request: each new token sees itself and all that is before it.
ServingStep summed(const std::vector<Request>& requests) {
  ServingStep step;
  for (const auto& [queries, keys] : requests) {
    ++step.requests;
    step.queries += queries;
    step.keys += keys;
    step.pairs += queries * keys;
    for (std::int64_t token = 1; token <= queries; ++token) step.causal_pairs += keys - queries + token;
  }
  return step;
}

std::string sums(const std::vector<Request>& requests) {
  std::int64_t squares = 0;
  for (const auto& request : requests) squares += request.queries * request.queries;
  const auto all = summed(requests);
  return std::to_string(all.requests) + "(sq" + std::to_string(all.queries) + "sk" + std::to_string(all.keys) + "sqsq" +
         std::to_string(squares) + "sqsk" + std::to_string(all.pairs) + ")";
}

void expect_same(const std::string& range, std::string_view kind, const ServingStep& expected, bool exact) {
  SCOPED_TRACE(range);
  const auto step = serving_step(range);
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->kind, kind);
  EXPECT_EQ(step->requests, expected.requests);
  EXPECT_EQ(step->queries, expected.queries);
  EXPECT_EQ(step->exact, exact);
  if (!exact) {
    EXPECT_LE(step->keys, expected.keys);
    EXPECT_LE(step->pairs, expected.pairs);
    EXPECT_LE(step->causal_pairs, expected.causal_pairs);
  } else {
    EXPECT_EQ(step->keys, expected.keys);
    EXPECT_EQ(step->pairs, expected.pairs);
    EXPECT_EQ(step->causal_pairs, expected.causal_pairs);
  }
}

const std::vector<Request> prefills = {{20, 20}, {12, 20}};
const std::vector<Request> decodes = {{1, 40}, {3, 50}};
const std::vector<Request> both = {{20, 20}, {12, 20}, {1, 40}, {3, 50}};

TEST(ServingSteps, SumsOfRequestsAreExact) {
  const std::string none = "0(sq0sk0sqsq0sqsk0)";
  expect_same("execute_32_context_" + sums(prefills) + "_generation_" + none, "prefill", summed(prefills), true);
  expect_same("execute_4_context_" + none + "_generation_" + sums(decodes), "decode", summed(decodes), true);
  expect_same("execute_36_context_" + sums(prefills) + "_generation_" + sums(decodes), "mixed", summed(both), true);
  expect_same("step[DECODE bs=2 g_sq=4 g_sqsq=10 g_sqsk=190 g_sk=90]", "decode", summed(decodes), true);
  expect_same("step[EXTEND bs=2 toks=32 c_sq=32 c_sqsq=544 c_sqsk=640 c_sk=40]", "prefill", summed(prefills), true);
  expect_same("step[MIXED bs=4 c=2 g=2 c_sq=32 c_sk=40 c_sqsq=544 c_sqsk=640 g_sq=4 g_sk=90 g_sqsq=10 g_sqsk=190]",
              "mixed", summed(both), true);
  expect_same("prefill[bs=2 tok=32 ctx=[20, 12] sqsq=544 sqsk=640 sk=40]", "prefill", summed(prefills), true);
  expect_same("decode[bs=2 tok=4 d=2 spec=2 sqsq=10 sqsk=190 sk=90]", "decode", summed(decodes), true);
}

TEST(ServingSteps, RequestsAndTokensAloneAreLowerLimits) {
  expect_same("execute_context_2(32)_generation_0(0)", "prefill", summed(prefills), false);
  expect_same("execute_context_0(0)_generation_2(4)", "decode", summed(decodes), false);
  expect_same("execute_context_2(32)_generation_2(4)", "mixed", summed(both), false);
  expect_same("step[EXTEND bs=2 toks=32]", "prefill", summed(prefills), false);
  expect_same("decode[bs=2/8 tok=4 d=2]", "decode", summed(decodes), false);
  expect_same("step[DECODE bs=2]", "decode", summed({{1, 40}, {1, 50}}), false);
  // One request without a cached token: 888 x 889 / 2 pairs before the mask's diagonal and on it.
  const auto one = serving_step("execute_context_1(888_788544)_generation_0(0)");
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->pairs, 888 * 888);
  EXPECT_EQ(one->causal_pairs, 888 * 889 / 2);
  EXPECT_FALSE(one->exact);
}

TEST(ServingSteps, OtherRangesAreNone) {
  for (const auto* range :
       {"", "execute_model", "execute_context_1(2)", "execute_context_1(2)_generation_1(x)",
        "execute_context_0(0)_generation_0(0)", "execute_1_context_0(sq0sk0sqsq0sqsk0)_generation_1(sq1sk2sqsq1)",
        "execute_context_99999999999999999999(1)_generation_0(0)", "step[0]", "step[WARMUP bs=3]", "decode[]",
        "prefill[bs=2]", "capture_32_DECODE", "execute_context_1(2)_generation_0(0)x"}) {
    EXPECT_FALSE(serving_step(range).has_value()) << range;
  }
}

const std::string kDecode = "execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk90sqsq2sqsk90)";
const std::string kCacheWrite =
    R"("Input Dims": [[2, 2, 8], [2, 2, 8], [9, 16, 2, 8], [9, 16, 2, 8], [2]], "Input type": ["c10::BFloat16", )"
    R"("c10::BFloat16", "unsigned char", "unsigned char", "long int"])";

TraceText& attention(TraceText& text, std::int64_t begin, std::int64_t length) {
  return text.op("vllm::unified_attention_with_output", begin, length);
}

std::map<std::string, std::int64_t> facts_of(const Trace& trace, std::string_view op, int number = 0) {
  for (const auto& event : trace.host) {
    if (event.kind != HostKind::op || trace.names[event.name] != op || number-- > 0) continue;
    const auto& facts = trace.calls[at(event.call)].facts;
    return {facts.begin(), facts.end()};
  }
  return {};
}

using Facts = std::map<std::string, std::int64_t>;

TEST(ServingSteps, AttentionGetsItsStepAndTheCachesType) {
  TraceText text;
  text.range(kDecode, 0, 100);
  text.event("cpu_op", "_C_cache_ops::reshape_and_cache_flash", 5, 5, kCacheWrite);
  attention(text, 20, 10);
  text.range("execute_2_context_1(sq2sk2sqsq4sqsk4)_generation_0(sq0sk0sqsq0sqsk0)", 200, 100);
  attention(text, 220, 30);
  text.event("cpu_op", "_C_cache_ops::reshape_and_cache_flash", 225, 5, kCacheWrite);
  attention(text, 400, 10);
  auto trace = text.trace();
  const auto tree = host_tree(trace.host);
  const auto steps = find_serving_steps(trace, tree);
  const std::string op = "vllm::unified_attention_with_output";
  EXPECT_EQ(facts_of(trace, op, 0), (Facts{{"cache_item_bytes", 1},
                                           {"step_pairs", 90},
                                           {"step_causal_pairs", 90},
                                           {"step_keys", 90},
                                           {"step_exact", 1}}));
  EXPECT_EQ(facts_of(trace, op, 1), (Facts{{"cache_item_bytes", 1},
                                           {"cache_written", 1},
                                           {"step_pairs", 4},
                                           {"step_causal_pairs", 3},
                                           {"step_keys", 2},
                                           {"step_exact", 1}}));
  EXPECT_EQ(facts_of(trace, op, 2), (Facts{{"cache_item_bytes", 1}}));
  EXPECT_EQ(steps.of_whole_context, 2);
  ASSERT_EQ(steps.tokens.size(), 2U);
  EXPECT_EQ(steps.tokens[0].region, "decode");
  EXPECT_EQ(steps.tokens[0].tokens, 2);
  EXPECT_EQ(steps.tokens[0].most_context, -1);  // two requests: the sum is known, not each
  EXPECT_EQ(steps.tokens[1].region, "prefill");
  EXPECT_EQ(steps.tokens[1].most_context, 2);
}

TEST(ServingSteps, AWindowsKernelMakesTheContextUnknown) {
  TraceText text;
  text.range(kDecode, 0, 100);
  attention(text, 20, 10).launch(1, 22).kernel("fmhaKernelPagedKvSlidingOrChunkedCausal", 1, 40, 10);
  attention(text, 50, 10).launch(2, 52).kernel("fmhaKernelPagedKvCausal", 2, 60, 10);
  auto trace = text.trace();
  const auto steps = find_serving_steps(trace, host_tree(trace.host));
  EXPECT_EQ(steps.windowed, 1);
  EXPECT_FALSE(facts_of(trace, "vllm::unified_attention_with_output", 0).contains("step_pairs"));
  EXPECT_TRUE(facts_of(trace, "vllm::unified_attention_with_output", 1).contains("step_pairs"));
}

TEST(ServingSteps, OfNestedAnnotationsTheExactOneCounts) {
  for (const auto& [outside, inside] : {std::pair<std::string, std::string>(kDecode, "step[DECODE bs=2]"),
                                        std::pair<std::string, std::string>("step[DECODE bs=2]", kDecode)}) {
    TraceText text;
    text.range(outside, 0, 100).range(inside, 10, 80);
    attention(text, 20, 10);
    auto trace = text.trace();
    EXPECT_EQ(find_serving_steps(trace, host_tree(trace.host)).tokens.at(0).calls, 1);
    EXPECT_EQ(facts_of(trace, "vllm::unified_attention_with_output").at("step_pairs"), 90) << outside;
  }
}

TEST(ServingSteps, KindsOfStepsAreRegions) {
  TraceText text;
  text.range(kDecode, 0, 100).range("step[DECODE bs=2]", 10, 80).op("aten::mm", 20, 10);
  text.range("execute_context_1(2)_generation_1(1)", 200, 100).op("aten::mm", 220, 10);
  text.range("execute_context_1(2)_generation_0(0)", 400, 100).op("aten::add", 420, 10);
  const auto record = observed_of(text);
  std::vector<std::string> names;
  for (const auto& region : record.tree.regions) names.push_back(region.name);
  EXPECT_EQ(names, (std::vector<std::string>{"decode", "mixed", "prefill"}));
}

TEST(ServingSteps, NotesSayWhatIsNotKnown) {
  TraceText text;
  text.range("execute_context_1(2)_generation_0(0)", 0, 100);
  attention(text, 20, 10);
  const auto lacks = note_of(observed_of(text).notes, "trace-lacks");
  EXPECT_NE(lacks.find("'execute_context_1(2)_generation_0(0)' does not say how long"), std::string::npos) << lacks;
  TraceText exact;
  exact.range(kDecode, 0, 100);
  attention(exact, 20, 10);
  EXPECT_NE(note_of(observed_of(exact).notes, "whole-context").find("1 call of attention"), std::string::npos);
}

TEST(CompiledRegions, AreRows) {
  TraceText text;
  text.event("cpu_op", "Torch-Compiled Region: 0/1", 0, 100)
      .range("## Call CompiledFxGraph fabcdefghijk ##", 10, 80)
      .op("aten::mm", 20, 10);
  text.range("## Call CompiledFxGraph fzyxwvuts ##", 200, 50).op("aten::mm", 210, 10);
  const auto record = observed_of(text);
  std::vector<std::string> names;
  for (const auto& region : record.regions) names.push_back(region.name);
  EXPECT_EQ(names, (std::vector<std::string>{"compiled region 0/1", "compiled region fzyxwvut"}));
}

}  // namespace
}  // namespace roofprof::kineto
