// Operators of serving engines and their kernels: vLLM, SGLang, AITER, flash-attn. A trace has their arguments without
// names and without results, so each line names its arguments, and formulas read nothing but arguments: a call costs
// the same in a trace and live.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- parts of the formulas

constexpr std::int64_t kRmsNormOps = 4;  // as aten::rms_norm with a weight
constexpr std::int64_t kSiluOps = 5;     // as aten::silu
constexpr std::int64_t kScoreOps = 6;    // of attention: scale, softmax 5

// Calls `visit` with each name of a line's arguments and its mark: '!' is written, '&' read and written, '-' not
// counted, ' ' read.
template <class Visit>
void for_each_name(std::string_view arguments, Visit&& visit) {
  while (!arguments.empty()) {
    const auto comma = std::min(arguments.find(','), arguments.size());
    auto name = arguments.substr(0, comma);
    arguments.remove_prefix(std::min(comma + 1, arguments.size()));
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    const char last = name.empty() ? ' ' : name.back();
    const bool marked = last == '!' || last == '&' || last == '-';
    if (marked) name.remove_suffix(1);
    visit(name, marked ? last : ' ');
  }
}

void add_write(Work& work, std::int64_t bytes) { work.write_bytes = saturating_add(work.write_bytes, bytes); }
void add_read(Work& work, std::int64_t bytes) { work.read_bytes = saturating_add(work.read_bytes, bytes); }

// Counts each argument once, as the line marks it.
void marked_bytes(const OpCall& call, Work& work) {
  const auto* line = find_cost(call.name, call.overload);
  if (line == nullptr) return;
  for_each_name(line->arguments, [&](std::string_view name, char mark) {
    const auto* tensor = call.find_tensor(name);
    if (tensor == nullptr || mark == '-') return;
    const auto bytes = tensor->held_bytes();
    if (mark != '!') read(work, tensor);
    if (mark != ' ') add_write(work, bytes);
    if (mark == '&') work.updated_bytes = saturating_add(work.updated_bytes, bytes);
  });
}

const TensorDesc& main_input(const OpCall& call) {
  const auto* input = call.find_tensor("input");
  return input != nullptr ? *input : call.tensor(std::size_t{0});
}

// The new tensor that is returned has the size of the input.
void and_result_like_input(const OpCall& call, Work& work) {
  marked_bytes(call, work);
  add_write(work, main_input(call).held_bytes());
}

// The operator returns the sum and its norm.
void and_two_results_like_input(const OpCall& call, Work& work) {
  marked_bytes(call, work);
  add_write(work, product({2, main_input(call).held_bytes()}));
}

void per_input_element(const OpCall& call, std::int64_t weight, Work& work) {
  const auto& input = main_input(call);
  add_operations(work, saturating_multiply(weight, input.numel()), input.dtype);
}

// The residual may be left out.
void norm_with_optional_residual(const OpCall& call, std::int64_t weight, Work& work) {
  per_input_element(call, weight + (call.find_tensor("residual") != nullptr ? 1 : 0), work);
}

// The input holds both halves, the result has one.
void per_pair(const OpCall& call, std::int64_t weight, Work& work) {
  const auto& input = main_input(call);
  add_operations(work, saturating_multiply(weight, input.numel() / 2), input.dtype);
}

// Numbers of c10::ScalarType, as far as results have them.
std::int64_t bytes_of_element_type(std::int64_t number, std::int64_t otherwise) {
  switch (number) {
    case 5:   // Half
    case 15:  // BFloat16
      return 2;
    case 6:  // Float
      return 4;
    case 7:  // Double
      return 8;
    default:
      return otherwise;
  }
}

// ---- products

// x (..., K) and weight (N, K) make (..., N). The line's weight is what is done for each result besides.
void linear_of_rows(const OpCall& call, std::int64_t extra, Work& work) {
  const auto& x = call.tensor(std::size_t{0});
  const auto rows = call.tensor(std::size_t{1}).size(0);
  const auto results = x.size(-1) == 0 ? 0 : product({x.numel() / x.size(-1), rows});
  add_macs(work, product({x.numel(), rows}), x);
  const bool bias = call.find_tensor("bias") != nullptr;
  add_operations(work, product({results, extra + (bias ? 1 : 0)}), x.dtype);
}

