#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// 4 x 8 floats, 128 bytes, reduced along the last dimension to 4, 16 bytes.
CostCase by_row(const char* op, std::int64_t flops) {
  return {Call(op, "(self fp32 4x8, dim=-1) -> fp32 4"), {.flops = flops, .read = 128, .write = 16}};
}

CostCase by_row_pair(const char* op, std::int64_t flops) {
  return {Call(op, "(self fp32 4x8, dim=-1) -> fp32 4, fp32 4"), {.flops = flops, .read = 128, .write = 32}};
}

// Values and their positions.
CostCase with_indices(const char* op, Sizes result, std::int64_t flops, std::int64_t results) {
  return {Call(op).overload("dim").with("(self fp32 4x8, dim=-1)").out(fp32, result).out(int64, result),
          {.flops = flops, .read = 128, .write = results * (4 + 8)}};
}

CostCase scan(const char* op, std::int64_t flops) {
  return {Call(op, "(self fp32 4x8, dim=1) -> fp32 4x8"), {.flops = flops, .read = 128, .write = 128}};
}

// 4 x 8 scores against 4 x 8 targets; reduction 0 none, 1 mean, 2 sum.
CostCase loss(const char* op, int reduction, std::int64_t flops) {
  const bool none = reduction == 0;
  return {Call(op, "(self fp32 4x8, target fp32 4x8, weight none)")
              .scalar("reduction", reduction)
              .out(fp32, none ? Sizes{4, 8} : Sizes{}),
          {.flops = flops, .read = 256, .write = none ? 128 : 4}};
}

CostCase loss_gradient(const char* op, std::int64_t flops) {
  return {Call(op, "(grad_output fp32, self fp32 4x8, target fp32 4x8) -> fp32 4x8"),
          {.flops = flops, .read = 4 + 256, .write = 128}};
}

const std::vector<CostCase> kSums = {
    by_row("aten::sum", 32),
    // An expanded gradient: what is held is one number, what is added are all.
    {Call("aten::sum(self fp32 4x8 expanded 11) -> fp32"), {.flops = 32}},
    {Call("aten::sum(self int64 4x8) -> int64"), {.int_ops = 32}},
    by_row("aten::nansum", 64),
    by_row("aten::mean", 32 + 4),
    by_row("aten::prod", 32),
    by_row("aten::var", 4 * 32 + 2 * 4),
    by_row_pair("aten::var_mean", 4 * 32 + 2 * 4),
    by_row("aten::std", 4 * 32 + 3 * 4),
    by_row_pair("aten::std_mean", 4 * 32 + 3 * 4),
    by_row("aten::norm", 2 * 32 + 4),
    by_row("aten::logsumexp", 4 * 32 + 2 * 4),
    by_row("aten::amax", 32),
    by_row_pair("aten::aminmax", 64),
    {Call("aten::all(self boolean 4x8) -> boolean"), {.int_ops = 32}},
    {Call("aten::any(self boolean 4x8) -> boolean"), {.int_ops = 32}},
    scan("aten::logcumsumexp", 6 * 32),
    scan("aten::renorm", 3 * 32),
    {Call("aten::segment_reduce(data fp32 32, lengths int64 4) -> fp32 4"), {.flops = 32}},
    {Call("aten::_segment_reduce_backward(grad fp32 4, output fp32 4, data fp32 32, lengths int64 4) -> fp32 32"),
     {.flops = 32}},
    {Call("aten::hash_tensor(self fp32 4x8) -> int64"), {.flops = 32}},
    {Call("aten::trace(self fp32 4x8) -> fp32"), {.flops = 4, .read = 16, .write = 4}},
};

