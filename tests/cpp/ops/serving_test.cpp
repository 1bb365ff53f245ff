// Operators of serving engines: closed forms, by the names that their arguments get in traces.

#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// 4 tokens, two halves of 8 make 8: 32 results.
CostCase gated(const char* op, const char* result, std::int64_t each) {
  return {Call(op).in(result, bf16, {4, 8}).in("input", bf16, {4, 16}), {.flops = each * 32, .read = 128, .write = 64}};
}

CostCase quantized(const char* op, std::int64_t each, std::int64_t scales_read, std::int64_t scales_written) {
  return {Call(op, "(result fp8 4x8, input bf16 4x8, scale fp32 1)"),
          {.flops = each * 32, .read = 64 + scales_read, .write = 32 + scales_written}};
}

// (4, 8) x (6, 8): 192 MACs, 24 results.
CostCase rows_product(const char* op, const char* x, const char* weight) {
  return {Call(op).in(x, bf16, {4, 8}).in(weight, bf16, {6, 8}).with("(bias bf16 6, out_dtype=15)"),
          {.macs = 192, .flops = 384 + 24, .read = 64 + 96 + 12, .write = 48}};
}

CostCase scaled_into(const char* op, const char* more) {
  return {Call(op, "(out bf16 4x6, a fp8 4x8, b fp8 8x6, a_scales fp32 4, b_scales fp32 6)").with(more),
          {.macs = 192, .flops = 384 + 2 * 24, .read = 32 + 48 + 16 + 24 + 12, .write = 48}};
}

// Two requests: one with 2 new tokens after 6, one with 1 after 9. 2 x 8 + 1 x 10 = 26 pairs, of which a mask leaves
// 7 + 8 + 10 = 25; 18 keys. 4 query heads over 2 of keys, depth 8: MACs = pairs x 4 x 16; scores: 6 each.
const char* const kTwoRequests = "(step_pairs=26, step_causal_pairs=25, step_keys=18, step_exact=1)";
const std::string kUnified =
    "vllm::unified_attention_with_output(query bf16 3x4x8, key bf16 3x2x8, value bf16 3x2x8, output bf16 3x4x8)";

Expected of_step(std::int64_t read, std::int64_t write) {
  return {.macs = 26 * 64, .flops = 2 * 26 * 64 + 6 * 26 * 4, .read = read, .write = write, .causal_macs = 25 * 64};
}

// 2 sequences of 3 tokens, 4 heads, depth 8: 9 pairs each, 6 of them before a mask.
CostCase ragged(const char* op, const char* mask) {
  return {Call(op,
               "(q bf16 6x4x8, k bf16 6x2x8, v bf16 6x2x8, cu_seqlens_q int32 3, cu_seqlens_k int32 3, max_seqlen_q=3, "
               "max_seqlen_k=3, window_size_left=-1, window_size_right=-1)")
              .scalar(mask, true)
              .scalar(mask == std::string("causal") ? "is_causal" : "causal", false)
              .with("(step_pairs=-1, step_causal_pairs=-1, step_keys=-1, step_exact=-1)"),
          {.macs = 18 * 64,
           .flops = 2 * 18 * 64 + 6 * 18 * 4,
           .read = 384 + 2 * 192,
           .write = 384,
           .causal_macs = 12 * 64}};
}

