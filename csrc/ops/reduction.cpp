// Sums, statistics, searches, sorting and losses: many elements in, few out.

#include <algorithm>
#include <cmath>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- sums and statistics

// The call's work per input element; then `per_result` operations on every result.
void reduce(const OpCall& call, std::int64_t per_element, std::int64_t per_result, Work& work) {
  per_input(call, per_element, work);
  per_output(call, per_result, work);
}

// The sum, then one division (mean) or root (norm) per result.
void sum_and_one(const OpCall& call, std::int64_t weight, Work& work) { reduce(call, weight, 1, work); }

// The sum for the mean, then subtract, square, sum; per result two divisions, and for std a root (weight).
void variance(const OpCall& call, std::int64_t weight, Work& work) { reduce(call, 4, 2 + weight, work); }

// Compare for the maximum, subtract it, exp, sum; per result a log and an addition.
void log_sum_exp(const OpCall& call, std::int64_t weight, Work& work) { reduce(call, weight, 2, work); }

// The diagonal of a matrix.
void trace(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  const std::int64_t diagonal = std::min(matrix.size(0), matrix.size(1));
  add_operations(work, saturating_multiply(weight, diagonal), call.compute_dtype());
}

void trace_bytes(const OpCall& call, Work& work) {
  const TensorDesc& matrix = call.tensor(0);
  work.read_bytes = std::min(matrix.size(0), matrix.size(1)) * matrix.item_bytes;
  write_results(call, work);
}

// ---- searches and sorting: comparisons of the textbook algorithm, n log2 n and the like

std::int64_t length_along(const TensorDesc& tensor, std::int64_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.size(static_cast<int>(dim));
}

void sort(const OpCall& call, std::int64_t weight, Work& work) {
  per_input(call, weight * ceil_log2(length_along(call.tensor("self"), call.integer("dim", -1))), work);
}

// All elements of the tensor as one list.
void sort_flat(const OpCall& call, std::int64_t weight, Work& work) {
  per_input(call, weight * ceil_log2(call.tensor(0).numel()), work);
}

// median() sorts the whole tensor, median(dim) each line.
void sort_flat_or_lines(const OpCall& call, std::int64_t weight, Work& work) {
  if (call.overload.starts_with("dim")) return sort(call, weight, work);
  sort_flat(call, weight, work);
}

// Sorted along dim, or as a whole. The weight is for NaN: to find them 1, to leave them out 1 more. Per quantile: its
// rank, that rounded up, the distance from it, and a line between the two values there.
void quantile(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc& self = call.tensor("self");
  const std::int64_t length = gives_number(call, "dim") ? length_along(self, call.integer("dim", 0)) : self.numel();
  reduce(call, weight + ceil_log2(length), 6, work);
}

// Few test elements are compared with every element, more are sorted along with them: torch's own bound. Both sets are
// first sorted for themselves, to leave out what occurs twice, unless that is not so.
void is_in(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const auto count = [&](const char* name) { return call.find_tensor(name) ? call.tensor(name).numel() : 1; };
  const std::int64_t elements = count("elements");
  const std::int64_t tests = count("test_elements");
  const bool sorts = static_cast<double>(tests) >= 10 * std::pow(static_cast<double>(elements), 0.145);
  const auto sorted = [](std::int64_t n) { return saturating_multiply(n, ceil_log2(n)); };
  std::int64_t operations = saturating_multiply(elements, tests);
  if (sorts) {
    const std::int64_t both = elements + tests;
    operations = saturating_add(sorted(both), both);
    if (!call.boolean("assume_unique", false)) {
      operations = saturating_add(operations, saturating_add(sorted(elements), sorted(tests)));
    }
  }
  add_operations(work, operations, call.compute_dtype());
}

// A heap of k: every element is compared with its root, and at most log2 k levels down.
void top_k(const OpCall& call, std::int64_t weight, Work& work) {
  per_input(call, weight + ceil_log2(call.integer("k", 1)), work);
}

// A binary search in the boundaries for every value.
void binary_search(const OpCall& call, std::int64_t weight, Work& work) {
  const TensorDesc* boundaries = call.find_tensor("boundaries");
  if (boundaries == nullptr) boundaries = &call.tensor("sorted_sequence");
  per_output(call, weight * ceil_log2(length_along(*boundaries, -1) + 1), work);
}

// ---- losses

