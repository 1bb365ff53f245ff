#include "analysis/advice/advice_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "analysis/advice/advice_case.h"
#include "analysis/advice/code_rules.h"
#include "analysis/advice/op_sizes.h"
#include "analysis/advice/program_rules.h"
#include "analysis/advice/sentence_figures.h"
#include "analysis/kernel_arch.h"
#include "analysis/roofline.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

using cases::convolution;
using cases::is_bound;
using cases::kFarFromRoof;
using cases::may_compile;
using cases::of_roof;
using cases::part_of;
using cases::ran_on_cpu;
using cases::ridge_of;
using cases::time_of;
using cases::under_the_ridge;
using cases::under_the_ridge_text;
using cases::wasted_in;
using sentences::number;
using sentences::percent_of_roof;
using sentences::text_of;
using sentences::value_of;

// ---- shapes that cost bytes

// Half of the roof: better is good for any convolution.
constexpr double kGoodForConvolution = 50;

std::optional<AdviceReason> split_convolution(const AdviceCase& where, bool depthwise) {
  const auto sizes = convolution(where);
  if (!sizes || sizes->groups == 1 || sizes->depthwise() != depthwise || !where.ops->intensity) return std::nullopt;
  const auto ridge = ridge_of(where);
  if (!ridge || *where.ops->intensity >= *ridge) return std::nullopt;
  return AdviceReason{time_of(where),
                      {{"groups", static_cast<double>(sizes->groups)},
                       {"intensity", *where.ops->intensity},
                       {"ridge", *ridge},
                       {"percent_of_roof", of_roof(where)}}};
}

std::optional<AdviceReason> depthwise_convolution(const AdviceCase& where) { return split_convolution(where, true); }

std::string say_depthwise_convolution(const AdviceCase& where, const NamedFigures& figures) {
  const bool slow = value_of(figures, "percent_of_roof") < kGoodForConvolution;
  const std::string layout = where.bucket->channels_first ? "try channels_last, or " : "try ";
  return "depthwise, so few FLOPs for the bytes, " + under_the_ridge_text(figures) + ", at " +
         percent_of_roof(figures) +
         (slow ? ": " + layout + "full convolutions where time counts, as Fused-MBConv has them"
               : ": full convolutions may take less time with more FLOPs, as in Fused-MBConv");
}

std::optional<AdviceReason> grouped_convolution(const AdviceCase& where) { return split_convolution(where, false); }

std::string say_grouped_convolution(const AdviceCase&, const NamedFigures& figures) {
  return text_of(figures, "groups") + " groups raise the bytes for the FLOPs, " + under_the_ridge_text(figures) +
         ", at " + percent_of_roof(figures) + ": fewer groups may be quicker with more FLOPs";
}

// Of a 1x1 convolution of c1 to c2 channels, activations are (c1 + c2) per pixel, least at equal channels with the same
// product. From a ratio of 4 on that is a quarter more.
std::optional<AdviceReason> unequal_channels(const AdviceCase& where) {
  constexpr double kMuchMore = 1.25;
  const auto sizes = convolution(where);
  if (!sizes || !sizes->pointwise || sizes->groups != 1 || !under_the_ridge(where)) return std::nullopt;
  const auto in = static_cast<double>(sizes->in_channels);
  const auto out = static_cast<double>(sizes->out_channels);
  const double ratio = (in + out) / (2 * std::sqrt(in * out));
  if (ratio < kMuchMore) return std::nullopt;
  const std::int64_t bound_ns = where.ops->lower_bound_time_ns.value_or(0);
  return AdviceReason{part_of(bound_ns, 1 - 1 / ratio), {{"in_channels", in}, {"out_channels", out}, {"ratio", ratio}}};
}

std::string say_unequal_channels(const AdviceCase&, const NamedFigures& figures) {
  return "memory-bound, with " + text_of(figures, "in_channels") + " channels in and " +
         text_of(figures, "out_channels") + " out it moves " + text_of(figures, "ratio") +
         " times the activations that equal channels would for the same FLOPs";
}

// ---- tensor cores