// 4 tokens of width 8 in bf16 are 64 bytes, a weight 16.
const std::vector<CostCase> kServingCases = {
    {Call("_C::rms_norm(result bf16 4x8, input bf16 4x8, weight bf16 8)"), {.flops = 128, .read = 80, .write = 64}},
    {Call("sgl_kernel::rmsnorm(output bf16 4x8, input bf16 4x8, weight bf16 8)"),
     {.flops = 128, .read = 80, .write = 64}},
    {Call("aiter::rmsnorm(out bf16 4x8, input bf16 4x8, weight bf16 8)"), {.flops = 128, .read = 80, .write = 64}},
    {Call("aiter::rms_norm(input bf16 4x8, weight bf16 8)"), {.flops = 128, .read = 80, .write = 64}},
    {Call("vllm::rocm_aiter_rms_norm(x bf16 4x8, weight bf16 8)"), {.flops = 128, .read = 80, .write = 64}},
    // Input and residual are read and written.
    {Call("_C::fused_add_rms_norm(input bf16 4x8, residual bf16 4x8, weight bf16 8)"),
     {.flops = 5 * 32, .read = 128 + 16, .write = 128}},
    {Call("aiter::add_rmsnorm(out bf16 4x8, input bf16 4x8, residual_in bf16 4x8, residual_out bf16 4x8, weight bf16 "
          "8)"),
     {.flops = 5 * 32, .read = 128 + 16, .write = 128}},
    {Call("vllm::rocm_aiter_rmsnorm2d_fwd_with_add(x bf16 4x8, residual bf16 4x8, weight bf16 8)"),
     {.flops = 5 * 32, .read = 128 + 16, .write = 128}},
    {Call("_C::rms_norm_static_fp8_quant(result fp8 4x8, input bf16 4x8, weight bf16 8, scale fp32 1)"),
     {.flops = 5 * 32, .read = 64 + 16 + 4, .write = 32}},
    {Call("_C::fused_add_rms_norm_static_fp8_quant(result fp8 4x8, input bf16 4x8, residual bf16 4x8, weight bf16 8, "
          "scale fp32 1)"),
     {.flops = 6 * 32, .read = 128 + 16 + 4, .write = 32 + 64}},
    {Call("_C::rms_norm_dynamic_per_token_quant(result fp8 4x8, input bf16 4x8, weight bf16 8, scale fp32 4)"),
     {.flops = 7 * 32, .read = 64 + 16, .write = 32 + 16}},
    {Call("_C::rms_norm_dynamic_per_token_quant(result fp8 4x8, input bf16 4x8, weight bf16 8, scale fp32 4, residual "
          "bf16 4x8)"),
     {.flops = 8 * 32, .read = 128 + 16, .write = 32 + 16 + 64}},

    gated("_C::silu_and_mul", "result", 6),
    gated("_C::gelu_and_mul", "result", 6),
    gated("_C::gelu_tanh_and_mul", "result", 10),
    gated("sgl_kernel::silu_and_mul", "out", 6),
    gated("sgl_kernel::gelu_and_mul", "out", 6),
    gated("sgl_kernel::gelu_tanh_and_mul", "out", 10),
    {Call("_C::silu_and_mul_quant(result fp8 4x8, input bf16 4x16, scale fp32 1)"),
     {.flops = 7 * 32, .read = 128 + 4, .write = 32}},
    // 4 tokens, 2 heads of 8 for queries and 1 for keys, of which 4 dimensions turn: 32 + 16 elements; a cache of 10
    // rows, of which 4 are read: 32 bytes; positions of 32 bytes.
    {Call("_C::rotary_embedding(positions int64 4, query bf16 4x16, key bf16 4x8, head_size=8, cos_sin_cache bf16 "
          "10x4)"),
     {.flops = 3 * 48, .read = 96 + 32 + 32, .write = 96}},
    quantized("_C::static_scaled_fp8_quant", 1, 4, 0),
    quantized("_C::dynamic_scaled_fp8_quant", 3, 0, 4),
    quantized("_C::dynamic_per_token_scaled_fp8_quant", 3, 0, 4),
    quantized("_C::static_scaled_int8_quant", 1, 4, 0),
    quantized("_C::dynamic_scaled_int8_quant", 3, 0, 4),
    {Call("sgl_kernel::sgl_per_token_quant_fp8(input bf16 4x8, output_q fp8 4x8, output_s fp32 4)"),
     {.flops = 3 * 32, .read = 64, .write = 32 + 16}},

    rows_product("vllm::rocm_unquantized_gemm", "x", "weight"),
    rows_product("aiter::gemm_a16w16", "A", "B"),
    {Call("_rocm_C::LLMM1(in_a bf16 4x8, in_b bf16 6x8, out_dtype=15)"),
     {.macs = 192, .flops = 384, .read = 64 + 96, .write = 48}},
    {Call("aiter::gemm_a8w8_blockscale(XQ fp8 4x8, WQ fp8 6x8, x_scale fp32 4, w_scale fp32 6, out_dtype=6)"),
     {.macs = 192, .flops = 384 + 24, .read = 32 + 48 + 40, .write = 96}},
    scaled_into("_C::cutlass_scaled_mm", "(bias bf16 6)"),
    scaled_into("_C::cutlass_scaled_mm_azp", "(azp_adj none, azp none, bias bf16 6)"),
    {Call("_C::cutlass_scaled_fp4_mm(out bf16 4x6, a uint8 4x8, b uint8 6x8)"),
     {.macs = 384, .int_ops = 768 + 24, .read = 32 + 48, .write = 48}},
    {Call("sgl_kernel::fp8_scaled_mm(a fp8 4x8, b fp8 8x6, scales_a fp32 4, scales_b fp32 6, out_dtype=15, bias bf16 "
          "6)"),
     {.macs = 192, .flops = 384 + 48, .read = 32 + 48 + 40 + 12, .write = 48}},
    // 3 new tokens of 2 heads of 4, a cache of 1-byte elements, slots of 24 bytes.
    {Call("_C_cache_ops::reshape_and_cache(key bf16 3x2x4, value bf16 3x2x4, key_cache uint8 10x16x2x4, value_cache "
          "uint8 10x16x2x4, slot_mapping int64 3)"),
     {.flops = 48, .read = 48 + 48 + 24, .write = 24 + 24}},
    {Call("_C_cache_ops::concat_and_cache_mla(kv_c bf16 3x8, k_pe bf16 3x4, kv_cache bf16 10x16x12, slot_mapping int64 "
          "3)"),
     {.read = 48 + 24 + 24, .write = 48 + 24}},

    {Call(kUnified).with(kTwoRequests).with("(cache_item_bytes=1, cache_written=0)"), of_step(192 + 18 * 32, 192)},
    // The operator writes the cache itself: of 18 keys 15 are read from there, 3 where they come in.
    {Call(kUnified).with(kTwoRequests).with("(cache_item_bytes=1, cache_written=1)"),
     of_step(192 + 2 * 96 + 15 * 32, 192 + 2 * 48)},
    // Without a step's sums: each token with itself, a cache of at least a byte for each element.
    {Call(kUnified), {.macs = 3 * 64, .flops = 2 * 3 * 64 + 6 * 3 * 4, .read = 192 + 3 * 32, .write = 192}},
    {Call("vllm::unified_attention(query bf16 3x4x8, key bf16 3x2x8, value bf16 3x2x8)")
         .with(kTwoRequests)
         .with("(cache_item_bytes=1, cache_written=0)"),
     of_step(192 + 18 * 32, 192)},
    {Call("sglang_profiler::attention_paged_attention_ragged(out bf16 3x4x8, workspace uint8 1000, query bf16 3x4x8, "
          "key_cache bf16 90x1x2x8, value_cache bf16 90x1x2x8, kv_indptr int32 3)")
         .with(kTwoRequests)
         .with("(cache_item_bytes=2, cache_written=0)"),
     of_step(192 + 12 + 18 * 2 * 32, 192)},
    ragged("flash_attn::_flash_attn_varlen_forward", "causal"),
    ragged("aiter::fmha_v3_varlen_fwd", "is_causal"),
    // 2 batches, 3 queries, 5 keys: 15 pairs each; a mask aligned at the last key leaves 3 + 4 + 5.
    {Call("flash_attn::_flash_attn_forward(q bf16 2x3x4x8, k bf16 2x5x2x8, v bf16 2x5x2x8, causal=true, "
          "is_causal=false, window_size_left=-1, window_size_right=-1)"),
     {.macs = 30 * 64, .flops = 2 * 30 * 64 + 6 * 30 * 4, .read = 384 + 2 * 320, .write = 384, .causal_macs = 24 * 64}},

    {Call("vllm::moe_forward(hidden_states bf16 4x8, router_logits bf16 4x5)"), {.read = 64 + 40, .write = 64}},
    // 4 tokens of width 8, 2 of 5 experts each, inner width 6: (12 x 8 + 8 x 6) MACs for each of 8 visits.
    {Call("vllm::inplace_fused_experts(hidden_states bf16 4x8, w1 bf16 5x12x8, w2 bf16 5x8x6, topk_weights fp32 4x2, "
          "topk_ids int32 4x2)"),
     {.macs = 8 * 144,
      .flops = 2 * 8 * 144 + 6 * 8 * 6 + 2 * 8 * 8,
      .read = 64 + 32 + 32 + 2 * (192 + 96),
      .write = 64}},
    {Call("_moe_C::topk_softmax(topk_weights fp32 4x2, topk_indices int32 4x2, token_expert_indices int32 4x2, "
          "gating_output fp32 4x5)"),
     {.flops = 6 * 20, .read = 80, .write = 96}},
    {Call("sgl_kernel::topk_softmax(topk_weights fp32 4x2, topk_indices int32 4x2, gating_output fp32 4x5)"),
     {.flops = 6 * 20, .read = 80, .write = 64}},
    {Call("_moe_C::moe_sum(input bf16 4x2x8, output bf16 4x8)"), {.flops = 64, .read = 128, .write = 64}},
};