// The result has the type that is asked for, else that of x; of 8-bit operands 16 bits.
void linear_of_rows_bytes(const OpCall& call, Work& work) {
  marked_bytes(call, work);
  const auto& x = call.tensor(std::size_t{0});
  if (x.size(-1) == 0) return;
  const auto results = product({x.numel() / x.size(-1), call.tensor(std::size_t{1}).size(0)});
  const auto usual = std::max<std::int64_t>(x.item_bytes, 2);
  add_write(work, product({results, bytes_of_element_type(call.integer("out_dtype", -1), usual)}));
}

// out (M, N) of a (M, K) and b; the line's weight is how many elements of K are held in an item.
void product_into(const OpCall& call, std::int64_t packed, Work& work) {
  const auto& a = call.tensor("a");
  const auto results = call.tensor("out").numel();
  add_macs(work, product({results, a.size(-1), packed}), a);
  const bool bias = call.find_tensor("bias") != nullptr;
  add_operations(work, product({results, bias ? 2 : 1}), a.dtype);
}

// a (M, K) and b (K, N).
void scaled_product(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const auto& a = call.tensor("a");
  const auto results = product({a.size(0), call.tensor("b").size(-1)});
  add_macs(work, product({results, a.size(-1)}), a);
  const bool bias = call.find_tensor("bias") != nullptr;
  add_operations(work, product({results, bias ? 2 : 1}), a.dtype);
}

void scaled_product_bytes(const OpCall& call, Work& work) {
  marked_bytes(call, work);
  const auto results = product({call.tensor("a").size(0), call.tensor("b").size(-1)});
  add_write(work, product({results, bytes_of_element_type(call.integer("out_dtype", -1), 2)}));
}

// ---- rotary embeddings: in place, of the first dimensions of each head, by one row of the cache for each token

std::int64_t rotated(const OpCall& call, const TensorDesc* tensor) {
  if (tensor == nullptr) return 0;
  const auto depth = call.integer("head_size", 0);
  const auto turned = call.tensor("cos_sin_cache").size(-1);
  return depth <= 0 ? tensor->numel() : product({tensor->numel() / depth, std::min(turned, depth)});
}

void rotary(const OpCall& call, std::int64_t weight, Work& work) {
  const auto* query = call.find_tensor("query");
  const auto elements = saturating_add(rotated(call, query), rotated(call, call.find_tensor("key")));
  add_operations(work, saturating_multiply(weight, elements), call.tensor("query").dtype);
}

void rotary_bytes(const OpCall& call, Work& work) {
  for (const auto* tensor : {call.find_tensor("query"), call.find_tensor("key")}) {
    if (tensor == nullptr) continue;
    const auto bytes = product({rotated(call, tensor), tensor->item_bytes});
    add_read(work, bytes);
    add_write(work, bytes);
    work.updated_bytes = saturating_add(work.updated_bytes, bytes);
  }
  const auto& positions = call.tensor("positions");
  const auto& cache = call.tensor("cos_sin_cache");
  add_read(work, positions.held_bytes());
  add_read(work, product({std::min(positions.numel(), cache.size(0)), cache.size(-1), cache.item_bytes}));
}

// ---- the cache of keys and values

// Converted where the cache is quantised: one scale for each element.
void cache_write(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const auto& key = call.tensor("key");
  if (key.item_bytes == call.tensor("key_cache").item_bytes) return;
  add_operations(work, saturating_add(key.numel(), call.tensor("value").numel()), key.dtype);
}

// The operator touches the new tokens' places in the caches, and no others.
void cache_write_bytes(const OpCall& call, Work& work) {
  for (const auto& [from, to] : {std::pair("key", "key_cache"), std::pair("value", "value_cache")}) {
    const auto& tensor = call.tensor(std::string_view(from));
    add_read(work, tensor.held_bytes());
    add_write(work, product({tensor.numel(), call.tensor(std::string_view(to)).item_bytes}));
  }
  read(work, call.find_tensor("slot_mapping"));
}

