// Attention: softmax(scale * Q K^T + mask) V, the scores never written. MACs are dense; causal_macs counts what the
// causal mask leaves, exactly.

#include <algorithm>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- parts of the formulas

constexpr std::int64_t kSoftmaxOps = 5;    // max, subtract, exp, sum, divide
constexpr std::int64_t kForwardScore = 6;  // scale, softmax
// Scale, subtract logsumexp, exp; then dS = P * (dP - delta), scale.
constexpr std::int64_t kBackwardScore = 6;
constexpr std::int64_t kDropout = 3;          // draw, mask, rescale
constexpr std::int64_t kDropoutBackward = 2;  // mask, rescale
constexpr std::int64_t kLayerNormOps = 8;     // as aten::layer_norm with weight and bias
constexpr std::int64_t kGelu = 5;             // as aten::gelu

// The start of the causal mask's diagonal; the numbers are those of custom_mask_type.
enum class Causal : std::uint8_t { no = 0, from_first = 1, from_last = 2 };

struct Shape {
  std::int64_t heads = 0;  // batch x query heads; fewer key heads (grouped queries) save bytes, no MACs
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t depth = 0;
  std::int64_t value_depth = 0;
  std::int64_t sequence = 0;  // queries that share their keys: fewer than `queries` in a ragged batch

  std::int64_t scores() const { return product({heads, queries, keys}); }
};

// (batch, heads, tokens, depth), or fewer leading dimensions.
Shape heads_first(const OpCall& call) {
  const TensorDesc& query = call.tensor("query");
  const TensorDesc& key = call.tensor("key");
  Shape shape{1, query.size(-2), key.size(-2), query.size(-1), call.tensor("value").size(-1), query.size(-2)};
  // Leading dimensions may be broadcast from either side.
  for (int dim = 3; dim <= std::max(query.dim(), key.dim()); ++dim) {
    const std::int64_t of_query = dim <= query.dim() ? query.size(-dim) : 1;
    const std::int64_t of_key = dim <= key.dim() ? key.size(-dim) : 1;
    shape.heads = saturating_multiply(shape.heads, of_query == 0 ? 0 : std::max(of_query, of_key));
  }
  return shape;
}

// Reads the shape (batch, tokens, heads, depth). A ragged batch is one row of tokens, with its cumulative lengths in
// another tensor. Those are values, so all its sequences count as the longest: an upper bound, exact where all are
// equally long.
Shape tokens_first(const OpCall& call, std::string_view longest_queries, std::string_view longest_keys) {
  const TensorDesc& query = call.tensor("query");
  const std::int64_t batch = query.dim() == 3 ? 1 : query.size(0);
  const std::int64_t queries = query.size(-3);
  std::int64_t keys = call.tensor("key").size(-3);
  if (const auto* pages = call.find_tensor("block_table")) keys = product({keys, pages->size(-1)});
  return {saturating_multiply(batch, query.size(-2)),
          queries,
          std::min(keys, call.integer(longest_keys, keys)),
          query.size(-1),
          call.tensor("value").size(-1),
          std::min(queries, call.integer(longest_queries, queries))};
}

std::int64_t seen_scores(const Shape& shape, Causal causal) {
  if (causal == Causal::no || shape.sequence == 0) return shape.scores();
  // Causal::from_first: the queries after a key see it, so keys and queries change places.
  const std::int64_t pairs = causal == Causal::from_first ? causal_pairs(shape.keys, shape.sequence)
                                                          : causal_pairs(shape.sequence, shape.keys);
  return product({shape.heads, product({pairs, shape.queries}) / shape.sequence});
}

Causal is_causal(const OpCall& call) { return call.boolean("is_causal", false) ? Causal::from_first : Causal::no; }

bool has_mask(const OpCall& call) {
  return call.find_tensor("attn_mask") != nullptr || call.find_tensor("attn_bias") != nullptr ||
         call.find_tensor("bias") != nullptr;
}