TEST(Serving, Costs) { check_family(serving_costs(), kServingCases); }

TEST(Serving, SaysWhatIsALowerLimit) {
  const auto is_limit = [](const OpCall& call) { return cost_of(call)->lower_limit; };
  EXPECT_TRUE(is_limit(Call(kUnified)));
  EXPECT_TRUE(is_limit(Call(kUnified).with(kTwoRequests)));  // the cache's type is not known
  EXPECT_FALSE(is_limit(Call(kUnified).with(kTwoRequests).with("(cache_item_bytes=2)")));
  EXPECT_TRUE(is_limit(Call("vllm::moe_forward(hidden_states bf16 4x8, router_logits bf16 4x5)")));
  // One token takes its experts and no others.
  for (const std::string tokens : {"1", "4"}) {
    EXPECT_EQ(
        is_limit(Call("vllm::outplace_fused_experts(hidden_states bf16 " + tokens + "x8, w1 bf16 5x12x8, w2 bf16 " +
                      "5x8x6, topk_weights fp32 " + tokens + "x2, topk_ids int32 " + tokens + "x2)")),
        tokens == "4");
  }
  Work sum = *cost_of(Call("_C::rms_norm(result bf16 4x8, input bf16 4x8, weight bf16 8)"));
  EXPECT_FALSE(sum.lower_limit);
  sum += *cost_of(Call(kUnified));
  EXPECT_TRUE(sum.lower_limit);
  // Sequences of 5 and 1 tokens: 26 pairs; equal lengths, the least, make 18.
  const auto ragged_work =
      cost_of(Call("aiter::fmha_v3_varlen_fwd(q bf16 6x4x8, k bf16 6x2x8, v bf16 6x2x8, cu_seqlens_q int32 3, "
                   "cu_seqlens_k int32 3, max_seqlen_q=5, max_seqlen_k=5, is_causal=false)"));
  EXPECT_TRUE(ragged_work->lower_limit);
  EXPECT_EQ(ragged_work->macs, 18 * 64);
}