void latent_cache_write_bytes(const OpCall& call, Work& work) {
  const auto& cache = call.tensor("kv_cache");
  for (const std::string_view from : {"kv_c", "k_pe"}) {
    const auto& tensor = call.tensor(from);
    add_read(work, tensor.held_bytes());
    add_write(work, product({tensor.numel(), cache.item_bytes}));
  }
  read(work, call.find_tensor("slot_mapping"));
}

// ---- attention over the cache of keys and values

constexpr const char* kStep = "step_pairs,step_causal_pairs,step_keys,step_exact,cache_item_bytes,cache_written";

// The pairs of a query and a key, and the keys, of all requests of the step together.
struct Step {
  std::int64_t pairs = 0;
  std::int64_t causal_pairs = 0;
  std::int64_t keys = 0;
  bool exact = false;
};

// Returns the step's sums. Where they are not known, each query attends to itself at the least.
Step step_of(const OpCall& call, std::int64_t queries) {
  const auto pairs = call.integer("step_pairs", -1);
  if (pairs < 0) return {queries, queries, queries, false};
  return {pairs, call.integer("step_causal_pairs", pairs), call.integer("step_keys", queries),
          call.integer("step_exact", 0) != 0};
}

void add_attention(const Step& step, std::int64_t heads, std::int64_t depths, const TensorDesc& query, Work& work) {
  add_causal_macs(work, product({step.pairs, heads, depths}), product({step.causal_pairs, heads, depths}), query);
  add_operations(work, product({step.pairs, heads, kScoreOps}), query.dtype);
  work.lower_limit = work.lower_limit || !step.exact;
}

// query (tokens, heads, depth), new keys and values (tokens, heads of keys, depth).
void cached_attention(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const auto& query = call.tensor("query");
  const auto depths = saturating_add(query.size(-1), call.tensor("value").size(-1));
  add_attention(step_of(call, query.size(0)), query.size(-2), depths, query, work);
}

// Reads what the cache holds besides the new tokens, and the new ones from where they are: in the cache, or in `key`
// and `value` if the operator writes the cache itself.
void cached_attention_bytes(const OpCall& call, Work& work) {
  const auto& query = call.tensor("query");
  const auto& key = call.tensor("key");
  const auto& value = call.tensor("value");
  const auto step = step_of(call, query.size(0));
  const auto known = call.integer("cache_item_bytes", 0);
  const auto item = known > 0 ? known : 1;
  work.lower_limit = work.lower_limit || known <= 0;
  const auto element_of_token =
      saturating_add(product({key.size(-2), key.size(-1)}), product({value.size(-2), value.size(-1)}));
  add_read(work, query.held_bytes());
  const auto* output = call.find_tensor("output");
  add_write(work, output != nullptr ? output->held_bytes() : query.held_bytes());
  auto cached = step.keys;
  if (call.integer("cache_written", 0) != 0) {
    cached = std::max<std::int64_t>(cached - key.size(0), 0);
    add_read(work, saturating_add(key.held_bytes(), value.held_bytes()));
    add_write(work, product({saturating_add(key.numel(), value.numel()), item}));
  }
  add_read(work, product({cached, element_of_token, item}));
}

// The cache itself is an argument: (pages, tokens of a page, heads, depth).
void paged_attention(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const auto& query = call.tensor("query");
  const auto depths = saturating_add(query.size(-1), call.tensor("value_cache").size(-1));
  add_attention(step_of(call, query.size(0)), query.size(-2), depths, query, work);
}

void paged_attention_bytes(const OpCall& call, Work& work) {
  const auto& query = call.tensor("query");
  const auto step = step_of(call, query.size(0));
  add_read(work, query.held_bytes());
  read(work, call.find_tensor("kv_indptr"));
  add_write(work, call.tensor("out").held_bytes());
  for (const std::string_view name : {"key_cache", "value_cache"}) {
    const auto& cache = call.tensor(name);
    add_read(work, product({step.keys, cache.size(-2), cache.size(-1), cache.item_bytes}));
  }
}

