#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

// Batch 2, 8 query heads, 2 key heads, 6 queries, 10 keys, depth 16, value depth 4, fp16: 2*8*6*10 = 960 scores.
// Elements: query 2*8*6*16 = 1536, key 2*2*10*16 = 640, value 2*2*10*4 = 160, output 2*8*6*4 = 384.
constexpr std::int64_t kAttentionScores = 960;
constexpr std::int64_t kMacs = kAttentionScores * (16 + 4);
constexpr std::int64_t kFlops = 2 * kMacs + 6 * kAttentionScores;
constexpr std::int64_t kRead = 2 * (1536 + 640 + 160);
// Of 6 x 10 pairs a causal mask from the first query and key on leaves 1 + 2 + ... + 6 = 21.
constexpr std::int64_t kCausalMacs = 2 * 8 * 21 * (16 + 4);
// Five products: three over the depth, two over the value depth. 6 per score, 2 per output element.
constexpr std::int64_t kBackwardMacs = kAttentionScores * (3 * 16 + 2 * 4);
constexpr std::int64_t kBackwardFlops = 2 * kBackwardMacs + 6 * kAttentionScores + 2 * 384;

Call forward(std::string name, bool causal = false, double dropout = 0) {
  return Call(std::move(name), "(query fp16 2x8x6x16, key fp16 2x2x10x16, value fp16 2x2x10x4)")
      .scalar("dropout_p", dropout)
      .scalar("is_causal", causal)
      .out(fp16, {2, 8, 6, 4});
}

// The fused kernels also write one fp32 logsumexp for each of 96 queries.
constexpr Expected kForward = {.macs = kMacs, .flops = kFlops, .read = kRead, .write = 768};
constexpr Expected kFusedCausal = {
    .macs = kMacs, .flops = kFlops, .read = kRead, .write = 768 + 384, .causal_macs = kCausalMacs};

Call attention_backward(std::string name, bool causal = false) {
  return Call(std::move(name),
              "(grad_out fp16 2x8x6x4, query fp16 2x8x6x16, key fp16 2x2x10x16, value fp16 2x2x10x4, out fp16 2x8x6x4, "
              "logsumexp fp32 2x8x6, dropout_p=0.0)")
      .scalar("is_causal", causal)
      .with("-> fp16 2x8x6x16, fp16 2x2x10x16, fp16 2x2x10x4");
}

constexpr Expected kBackward = {
    .macs = kBackwardMacs, .flops = kBackwardFlops, .read = kRead + 2 * 768 + 384, .write = kRead};
constexpr Expected kBackwardCausal = {.macs = kBackwardMacs,
                                      .flops = kBackwardFlops,
                                      .read = kRead + 2 * 768 + 384,
                                      .write = kRead,
                                      .causal_macs = 2 * 8 * 21 * (3 * 16 + 2 * 4)};

// Tokens first, 2 x 6 queries and 2 x 10 keys: in a batch, or as one ragged row with cumulative lengths.
Call tokens_first(std::string name, bool ragged) {
  Call call(std::move(name));
  if (ragged) {
    call.in("query", fp16, {12, 8, 16}).with("(key fp16 20x2x16, value fp16 20x2x4)");
  } else {
    call.in("query", fp16, {2, 6, 8, 16}).with("(key fp16 2x10x2x16, value fp16 2x10x2x4)");
  }
  return call.scalar("dropout_p", 0.0);
}

Call flash(std::string name, bool ragged, bool causal) {
  return tokens_first(std::move(name), ragged)
      .with("(max_q=6, max_k=10)")
      .scalar("is_causal", causal)
      .out(fp16, ragged ? Sizes{12, 8, 4} : Sizes{2, 6, 8, 4});
}

Call efficient(std::string name, std::int64_t mask_type) {
  return tokens_first(std::move(name), false)
      .with("(max_seqlen_q none, max_seqlen_k none)")
      .scalar("custom_mask_type", mask_type)
      .out(fp16, {2, 6, 8, 4});
}

// Aligned at the last query and key, 6 queries see 5, 6, ..., 10 keys: 45 pairs.
constexpr Expected kCausalFromLast = {
    .macs = kMacs, .flops = kFlops, .read = kRead, .write = 768, .causal_macs = 2 * 8 * 45 * (16 + 4)};
constexpr Expected kCausalFromFirst = {
    .macs = kMacs, .flops = kFlops, .read = kRead, .write = 768, .causal_macs = kCausalMacs};
// One matrix of outputs stands for the three gradients here: the cost is under test, not the schema.
constexpr Expected kTokensBackward = {.macs = kBackwardMacs, .flops = kBackwardFlops, .read = kRead, .write = 768};

// 2 x 5 tokens, width 8, 2 heads (2*2*5*5 = 100 scores of depth 4), fp32: four projections of 8 x 8 for 10 tokens.
constexpr std::int64_t kHeadMacs = 4 * 10 * 64 + 100 * 2 * 4;
// Bias for 4 x 80 elements, the query's scale for 80.
constexpr std::int64_t kHeadOthers = 320 + 80;