// `weight` per element, and 1 more where the losses are summed up; mean (reduction 1) divides once.
void loss(const OpCall& call, std::int64_t weight, Work& work) {
  const std::int64_t reduction = call.integer("reduction", 1);
  const std::int64_t weighted = call.find_tensor("weight") != nullptr ? 1 : 0;
  per_input(call, weight + weighted + (reduction == 0 ? 0 : 1), work);
  if (reduction == 1) add_operations(work, 1, call.compute_dtype());
}

void loss_backward(const OpCall& call, std::int64_t weight, Work& work) {
  per_output(call, weight + (call.find_tensor("weight") != nullptr ? 1 : 0), work);
}

// The loss reads only the target's score in each row of scores.
void nll(const OpCall& call, std::int64_t weight, Work& work) {
  const std::int64_t each = weight + (call.find_tensor("weight") != nullptr ? 1 : 0);
  add_operations(work, saturating_multiply(each, call.tensor("target").numel()), call.tensor("self").dtype);
}

void nll_bytes(const OpCall& call, Work& work) {
  const TensorDesc& target = call.tensor("target");
  work.read_bytes = saturating_multiply(target.numel(), call.tensor("self").item_bytes);
  read(work, &target);
  read(work, call.find_tensor("weight"));
  write_results(call, work);
}

// The gradient is written whole, from the targets alone: scores are not read.
void nll_backward_bytes(const OpCall& call, Work& work) {
  for (const char* name : {"grad_output", "target", "weight", "total_weight"}) read(work, call.find_tensor(name));
  write_results(call, work);
}

// The forward variables (batch, time, 2 x labels + 1) are what is computed: log-sum-exp of three, plus the score.
void ctc(const OpCall& call, std::int64_t weight, Work& work) {
  add_operations(work, saturating_multiply(weight, call.result(1).numel()), call.compute_dtype());
}

// Counts the backward variables in the same way; each is joined with its forward one (add, log-sum-exp of two). Then
// each score takes two exp and four operations around them.
void ctc_backward(const OpCall& call, std::int64_t weight, Work& work) {
  add_operations(work, saturating_multiply(weight, call.tensor("log_alpha").numel()), call.compute_dtype());
  per_output(call, 6, work);
}