// ---- flash-attn's own entry points

bool masks_future(const OpCall& call) { return call.boolean("causal", false) || call.boolean("is_causal", false); }

bool has_window(const OpCall& call) {
  return call.integer("window_size_left", -1) >= 0 ||
         (!masks_future(call) && call.integer("window_size_right", -1) >= 0);
}

// Ragged sequences: lengths are values of a tensor. Where all are as long as the longest, their sizes say so; else
// equal lengths are the least work.
Step ragged_step(const OpCall& call) {
  const auto& query = call.tensor("q");
  const auto& key = call.tensor("k");
  const auto tokens = query.size(0);
  const bool paged = call.find_tensor("block_table") != nullptr;
  if (call.integer("step_pairs", -1) >= 0) return step_of(call, tokens);
  const auto* starts = call.find_tensor("cu_seqlens_q");
  if (has_window(call) || paged || starts == nullptr || starts->size(0) < 2) return {tokens, tokens, tokens, false};
  const auto sequences = starts->size(0) - 1;
  const auto keys = key.size(0);
  const auto queries_each = tokens / sequences;
  const auto keys_each = keys / sequences;
  const bool exact = product({sequences, call.integer("max_seqlen_q", 0)}) == tokens &&
                     product({sequences, call.integer("max_seqlen_k", 0)}) == keys;
  const auto pairs = product({sequences, queries_each, keys_each});
  const auto causal = masks_future(call) ? product({sequences, causal_pairs(queries_each, keys_each)}) : pairs;
  return {pairs, causal, keys, exact};
}

void ragged_attention(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const auto& query = call.tensor("q");
  const auto depths = saturating_add(query.size(-1), call.tensor("v").size(-1));
  add_attention(ragged_step(call), query.size(-2), depths, query, work);
}

void ragged_attention_bytes(const OpCall& call, Work& work) {
  const auto& query = call.tensor("q");
  const auto& value = call.tensor("v");
  const auto step = ragged_step(call);
  add_read(work, query.held_bytes());
  add_write(work, product({query.size(0), query.size(-2), value.size(-1), query.item_bytes}));
  for (const std::string_view name : {"k", "v"}) {
    const auto& tensor = call.tensor(name);
    add_read(work, product({step.keys, tensor.size(-2), tensor.size(-1), tensor.item_bytes}));
  }
}

// q, k, v (batch, tokens, heads, depth).
void batched_attention(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const auto& query = call.tensor("q");
  const auto batch = query.size(0);
  const auto queries = query.size(1);
  const auto keys = call.tensor("k").size(1);
  Step step{product({batch, queries, keys}), 0, keys, true};
  step.causal_pairs = masks_future(call) ? product({batch, causal_pairs(queries, keys)}) : step.pairs;
  if (has_window(call)) step = {product({batch, queries}), product({batch, queries}), keys, false};
  add_attention(step, query.size(-2), saturating_add(query.size(-1), call.tensor("v").size(-1)), query, work);
}

void batched_attention_bytes(const OpCall& call, Work& work) {
  const auto& query = call.tensor("q");
  for (const std::string_view name : {"q", "k", "v"}) add_read(work, call.tensor(name).held_bytes());
  add_write(work, product({query.size(0), query.size(1), query.size(2), call.tensor("v").size(-1), query.item_bytes}));
}

// ---- mixtures of experts

// Neither how many experts a token takes nor their weights are arguments.
void hidden_experts_bytes(const OpCall& call, Work& work) {
  const auto& hidden = call.tensor("hidden_states");
  add_read(work, hidden.held_bytes());
  read(work, call.find_tensor("router_logits"));
  add_write(work, hidden.held_bytes());
  work.lower_limit = true;
}