TEST(Serving, ATracesArgumentsGetTheirNames) {
  OpCall call = Call("x::y(0 bf16 2, 1 bf16 3, 2 bf16 4, 3 bf16 5)");
  name_arguments(call, "result!, state&, workspace-");
  EXPECT_EQ(call.arguments[0].name, "result");
  EXPECT_TRUE(call.arguments[0].written);
  EXPECT_EQ(call.arguments[1].name, "state");
  EXPECT_TRUE(call.arguments[1].written);
  EXPECT_EQ(call.arguments[2].name, "workspace");
  EXPECT_FALSE(call.arguments[2].written);
  EXPECT_EQ(call.arguments[3].name, "3");
}

TEST(Triton, CountsEachPointerOnceAsALowerLimit) {
  struct {
    const char* call;
    std::int64_t read;
    std::int64_t write;
  } const cases[] = {
      {"triton_poi_fused_add_0(0 bf16 4x8, 1 bf16 4x8, 2 fp32 4x8, 3=32)", 64 + 64, 128},
      {"triton_poi_fused_add_0(0 bf16 4x8 expanded 10, 1 bf16 4x8, 2=32)", 16, 64},
      // Reductions loop over both sizes.
      {"triton_red_fused_mean_0(0 bf16 4x8, 1 bf16 8, 2 fp32 4, 3=4, 4=8)", 64 + 16, 16},
      {"triton_per_fused_mean_0(0 bf16 4x8, 1 bf16 4, 2=4, 3=8)", 64, 8},
      // A table of 1,000 rows, of which 4 are looked up; nothing of it where the loop's size is not known.
      {"triton_poi_fused_embedding_0(0 int64 4, 1 bf16 1000x8, 2 bf16 4x8, 3=32)", 32 + 64, 64},
      {"triton_poi_fused_embedding_0(0 int64 4, 1 bf16 1000x8, 2 bf16 4x8)", 32, 64},
      // Pools read all of their input.
      {"triton_poi_fused_max_pool2d_with_indices_0(0 bf16 8x8, 1 bf16 4x4, 2=16)", 128, 32},
      // Nothing but the first pointer has an element for each turn: it must be updated in place, unless it is
      // scattered.
      {"triton_poi_fused_relu_0(0 bf16 4x8, 1 bf16 8, 2 bf16 8, 3=32)", 64 + 16 + 16, 64},
      {"triton_poi_fused_index_put_0(0 bf16 4x8, 1 bf16 8, 2=32)", 64, 16},
  };
  for (const auto& [call, read, write] : cases) {
    SCOPED_TRACE(call);
    const auto work = *cost_of(OpCall(Call(call)), &triton_cost());
    EXPECT_EQ(work.read_bytes, read);
    EXPECT_EQ(work.write_bytes, write);
    EXPECT_EQ(work.updated_bytes, std::string_view(call).starts_with("triton_poi_fused_relu") ? 64 : 0);
    EXPECT_TRUE(work.lower_limit);
    EXPECT_EQ(work.flops(), 0);
  }
}

}  // namespace
}  // namespace roofprof::ops