constexpr OpCost kReductionCosts[] = {
    // Sums and statistics, per input element.
    {"aten::sum aten::cumsum", per_input, 1, nullptr, "", "n additions"},
    {"aten::nansum aten::count_nonzero", per_input, 2, nullptr, "", "n comparisons and additions"},
    {"aten::mean", sum_and_one, 1, nullptr, "", "n additions, a division per result"},
    {"aten::prod aten::cumprod", per_input, 1, nullptr, "", "n multiplications"},
    {"aten::var", variance, 0, nullptr, "", "4 n: mean, then squares of differences; 2 per result"},
    {"aten::var_mean", variance, 0, nullptr, "", "as var"},
    {"aten::std", variance, 1, nullptr, "", "4 n: mean, then squares of differences; 3 per result"},
    {"aten::std_mean", variance, 1, nullptr, "", "as std"},
    {"aten::norm aten::linalg_vector_norm", sum_and_one, 2, nullptr, "", "n powers and additions, a root per result"},
    {"aten::logsumexp", log_sum_exp, 4, nullptr, "", "4 n: max, subtract, exp, add; 2 per result"},
    {"aten::amax aten::amin aten::argmax aten::argmin aten::cummax aten::cummin", per_input, 1, nullptr, "",
     "n comparisons"},
    {"aten::aminmax aten::_aminmax", per_input, 2, nullptr, "", "2 n comparisons"},
    {"aten::all", per_input, 1, nullptr, "", "n ands"},
    {"aten::any", per_input, 1, nullptr, "", "n ors"},
    {"aten::logcumsumexp", per_input, 6, nullptr, "", "n times max + log1p(exp(min - max)): 2 compares, 4 others"},
    {"aten::renorm", per_input, 3, nullptr, "", "n powers and additions, n scaled"},
    {"aten::segment_reduce", per_input, 1, nullptr, "", "n operations"},
    {"aten::_segment_reduce_backward", per_output, 1, nullptr, "", "n operations"},
    {"aten::hash_tensor", per_input, 1, nullptr, "", "n exclusive ors"},
    {"aten::trace", trace, 1, trace_bytes, "", "one addition per diagonal element"},

    // Searches and sorting, in comparisons.
    {"aten::sort aten::kthvalue aten::mode", sort, 1, nullptr, "dim", "n log2 n comparisons, n along dim"},
    {"aten::median aten::nanmedian", sort_flat_or_lines, 1, nullptr, "dim", "n log2 n comparisons, n along dim or all"},
    {"aten::quantile", quantile, 1, nullptr, "dim", "n log2 n comparisons, 1 more for nan; 6 per quantile"},
    {"aten::nanquantile", quantile, 2, nullptr, "dim", "n log2 n comparisons, 2 more for nan; 6 per quantile"},
    {"aten::isin", is_in, 0, nullptr, "assume_unique", "n m comparisons; from m >= 10 n^0.145 on by sorting both"},
    {"aten::topk", top_k, 1, nullptr, "k", "n (1 + log2 k) comparisons: a heap of k"},
    {"aten::_unique aten::_unique2", sort_flat, 1, nullptr, "", "n log2 n comparisons"},
    {"aten::unique_dim", sort, 1, nullptr, "dim", "n log2 n comparisons of slices along dim"},
    {"aten::unique_consecutive aten::unique_dim_consecutive aten::nonzero aten::nonzero_static", per_input, 1, nullptr,
     "", "n comparisons"},
    {"aten::searchsorted aten::bucketize", binary_search, 1, nullptr, "",
     "log2(m + 1) comparisons per value, m boundaries"},
    {"aten::histc aten::histogram aten::_histogramdd_from_bin_cts aten::_histogramdd_from_bin_tensors", per_input, 4,
     nullptr, "", "per element: subtract, multiply, floor, count"},
    {"aten::bincount", per_input, 1, nullptr, "", "n additions"},

    // Losses, per element of the prediction; 1 more where they are summed up, 1 division for a mean.
    {"aten::mse_loss", loss, 2, nullptr, "reduction", "(x - t) ^ 2"},
    {"aten::mse_loss_backward", loss_backward, 3, nullptr, "", "scale * (x - t) * grad"},
    {"aten::smooth_l1_loss", loss, 6, nullptr, "reduction", "d = |x - t|; d * d / 2 / beta or d - beta / 2"},
    {"aten::smooth_l1_loss_backward", loss_backward, 6, nullptr, "", "x - t, 2 comparisons, scale * d / beta * grad"},
    {"aten::huber_loss", loss, 5, nullptr, "reduction", "d = |x - t|; d * d / 2 or delta * (d - delta / 2)"},
    {"aten::huber_loss_backward", loss_backward, 5, nullptr, "", "x - t, 2 comparisons, scale * d * grad"},
    {"aten::soft_margin_loss", loss, 4, nullptr, "reduction", "log1p(exp(-t * x))"},
    {"aten::soft_margin_loss_backward", loss_backward, 7, nullptr, "", "-t * grad * z / (1 + z), z = exp(-t * x)"},
    {"aten::multi_margin_loss", loss, 4, nullptr, "reduction", "max(0, margin - x[t] + x)"},
    {"aten::multi_margin_loss_backward aten::multilabel_margin_loss_backward", loss_backward, 4, nullptr, "",
     "the same comparison, grad added"},
    {"aten::multilabel_margin_loss_forward", loss, 4, nullptr, "reduction", "as multi_margin_loss, at least"},
    {"aten::binary_cross_entropy", loss, 8, nullptr, "reduction", "-(t * log(x) + (1 - t) * log(1 - x))"},
    {"aten::binary_cross_entropy_backward", loss_backward, 5, nullptr, "", "grad * (x - t) / (x * (1 - x))"},
    {"aten::nll_loss_forward aten::nll_loss2d_forward", nll, 2, nll_bytes, "",
     "per target: negate, add; 1 more with class weights"},
    {"aten::nll_loss_backward aten::nll_loss2d_backward", nll, 2, nll_backward_bytes, "",
     "per target: negate, divide; class weights 1"},
    {"aten::_ctc_loss", ctc, 13, nullptr, "", "per label and step: log-sum-exp of three (12), add the score"},
    {"aten::_ctc_loss_backward", ctc_backward, 22, nullptr, "", "per label and step 13, with alpha 9; per score 6"},
};

}  // namespace

std::span<const OpCost> reduction_costs() { return kReductionCosts; }

}  // namespace roofprof::ops