// w1 (experts, 2 x inner, width), w2 (experts, width, inner); each token goes through the experts of topk_ids.
void fused_experts(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const auto& hidden = call.tensor("hidden_states");
  const auto& first = call.tensor("w1");
  const auto& second = call.tensor("w2");
  const auto visits = call.tensor("topk_ids").numel();
  const auto inner = second.size(2);
  add_macs(work,
           product({visits, saturating_add(product({first.size(1), first.size(2)}), product({second.size(1), inner}))}),
           hidden);
  // silu and mul; each expert's result is weighted and added.
  add_operations(work, product({visits, inner, kSiluOps + 1}), hidden.dtype);
  add_operations(work, product({visits, second.size(1), 2}), hidden.dtype);
}

// A call does not say how many different experts its tokens take. One token takes as many as its choices.
void fused_experts_bytes(const OpCall& call, Work& work) {
  const auto& hidden = call.tensor("hidden_states");
  const auto& chosen = call.tensor("topk_ids");
  const auto experts = std::min(chosen.size(-1), call.tensor("w1").size(0));
  for (const std::string_view name : {"w1", "w2"}) {
    const auto& weights = call.tensor(name);
    add_read(work, product({experts, weights.size(1), weights.size(2), weights.item_bytes}));
  }
  add_read(work, hidden.held_bytes());
  add_read(work, chosen.held_bytes());
  read(work, call.find_tensor("topk_weights"));
  add_write(work, hidden.held_bytes());
  work.lower_limit = chosen.numel() > chosen.size(-1);
}

void per_gate(const OpCall& call, std::int64_t weight, Work& work) {
  const auto& gates = call.tensor("gating_output");
  add_operations(work, saturating_multiply(weight, gates.numel()), gates.dtype);
}

// ---- the table

constexpr OpCost serving_line(std::string_view op, std::string_view arguments, CountOperations operations,
                              std::int64_t weight, std::string_view formula, CountBytes bytes = marked_bytes,
                              std::string_view scalars = "") {
  OpCost cost{op, operations, weight, bytes, scalars, formula};
  cost.arguments = arguments;
  return cost;
}

constexpr const char* kNorm = "square, add, multiply, weight: 4 per element";
constexpr const char* kAddNorm = "residual 1, norm 4 per element";
constexpr const char* kSiluMul = "silu 5, multiply 1 per result";
constexpr const char* kRotary = "two products and a sum: 3 per rotated element; one row of the cache per token";
constexpr const char* kRowsProduct = "MACs = rows of the input x elements of the weight; bias 1 per result";
constexpr const char* kScaledMm = "MACs = results x K; scale 1, bias 1 per result";
constexpr const char* kCacheWrite = "new tokens read and written; 1 per element if converted";
constexpr const char* kStepAttention =
    "MACs = pairs of the step x heads x (depth of key + of value), 6 per score; keys of the step read; without the "
    "step's sums >= each token with itself";
constexpr const char* kRaggedFormula =
    "as torch's flash attention; >= unless all sequences are equally long or the step's sums are known";
constexpr const char* kHiddenExperts = ">= tokens and router's logits read, result written; experts are not arguments";
constexpr const char* kExperts =
    "MACs = tokens x their experts x elements of an expert; silu and multiply 6, weighted sum 2; weights of >= the "
    "experts of one token";
constexpr const char* kStaticQuant = "scale 1 per element";
constexpr const char* kDynamicQuant = "absolute value, maximum, scale: 3 per element";

constexpr const char* kOfStep = kStep;
constexpr const char* kRaggedScalars =
    "step_pairs,step_causal_pairs,step_keys,step_exact,causal,is_causal,max_seqlen_q,max_seqlen_k,window_size_left,"
    "window_size_right";
constexpr std::string_view kVarlen =
    "q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, min_seqlen_q, dropout_p, softmax_scale, "
    "logits_soft_cap, zero_tensors, is_causal, window_size_left, window_size_right";
constexpr std::string_view kCacheArguments = "key, value, key_cache!, value_cache!, slot_mapping";
constexpr std::string_view kExpertArguments = "hidden_states, w1, w2, topk_weights, topk_ids";