// Tensor cores work on pieces of 16 bytes along a dimension.
std::optional<std::int64_t> multiple_for(DType dtype) {
  switch (dtype) {
    case DType::tf32:
      return 4;
    case DType::fp16:
    case DType::bf16:
      return 8;
    case DType::fp8:
    case DType::int8:
    case DType::uint8:
      return 16;
    default:
      return std::nullopt;
  }
}

std::optional<AdviceReason> off_multiples(const AdviceCase& where) {
  constexpr int kFirstTensorCores = 70;
  constexpr std::int64_t kFewChannels = 4;  // of an image, for which libraries have kernels of their own
  const auto device = architecture_of_device(where.data->compute_capability);
  if (!where.data->device_timed || !device || *device < kFirstTensorCores || where.bucket == nullptr)
    return std::nullopt;
  const auto multiple = multiple_for(where.bucket->dtype);
  if (!multiple) return std::nullopt;
  std::array<std::int64_t, 2> sizes{};
  if (const auto linear = linear_sizes(*where.bucket)) {
    sizes = {linear->inner, linear->columns};
  } else if (const auto conv = convolution_sizes(*where.bucket); conv && conv->groups == 1) {
    sizes = {conv->in_channels <= kFewChannels ? 0 : conv->in_channels, conv->out_channels};
  }
  for (const std::int64_t size : sizes) {
    if (size % *multiple == 0) continue;
    return AdviceReason{wasted_in(where),
                        {{"size", static_cast<double>(size)}, {"multiple", static_cast<double>(*multiple)}}};
  }
  return std::nullopt;
}

std::string say_off_multiples(const AdviceCase& where, const NamedFigures& figures) {
  const auto size = static_cast<std::int64_t>(value_of(figures, "size"));
  const auto multiple = static_cast<std::int64_t>(value_of(figures, "multiple"));
  return "a size of " + std::to_string(size) + " is no multiple of " + std::to_string(multiple) + ", which " +
         std::string(name_of(where.bucket->dtype)) + " needs to fill the tensor cores: pad it to " +
         std::to_string((size + multiple - 1) / multiple * multiple);
}

// ---- what bounds

std::optional<AdviceReason> weights_again(const AdviceCase& where) {
  constexpr double kMostOfIt = 0.8;
  const auto under = under_the_ridge(where);
  const auto sizes = under ? linear_sizes(*where.bucket) : std::nullopt;
  if (!sizes || !is_floating(where.bucket->dtype)) return std::nullopt;
  const double weights = static_cast<double>(sizes->inner) * static_cast<double>(sizes->columns);
  const double others = static_cast<double>(sizes->rows) * static_cast<double>(sizes->inner + sizes->columns);
  const double share = weights / (weights + others);
  if (share < kMostOfIt) return std::nullopt;
  // Half as many bytes for each row take half of the bound.
  return AdviceReason{part_of(where.ops->lower_bound_time_ns.value_or(0), share / 2),
                      {{"rows", static_cast<double>(sizes->rows)},
                       {"weights", weights},
                       {"percent_of_bytes", 100 * share},
                       under->at(0),
                       under->at(1)}};
}

std::string say_weights_again(const AdviceCase&, const NamedFigures& figures) {
  return "each call reads " + text_of(figures, "weights") + " weights for " + text_of(figures, "rows") +
         (value_of(figures, "rows") == 1 ? " row" : " rows") + ", " +
         percent(value_of(figures, "percent_of_bytes") / 100) + " of its bytes, " + under_the_ridge_text(figures) +
         ": quantise them, or read them once for more rows by a larger batch";
}

// One result for each element, without products: activations, additions, normalisations.
std::optional<AdviceReason> elementwise(const AdviceCase& where) {
  const auto under = under_the_ridge(where);
  if (!under) return std::nullopt;
  const Work& work = where.bucket->work;
  const bool each = work.macs == 0 && work.output_elements > 0 && work.input_elements == work.output_elements;
  if (!each || where.ops->flops == 0 || of_roof(where) < kFarFromRoof) return std::nullopt;  // else not memory's time
  return AdviceReason{time_of(where), *under};
}