const std::vector<CostCase> kSearches = {
    // Lines of 8: 3 comparisons an element; 4 columns of 5 (rounded up to 8) along the first dimension.
    with_indices("aten::sort", {4, 8}, 32 * 3, 32),
    {Call("aten::sort(self int64 5x4, dim=0) -> int64 5x4, int64 5x4"), {.int_ops = 20 * 3}},
    {Call("aten::sort(self fp32, dim=-1) -> fp32, int64"), {.flops = 0}},
    with_indices("aten::median", {4}, 32 * 3, 4),
    // Without a dimension all 32 elements are one line.
    {Call("aten::median(self fp32 4x8) -> fp32"), {.flops = 32 * 5}},
    // All 32 elements as one line, or lines of 8; NaN looked for; 6 for each quantile.
    {Call("aten::quantile(self fp32 4x8, q fp32 3) -> fp32 3"), {.flops = 32 * (5 + 1) + 3 * 6}},
    {Call("aten::quantile(self fp32 4x8, q=0.5, dim=-1) -> fp32 4"), {.flops = 32 * (3 + 1) + 4 * 6}},
    {Call("aten::nanquantile(self fp32 4x8, q=0.5, dim=1) -> fp32 4"), {.flops = 32 * (3 + 2) + 4 * 6}},
    // 5 < 10 * 6 ^ 0.145: each with each. 100 of them: 6 and 100 sorted (3 and 7 comparisons an element), then all 106
    // (7), and neighbours compared.
    {Call("aten::isin(elements int64 2x3, test_elements int64 5) -> boolean 2x3"), {.int_ops = 6 * 5}},
    {Call("aten::isin(elements int64 2x3, test_elements int64 100) -> boolean 2x3"),
     {.int_ops = 6 * 3 + 100 * 7 + 106 * 7 + 106}},
    {Call("aten::isin(elements int64 2x3, test_elements int64 100, assume_unique=true) -> boolean 2x3"),
     {.int_ops = 106 * 7 + 106}},
    {Call("aten::isin(elements int64 2x3, test_element=7) -> boolean 2x3"), {.int_ops = 6}},
    {Call("aten::topk(self fp32 4x8, k=2, dim=-1) -> fp32 4x2, int64 4x2"), {.flops = 32 * (1 + 1)}},
    {Call("aten::topk(self fp32 1000, k=50) -> fp32 50, int64 50"), {.flops = 1000 * (1 + 6)}},
    {Call("aten::_unique(self int64 4x8) -> int64 5, int64 0"), {.int_ops = 32 * 5}},
    {Call("aten::unique_dim(self int64 4x8, dim=0) -> int64 3x8, int64 0, int64 0"), {.int_ops = 32 * 2}},
    // 7 boundaries make 8 bins: 3 comparisons a value.
    {Call("aten::searchsorted(sorted_sequence fp32 7, self fp32 4x8) -> int64 4x8"), {.flops = 32 * 3}},
    {Call("aten::histc(self fp32 4x8) -> fp32 10"), {.flops = 4 * 32}},
};

const std::vector<CostCase> kLosses = {
    loss("aten::mse_loss", 0, 2 * 32),
    loss("aten::mse_loss", 1, 3 * 32 + 1),
    loss("aten::mse_loss", 2, 3 * 32),
    loss_gradient("aten::mse_loss_backward", 3 * 32),
    loss("aten::smooth_l1_loss", 1, 7 * 32 + 1),
    loss_gradient("aten::smooth_l1_loss_backward", 6 * 32),
    loss("aten::huber_loss", 1, 6 * 32 + 1),
    loss_gradient("aten::huber_loss_backward", 5 * 32),
    loss("aten::soft_margin_loss", 1, 5 * 32 + 1),
    loss_gradient("aten::soft_margin_loss_backward", 7 * 32),
    loss("aten::multi_margin_loss", 1, 5 * 32 + 1),
    loss_gradient("aten::multi_margin_loss_backward", 4 * 32),
    loss("aten::multilabel_margin_loss_forward", 1, 5 * 32 + 1),
    loss("aten::binary_cross_entropy", 0, 8 * 32),
    // Weights multiply every element.
    {Call("aten::binary_cross_entropy(self fp32 4x8, target fp32 4x8, weight fp32 8, reduction=2) -> fp32"),
     {.flops = 10 * 32}},
    loss_gradient("aten::binary_cross_entropy_backward", 5 * 32),
    // 4 rows of 10 classes: 4 scores are looked at, not 40.
    {Call("aten::nll_loss_forward(self fp32 4x10, target int64 4, weight none) -> fp32, fp32"),
     {.flops = 2 * 4, .read = 16 + 32, .write = 8}},
    {Call("aten::nll_loss_backward(grad_output fp32, self fp32 4x10, target int64 4, weight none, total_weight fp32) "
          "-> fp32 4x10"),
     {.flops = 2 * 4, .read = 4 + 32 + 4, .write = 160}},
    // 8 steps, 2 sequences, 3 labels each: 2 x 8 x (2 * 3 + 1) forward variables.
    {Call("aten::_ctc_loss(log_probs fp32 8x2x6, targets int64 2x3) -> fp32 2, fp32 2x8x7"), {.flops = 13 * 112}},
    {Call("aten::_ctc_loss_backward(grad fp32 2, log_probs fp32 8x2x6, targets int64 2x3, neg_log_likelihood fp32 2, "
          "log_alpha fp32 2x8x7) -> fp32 8x2x6"),
     {.flops = 22 * 112 + 6 * 96}},
};

TEST(Reduction, CostsAreAsWrittenOut) { check_family(reduction_costs(), together({kSums, kSearches, kLosses})); }

}  // namespace
}  // namespace roofprof::ops