constexpr OpCost kServingCosts[] = {
    // Norms.
    serving_line("_C::rms_norm", "result!, input, weight", per_input_element, kRmsNormOps, kNorm),
    serving_line("_C::fused_add_rms_norm sgl_kernel::fused_add_rmsnorm sgl_kernel::gemma_fused_add_rmsnorm",
                 "input&, residual&, weight", per_input_element, kRmsNormOps + 1, kAddNorm),
    serving_line("_C::rms_norm_static_fp8_quant", "result!, input, weight, scale", per_input_element, kRmsNormOps + 1,
                 "norm 4, scale 1 per element"),
    serving_line("_C::fused_add_rms_norm_static_fp8_quant", "result!, input, residual&, weight, scale",
                 per_input_element, kRmsNormOps + 2, "residual 1, norm 4, scale 1 per element"),
    serving_line("_C::rms_norm_dynamic_per_token_quant", "result!, input, weight, scale!, epsilon, scale_ub, residual&",
                 norm_with_optional_residual, kRmsNormOps + 3, "residual 1, norm 4, maximum and scale 3 per element"),
    serving_line("sgl_kernel::rmsnorm sgl_kernel::gemma_rmsnorm", "output!, input, weight", per_input_element,
                 kRmsNormOps, kNorm),
    serving_line("aiter::rmsnorm", "out!, input, weight", per_input_element, kRmsNormOps, kNorm),
    serving_line("aiter::add_rmsnorm aiter::rmsnorm2d_fwd_with_add aiter::rmsnorm2d_fwd_with_add_ck",
                 "out!, input, residual_in, residual_out!, weight", per_input_element, kRmsNormOps + 1, kAddNorm),
    serving_line("aiter::rms_norm aiter::rmsnorm2d_fwd", "input, weight", per_input_element, kRmsNormOps, kNorm,
                 and_result_like_input),
    serving_line("vllm::rocm_aiter_rms_norm", "x, weight", per_input_element, kRmsNormOps, kNorm,
                 and_result_like_input),
    serving_line("vllm::rocm_aiter_rmsnorm2d_fwd_with_add", "x, residual, weight", per_input_element, kRmsNormOps + 1,
                 kAddNorm, and_two_results_like_input),

    // Activations of two halves.
    serving_line("_C::silu_and_mul _C::mul_and_silu", "result!, input", per_pair, kSiluOps + 1, kSiluMul),
    serving_line("_C::gelu_and_mul", "result!, input", per_pair, 6, "gelu 5, multiply 1 per result"),
    serving_line("_C::gelu_tanh_and_mul", "result!, input", per_pair, 10,
                 "gelu in the tanh form 9, multiply 1 per result"),
    serving_line("_C::silu_and_mul_quant", "result!, input, scale", per_pair, kSiluOps + 2,
                 "silu 5, multiply 1, scale 1 per result"),
    serving_line("sgl_kernel::silu_and_mul aiter::silu_and_mul", "out!, input", per_pair, kSiluOps + 1, kSiluMul),
    serving_line("sgl_kernel::gelu_and_mul aiter::gelu_and_mul", "out!, input", per_pair, 6,
                 "gelu 5, multiply 1 per result"),
    serving_line("sgl_kernel::gelu_tanh_and_mul aiter::gelu_tanh_and_mul", "out!, input", per_pair, 10,
                 "gelu in the tanh form 9, multiply 1 per result"),

    // Rotary embeddings.
    serving_line("_C::rotary_embedding sgl_kernel::rotary_embedding",
                 "positions, query&, key&, head_size, cos_sin_cache, is_neox", rotary, 3, kRotary, rotary_bytes,
                 "head_size"),

    // Quantisation.
    serving_line("_C::static_scaled_fp8_quant", "result!, input, scale", per_input_element, 1, kStaticQuant),
    serving_line("_C::dynamic_scaled_fp8_quant", "result!, input, scale!", per_input_element, 3, kDynamicQuant),
    serving_line("_C::dynamic_per_token_scaled_fp8_quant", "result!, input, scale!, scale_ub", per_input_element, 3,
                 kDynamicQuant),
    serving_line("_C::static_scaled_int8_quant", "result!, input, scale, azp", per_input_element, 1, kStaticQuant),
    serving_line("_C::dynamic_scaled_int8_quant", "result!, input, scale!, azp!", per_input_element, 3, kDynamicQuant),
    serving_line("sgl_kernel::sgl_per_token_quant_fp8", "input, output_q!, output_s!", per_input_element, 3,
                 kDynamicQuant),

    // Products.
    serving_line("vllm::rocm_unquantized_gemm vllm::rocm_unquantized_gemm_impl", "x, weight, bias", linear_of_rows, 0,
                 kRowsProduct, linear_of_rows_bytes, "out_dtype"),
    serving_line("aiter::gemm_a16w16", "A, B, bias, out_dtype, scale_a, scale_b, scale_c", linear_of_rows, 0,
                 kRowsProduct, linear_of_rows_bytes, "out_dtype"),
    serving_line("aiter::gemm_a8w8_blockscale", "XQ, WQ, x_scale, w_scale", linear_of_rows, 1, kScaledMm,
                 linear_of_rows_bytes, "out_dtype"),
    serving_line("_rocm_C::LLMM1", "in_a, in_b, rows_per_block", linear_of_rows, 0, kRowsProduct, linear_of_rows_bytes,
                 "out_dtype"),
    serving_line("_C::cutlass_scaled_mm", "out!, a, b, a_scales, b_scales, bias", product_into, 1, kScaledMm),
    serving_line("_C::cutlass_scaled_mm_azp", "out!, a, b, a_scales, b_scales, azp_adj, azp, bias", product_into, 1,
                 kScaledMm),
    serving_line("_C::cutlass_scaled_fp4_mm", "out!, a, b, block_scale_a, block_scale_b, alpha", product_into, 2,
                 "MACs = results x 2 K, two elements in a byte; scale 1 per result"),
    serving_line("sgl_kernel::fp8_scaled_mm sgl_kernel::int8_scaled_mm", "a, b, scales_a, scales_b, out_dtype, bias",
                 scaled_product, 0, kScaledMm, scaled_product_bytes, "out_dtype"),

    // The cache of keys and values.
    serving_line("_C_cache_ops::reshape_and_cache _C_cache_ops::reshape_and_cache_flash sglang::store_cache "
                 "aiter::reshape_and_cache aiter::reshape_and_cache_flash",
                 kCacheArguments, cache_write, 0, kCacheWrite, cache_write_bytes),
    serving_line("_C_cache_ops::concat_and_cache_mla", "kv_c, k_pe, kv_cache!, slot_mapping", no_operations, 0,
                 "new tokens read and written", latent_cache_write_bytes),

    // Attention.
    serving_line("vllm::unified_attention_with_output", "query, key, value, output!", cached_attention, 0,
                 kStepAttention, cached_attention_bytes, kOfStep),
    serving_line("vllm::unified_attention", "query, key, value", cached_attention, 0, kStepAttention,
                 cached_attention_bytes, kOfStep),
    serving_line("sglang_profiler::attention_paged_attention_ragged",
                 "out!, workspace-, query, key_cache, value_cache, kv_indptr, kv_page_indices", paged_attention, 0,
                 kStepAttention, paged_attention_bytes, kOfStep),
    serving_line("flash_attn::_flash_attn_forward",
                 "q, k, v, dropout_p, softmax_scale, causal, window_size_left, window_size_right", batched_attention, 0,
                 "as torch's flash attention; >= with a window", batched_attention_bytes,
                 "causal,is_causal,window_size_left,window_size_right"),
    serving_line("flash_attn::_flash_attn_varlen_forward",
                 "q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p, softmax_scale, causal, "
                 "window_size_left, window_size_right, softcap, alibi_slopes, return_softmax, block_table",
                 ragged_attention, 0, kRaggedFormula, ragged_attention_bytes, kRaggedScalars),
    serving_line("aiter::fmha_v3_varlen_fwd", kVarlen, ragged_attention, 0, kRaggedFormula, ragged_attention_bytes,
                 kRaggedScalars),

    // Mixtures of experts.
    serving_line("vllm::moe_forward vllm::moe_forward_shared", "hidden_states, router_logits", no_operations, 0,
                 kHiddenExperts, hidden_experts_bytes),
    serving_line("vllm::inplace_fused_experts vllm::outplace_fused_experts sglang::inplace_fused_experts "
                 "sglang::outplace_fused_experts",
                 kExpertArguments, fused_experts, 0, kExperts, fused_experts_bytes),
    serving_line("_moe_C::topk_softmax", "topk_weights!, topk_indices!, token_expert_indices!, gating_output", per_gate,
                 6, "softmax 5, comparison 1 per logit"),
    serving_line("sgl_kernel::topk_softmax", "topk_weights!, topk_indices!, gating_output", per_gate, 6,
                 "softmax 5, comparison 1 per logit"),
    serving_line("_moe_C::moe_sum", "input, output!", per_input_element, 1, "1 per element"),
};