// Every score costs `depth` MACs over all the products it takes part in, and `others` operations besides.
void add_scores(const Shape& shape, std::int64_t depth, std::int64_t others, Causal causal, const TensorDesc& query,
                Work& work) {
  add_causal_macs(work, product({shape.scores(), depth}), product({seen_scores(shape, causal), depth}), query);
  add_operations(work, product({shape.scores(), others}), query.dtype);
}

// Q K^T and P V.
void add_forward(const OpCall& call, const Shape& shape, Causal causal, Work& work) {
  const std::int64_t dropout = call.number("dropout_p", 0) > 0 ? kDropout : 0;
  const std::int64_t others = kForwardScore + dropout + (has_mask(call) ? 1 : 0);
  add_scores(shape, shape.depth + shape.value_depth, others, causal, call.tensor("query"), work);
}

// Q K^T again, dV = P^T dO, dP = dO V^T, dQ = dS K, dK = dS^T Q; delta = sum(dO * O) for each query.
void add_backward(const OpCall& call, const Shape& shape, Causal causal, Work& work) {
  const TensorDesc& query = call.tensor("query");
  const std::int64_t dropout = call.number("dropout_p", 0) > 0 ? kDropoutBackward : 0;
  const std::int64_t others = kBackwardScore + dropout + (has_mask(call) ? 1 : 0);
  add_scores(shape, 3 * shape.depth + 2 * shape.value_depth, others, causal, query, work);
  add_operations(work, product({2, shape.heads, shape.queries, shape.value_depth}), query.dtype);
}

// ---- CountOperations

void attention(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  add_forward(call, heads_first(call), is_causal(call), work);
}

void attention_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  add_backward(call, heads_first(call), is_causal(call), work);
}

// The flash kernels' own entry points align the mask at the last query and key.
Causal flash_mask(const OpCall& call) { return call.boolean("is_causal", false) ? Causal::from_last : Causal::no; }

void flash(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  add_forward(call, tokens_first(call, "max_q", "max_k"), flash_mask(call), work);
}

void flash_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  add_backward(call, tokens_first(call, "max_q", "max_k"), flash_mask(call), work);
}

Causal efficient_mask(const OpCall& call) { return static_cast<Causal>(call.integer("custom_mask_type", 0)); }

void efficient(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  add_forward(call, tokens_first(call, "max_seqlen_q", "max_seqlen_k"), efficient_mask(call), work);
}

void efficient_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  add_backward(call, tokens_first(call, "max_seqlen_q", "max_seqlen_k"), efficient_mask(call), work);
}

// Four projections with bias around the attention of `heads` heads; the query is scaled, so that scores have a softmax
// only.
void add_multi_head(const OpCall& call, const TensorDesc& query, const TensorDesc& key, std::int64_t heads,
                    std::int64_t averaging, Work& work) {
  const std::int64_t width = query.size(-1);
  const std::int64_t query_tokens = product({query.size(0), query.size(1)});
  const std::int64_t key_tokens = product({key.size(0), key.size(1)});
  const std::int64_t projected = saturating_add(product({2, query_tokens}), product({2, key_tokens}));
  const std::int64_t pairs = product({query_tokens, key.size(1)});
  const std::int64_t mask = call.find_tensor("mask") != nullptr ? 1 : 0;
  add_macs(work, product({projected, width, width}), query);
  add_macs(work, product({2, pairs, width}), query);
  add_operations(work, product({saturating_add(projected, query_tokens), width}), query.dtype);
  add_operations(work, product({heads, pairs, kSoftmaxOps + mask + averaging}), query.dtype);
}

void multi_head(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const bool averages = call.boolean("need_weights", true) && call.boolean("average_attn_weights", true);
  add_multi_head(call, call.tensor("query"), call.tensor("key"), call.integer("num_head", 1), averages ? 1 : 0, work);
}