Call multi_head(bool weights, bool average) {
  return Call(
             "aten::_native_multi_head_attention(query fp32 2x5x8, key fp32 2x5x8 repeated, value fp32 2x5x8 repeated, "
             "num_head=2, qkv_weight fp32 24x8, qkv_bias fp32 24, proj_weight fp32 8x8, proj_bias fp32 8)")
      .scalar("need_weights", weights)
      .scalar("average_attn_weights", average)
      .out(fp32, {2, 5, 8});
}

Call encoder_layer(bool gelu) {
  return Call(
             "aten::_transformer_encoder_layer_fwd(src fp32 2x5x8, num_heads=2, qkv_weight fp32 24x8, qkv_bias fp32 "
             "24, proj_weight fp32 8x8, proj_bias fp32 8)")
      .scalar("use_gelu", gelu)
      .with(
          "(norm_weight_1 fp32 8, norm_bias_1 fp32 8, norm_weight_2 fp32 8, norm_bias_2 fp32 8, ffn_weight_1 fp32 "
          "16x8, ffn_bias_1 fp32 16, ffn_weight_2 fp32 8x16, ffn_bias_2 fp32 8) -> fp32 2x5x8");
}

// Two linears 8 -> 16 -> 8 for 10 tokens; bias, two residuals, two norms of 8 for 80 elements; 160 hidden ones.
constexpr std::int64_t kLayerMacs = kHeadMacs + 2 * 10 * 8 * 16;
constexpr std::int64_t kLayerOthers = kHeadOthers + 5 * 100 + 80 * (1 + 2 + 16) + 160;

std::vector<CostCase> attention_cases() {
  return {
      {forward("aten::scaled_dot_product_attention"), kForward},
      {forward("aten::scaled_dot_product_attention", true), kCausalFromFirst},
      {forward("aten::scaled_dot_product_attention", false, 0.1),
       {.macs = kMacs, .flops = kFlops + 3 * kAttentionScores}},
      // One mask of 6 x 10 for all heads.
      {forward("aten::scaled_dot_product_attention").in("attn_mask", fp16, {6, 10}),
       {.macs = kMacs, .flops = kFlops + kAttentionScores}},
      // No heads, and more queries than keys: 1 + 2 + 3, then 3 each for two more queries.
      {Call("aten::scaled_dot_product_attention(query fp32 5x4, key fp32 3x4, value fp32 3x4, is_causal=true) -> fp32 "
            "5x4"),
       {.macs = 15 * 8, .flops = 240 + 90, .causal_macs = 12 * 8}},
      // Its second result, the scores, is never counted as written.
      {forward("aten::_scaled_dot_product_attention_math").out(fp16, {2, 8, 6, 10}), kForward},
      {forward("aten::_scaled_dot_product_flash_attention", true).out(fp32, {2, 8, 6}), kFusedCausal},
      {flash("aten::_flash_attention_forward", false, false), kForward},
      {flash("aten::_flash_attention_forward", false, true), kCausalFromLast},
      {flash("aten::_flash_attention_forward", true, true), kCausalFromLast},
      {efficient("aten::_efficient_attention_forward", 0), kForward},
      {efficient("aten::_efficient_attention_forward", 1), kCausalFromFirst},
      {efficient("aten::_efficient_attention_forward", 2), kCausalFromLast},

      {attention_backward("aten::_scaled_dot_product_flash_attention_backward"), kBackward},
      {attention_backward("aten::_scaled_dot_product_flash_attention_backward", true), kBackwardCausal},
      {flash("aten::_flash_attention_backward", true, false), kTokensBackward},
      {efficient("aten::_efficient_attention_backward", 0), kTokensBackward},

      {multi_head(false, true), {.macs = kHeadMacs, .flops = 2 * kHeadMacs + kHeadOthers + 5 * 100}},
      {multi_head(true, true).with("(mask boolean 5x5) -> fp32 2x5x5"),
       {.macs = kHeadMacs, .flops = 2 * kHeadMacs + kHeadOthers + 7 * 100}},
      {encoder_layer(false), {.macs = kLayerMacs, .flops = 2 * kLayerMacs + kLayerOthers + 160}},
      {encoder_layer(true), {.macs = kLayerMacs, .flops = 2 * kLayerMacs + kLayerOthers + 5 * 160}},
      {Call("aten::_transform_bias_rescale_qkv(qkv fp32 2x5x24, qkv_bias fp32 24) -> fp32 2x2x5x4, fp32 2x2x5x4, fp32 "
            "2x2x5x4"),
       {.flops = 240 + 80}},
  };
}

TEST(Attention, Costs) { check_family(attention_costs(), attention_cases()); }

}  // namespace
}  // namespace roofprof::ops::testing