std::string say_elementwise(const AdviceCase& where, const NamedFigures& figures) {
  return under_the_ridge_text(figures) +
         ", so the time is that of passes over memory: fuse them with the ops beside them" +
         (may_compile(*where.data) ? " (torch.compile)" : "") + ", or work in place";
}

// The highest roof of a type that is narrower than this one; null where none is higher.
const ComputeCeiling* higher_roof(const AdviceCase& where) {
  const DType dtype = where.bucket->dtype;
  const Ceilings& ceilings = where.data->ceilings;
  const ComputeCeiling* best = ceilings.compute_for(dtype);
  for (const DType narrower : {DType::fp32, DType::tf32, DType::bf16, DType::fp16}) {
    const auto* roof = narrower > dtype ? ceilings.compute_for(narrower) : nullptr;
    if (roof != nullptr && best != nullptr && roof->operations_per_second > best->operations_per_second) best = roof;
  }
  return best == nullptr || best->dtype == dtype ? nullptr : best;
}

// Autocast casts weights in each call. Of the models that were tried (docs/advice.md) vgg11, with 57 MACs for each
// weight, took longer, and those with 128 and more, at like distances from the roof, did not.
bool are_weights_worth_a_cast(const ProfileData& data) {
  constexpr std::int64_t kMacsForEach = 100;
  std::int64_t macs = 0;
  std::int64_t weights = 0;
  for (const auto& bucket : data.ops) {
    if (bucket.owner.phase != Phase::forward) continue;
    const auto linear = linear_sizes(bucket);
    const auto convolution = convolution_sizes(bucket);
    if (!linear && !convolution) continue;
    macs = saturating_add(macs, bucket.work.macs);
    weights =
        saturating_add(weights, saturating_multiply(linear ? linear->weights() : convolution->weights, bucket.calls));
  }
  return macs / kMacsForEach >= weights;
}

// Where the arithmetic takes half of the op's time at the least, and a third of all: far from its roof something else
// does, and types are changed for a whole model, whose other ops get casts between them.
std::optional<AdviceReason> lower_precision(const AdviceCase& where) {
  constexpr double kClearlyHigher = 1.5;
  constexpr double kMostOfOp = 0.5;
  constexpr double kMuchOfAll = 0.33;
  if (where.bucket == nullptr || !is_bound(where, BoundKind::compute) || where.bucket->work.macs == 0)
    return std::nullopt;
  const DType dtype = where.bucket->dtype;
  const bool wide = dtype == DType::fp64 || dtype == DType::fp32 || dtype == DType::tf32;
  const auto* best = wide && where.ops->bound.resource == name_of(dtype) ? higher_roof(where) : nullptr;
  const auto takes = [](const Figures& figures, double part) {
    return figures.compute_time_ns.value_or(0) >= part_of(figures.time_ns.value_or(0), part);
  };
  if (best == nullptr || !takes(*where.ops, kMostOfOp) || !takes(*where.total, kMuchOfAll)) return std::nullopt;
  if (!are_weights_worth_a_cast(*where.data)) return std::nullopt;
  const double ratio = best->operations_per_second / where.data->ceilings.compute_for(dtype)->operations_per_second;
  if (ratio < kClearlyHigher) return std::nullopt;
  return AdviceReason{part_of(where.ops->lower_bound_time_ns.value_or(0), 1 - 1 / ratio),
                      {{"percent_of_roof", of_roof(where)}, {"ratio_of_roofs", ratio}}};
}

// On a CPU, with one thread (docs/advice.md).
constexpr std::string_view kSeenOfAutocast = ", which made 13 models that ran as near to it 1.1 to 1.8 times as fast";

std::string say_lower_precision(const AdviceCase& where, const NamedFigures& figures) {
  const DType narrower = higher_roof(where)->dtype;
  const std::string name(name_of(narrower));
  const std::string how = narrower == DType::tf32   ? "torch.backends.cuda.matmul.fp32_precision = \"tf32\""
                          : narrower == DType::fp32 ? "fp32"
                                                    : "autocast to " + name;
  return "compute-bound in " + std::string(name_of(where.bucket->dtype)) + " at " + percent_of_roof(figures) +
         ", while the roof of " + name + " is " + text_of(figures, "ratio_of_roofs") + " times as high: try " + how +
         (ran_on_cpu(where) ? std::string(kSeenOfAutocast) : "");
}