void encoder_layer(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& source = call.tensor("src");
  const std::int64_t width = source.size(-1);
  const std::int64_t tokens = saturating_multiply(source.size(0), source.size(1));
  const std::int64_t hidden = call.tensor("ffn_weight_1").size(0);
  const std::int64_t activation = call.boolean("use_gelu", false) ? kGelu : 1;
  add_multi_head(call, source, source, call.integer("num_heads", 1), 0, work);
  add_macs(work, product({2, tokens, width, hidden}), source);
  // Bias and activation; bias, two residuals, two norms.
  add_operations(work, product({tokens, hidden, 1 + activation}), source.dtype);
  add_operations(work, product({tokens, width, 1 + 2 + 2 * kLayerNormOps}), source.dtype);
}

// Bias for query, key and value, and the scale for the query alone.
void bias_and_scale(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& qkv = call.tensor("qkv");
  add_operations(work, saturating_add(qkv.numel(), qkv.numel() / 3), qkv.dtype);
}

// ---- CountBytes

// The reference path also hands back its scores: an intermediate that no use of attention has to write.
void output_only_bytes(const OpCall& call, Work& work) {
  for (const auto& argument : call.arguments) read(work, argument.tensors);
  work.write_bytes = call.result().held_bytes();
}

constexpr const char* kForward =
    "MACs = scores x (depth of query + depth of value); per score 6 (scale, softmax 5), mask 1, dropout 3";
constexpr const char* kAttentionBackward =
    "MACs = 5 products, scores recomputed: scores x (3 x depth + 2 x value depth); per score 6, mask 1, dropout 2; "
    "2 per output element";

constexpr OpCost kAttentionCosts[] = {
    {"aten::scaled_dot_product_attention aten::_scaled_dot_product_flash_attention "
     "aten::_scaled_dot_product_flash_attention_for_cpu aten::_scaled_dot_product_efficient_attention "
     "aten::_scaled_dot_product_cudnn_attention aten::_scaled_dot_product_fused_attention_overrideable "
     "aten::_cudnn_attention_forward",
     attention, 0, nullptr, "is_causal,dropout_p", kForward},
    {"aten::_scaled_dot_product_attention_math aten::_scaled_dot_product_attention_math_for_mps", attention, 0,
     output_only_bytes, "is_causal,dropout_p", kForward},
    {"aten::_flash_attention_forward torch_attn::_varlen_attn torch_attn::_varlen_attn_out", flash, 0, nullptr,
     "is_causal,dropout_p,max_q,max_k", kForward},
    {"aten::_efficient_attention_forward", efficient, 0, nullptr,
     "custom_mask_type,dropout_p,max_seqlen_q,max_seqlen_k", kForward},

    {"aten::_scaled_dot_product_flash_attention_backward aten::_scaled_dot_product_flash_attention_for_cpu_backward "
     "aten::_scaled_dot_product_efficient_attention_backward aten::_scaled_dot_product_cudnn_attention_backward "
     "aten::_scaled_dot_product_fused_attention_overrideable_backward aten::_cudnn_attention_backward",
     attention_backward, 0, nullptr, "is_causal,dropout_p", kAttentionBackward},
    {"aten::_flash_attention_backward torch_attn::_varlen_attn_backward", flash_backward, 0, nullptr,
     "is_causal,dropout_p,max_q,max_k", kAttentionBackward},
    {"aten::_efficient_attention_backward", efficient_backward, 0, nullptr,
     "custom_mask_type,dropout_p,max_seqlen_q,max_seqlen_k", kAttentionBackward},

    {"aten::_native_multi_head_attention", multi_head, 0, nullptr, "num_head,need_weights,average_attn_weights",
     "four projections with bias, scale 1 per query element; per score 2 x depth MACs, softmax 5, mask 1, average 1"},
    {"aten::_transformer_encoder_layer_fwd", encoder_layer, 0, nullptr, "num_heads,use_gelu",
     "multi-head attention, two linears with bias, relu 1 or gelu 5, two residuals, two layer norms"},
    {"aten::_transform_bias_rescale_qkv", bias_and_scale, 0, nullptr, "", "bias 1 each, scale 1 per query element"},
};

}  // namespace

std::span<const OpCost> attention_costs() { return kAttentionCosts; }

}  // namespace roofprof::ops