// ---- Triton's kernels

// A kernel reads and writes at least the elements of each pointer once. What it updates in place moves twice, and the
// trace does not say which pointers these are, so the bytes are a lower limit. Inductor's arguments are the pointers,
// of what is updated, read and written, in this order, then sizes, the last of them those of the loops. A pointer with
// more elements than the loops have is read in part (a table of embeddings): at most one element in each turn counts,
// and nothing where the loops' sizes are not there.
void triton_bytes(const OpCall& call, Work& work) {
  std::vector<const TensorDesc*> pointers;
  std::vector<std::int64_t> sizes;
  for (const auto& argument : call.arguments) {
    if (argument.tensors.size() == 1) pointers.push_back(&argument.tensors.front());
    if (const auto* number = std::get_if<std::int64_t>(&argument.scalar)) sizes.push_back(*number);
  }
  work.lower_limit = true;
  if (pointers.empty()) return;
  std::int64_t turns = 0;  // of the loops: the largest product of last sizes that equals a pointer's elements
  std::int64_t all = 1;
  constexpr std::size_t kMostLoops = 3;
  for (std::size_t i = 0; i < std::min(sizes.size(), kMostLoops); ++i) {
    all = saturating_multiply(all, std::max<std::int64_t>(sizes[sizes.size() - 1 - i], 0));
    const bool fits = std::ranges::any_of(pointers, [&](const auto* pointer) { return pointer->held_numel() == all; });
    if (fits) turns = std::max(turns, all);
  }
  const auto& first = *pointers.front();
  const auto& last = *pointers.back();
  const bool known = turns > 0;
  if (!known) turns = last.held_numel();
  const auto names = [&](std::string_view op) { return call.name.find(op) != std::string::npos; };
  const bool looks_up = names("index") || names("scatter") || names("gather") || names("embedding");
  const bool reads_all = known && names("pool") && !looks_up;
  const auto bytes_of = [&](const TensorDesc& pointer) {
    const auto elements = pointer.held_numel();
    if (elements > turns && !known) return std::int64_t{0};
    return product({reads_all ? elements : std::min(elements, turns), pointer.item_bytes});
  };
  // An element-wise kernel writes an element for each turn. If the last pointer has fewer, the kernel updates the first
  // one in place.
  const bool in_place = known && call.name.starts_with("triton_poi_") && !looks_up && last.held_numel() < turns &&
                        first.held_numel() == turns;
  for (const auto* pointer : pointers) {
    if (in_place || pointer != &last) add_read(work, bytes_of(*pointer));
  }
  add_write(work, bytes_of(in_place ? first : last));
  if (in_place) work.updated_bytes = saturating_add(work.updated_bytes, bytes_of(first));
}

}  // namespace

std::span<const OpCost> serving_costs() { return kServingCosts; }

const OpCost& triton_cost() {
  static constexpr OpCost kTriton{
      "triton", no_operations, 0, triton_bytes, "*", ">= each pointer's elements once; operations are not known"};
  return kTriton;
}

void name_arguments(OpCall& call, std::string_view names) {
  std::size_t position = 0;
  for_each_name(names, [&](std::string_view name, char mark) {
    if (position >= call.arguments.size()) return;
    auto& argument = call.arguments[position++];
    argument.name = name;
    argument.written = mark == '!' || mark == '&';
  });
}

}  // namespace roofprof::ops