std::optional<AdviceReason> at_the_compute_roof(const AdviceCase& where) {
  constexpr double kNearRoof = 75;
  if (!is_bound(where, BoundKind::compute) || of_roof(where) < kNearRoof) return std::nullopt;
  return AdviceReason{time_of(where), {{"percent_of_roof", of_roof(where)}}};
}

std::string say_at_the_compute_roof(const AdviceCase& where, const NamedFigures& figures) {
  return "at " + percent_of_roof(figures) + " of " + where.ops->bound.resource +
         " little is left to gain from its code: fewer operations (smaller inputs or layers) or a faster unit are what "
         "helps";
}

constexpr std::string_view kShuffleNet1 = "ShuffleNet V2 G1, arXiv:1807.11164";
constexpr std::string_view kShuffleNet2 = "ShuffleNet V2 G2, arXiv:1807.11164";
constexpr std::string_view kShuffleNet4 = "ShuffleNet V2 G4, arXiv:1807.11164";
constexpr std::string_view kMeasured = "this report's %roof; docs/advice.md";
constexpr std::string_view kRoofline = "Williams et al. 2009, doi:10.1145/1498765.1498785";

// From the most special to the most general: the first that holds speaks.
constexpr std::array<AdviceRule, 19> kRules = {{
    {"older-kernel", rules::built_for_older, rules::say_built_for_older, "this report's kernels (built for)"},
    {"idle-device", rules::device_waits, rules::say_device_waits, "this report's utilization", 0.05, false,
     "the device", false},
    {"exposed-communication", rules::exposed_communication, rules::say_exposed_communication,
     "this report's exposed communication; PyTorch DDP, arXiv:2006.15704; PyTorch FSDP, arXiv:2304.11277", 0.05, true,
     "exposed communication"},
    {"data-loading", rules::data_loading, rules::say_data_loading, "this report's time in (data loading)", 0.05, true,
     "data loading", false},
    {"optimizer-op-by-op", rules::optimizer_op_by_op, rules::say_optimizer_op_by_op, "this report's ops of (optimizer)",
     0.05, true, "the optimizer", false},
    // Of calls on a host a tenth between ops is usual.
    {"outside-ops", rules::outside_ops, rules::say_outside_ops, "this report's time outside ops", 0.2, false,
     "code outside ops"},
    {"casts", rules::casts, rules::say_casts, "this report's casts"},
    {"attention-op-by-op", rules::attention_op_by_op, rules::say_attention_op_by_op,
     "FlashAttention, arXiv:2205.14135"},
    {"max-pooling", rules::slow_max_pooling, rules::say_slow_max_pooling,
     "ATen/native/cpu/MaxPoolKernel.cpp; this report's %roof"},
    {"channels-last", rules::channels_first, rules::say_channels_first, kMeasured},
    {"depthwise-convolution", depthwise_convolution, say_depthwise_convolution,
     "ShuffleNet V2 G2, arXiv:1807.11164; EfficientNetV2, arXiv:2104.00298"},
    {"grouped-convolution", grouped_convolution, say_grouped_convolution, kShuffleNet2},
    {"tensor-core-multiples", off_multiples, say_off_multiples,
     "NVIDIA, Matrix Multiplication Background User's Guide, 'Requirements to use Tensor Cores'"},
    {"far-from-roof", rules::far_from_roof, rules::say_far_from_roof, "this report's %roof"},
    {"weights-read-again", weights_again, say_weights_again, "LLM Inference Unveiled, arXiv:2402.16363"},
    {"unequal-channels", unequal_channels, say_unequal_channels, kShuffleNet1},
    {"element-wise", elementwise, say_elementwise, kShuffleNet4},
    {"lower-precision", lower_precision, say_lower_precision, kMeasured},
    // What cannot be helped by a change of code is said where it is most of the time.
    {"compute-bound", at_the_compute_roof, say_at_the_compute_roof, kRoofline, 0.25},
}};

}  // namespace

std::span<const AdviceRule> advice_rules() { return kRules; }

}  // namespace roofprof
