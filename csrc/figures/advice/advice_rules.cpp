#include "figures/advice/advice_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "figures/advice/advice_case.h"
#include "figures/advice/op_sizes.h"
#include "figures/advice/sentence_figures.h"
#include "figures/kernel_arch.h"
#include "figures/roofline.h"
#include "values/phrases.h"

namespace roofprof {

namespace {

using cases::convolution;
using cases::is_bound;
using cases::of_roof;
using cases::part_of;
using cases::ran_compiled;
using cases::ridge_of;
using cases::time_of;
using cases::under_the_ridge;
using cases::under_the_ridge_text;
using cases::wasted_in;
using sentences::number;
using sentences::percent_of_roof;
using sentences::text_of;
using sentences::text_of_microseconds;
using sentences::value_of;

// ---- kernels, and time between them

std::optional<AdviceReason> built_for_older(const AdviceCase& where) {
  if (where.older == nullptr) return std::nullopt;
  const auto built_for = architecture_in_name(where.older->name);
  const auto device = architecture_of_device(where.data->compute_capability);
  if (!built_for || !device) return std::nullopt;
  return AdviceReason{where.older->total_ns,
                      {{"built_for", static_cast<double>(*built_for)}, {"device", static_cast<double>(*device)}}};
}

std::string say_built_for_older(const AdviceCase& where, const NamedFigures& figures) {
  constexpr std::size_t kNameLength = 60;
  const std::string& name = where.older->name;
  return "the kernel " + (name.size() > kNameLength ? name.substr(0, kNameLength) + "..." : name) +
         " was built for sm_" + text_of(figures, "built_for") + ", this device is sm_" + text_of(figures, "device") +
         ": another shape, layout, type or library version may get a newer one";
}

// A device that is busy for most of the time has no gaps to fill.
std::optional<AdviceReason> device_waits(const AdviceCase& where) {
  constexpr double kBusy = 70;
  if (where.ops->op != kIdleDevice || !where.ops->utilization || *where.ops->utilization >= kBusy) return std::nullopt;
  return AdviceReason{time_of(where), {{"utilization", *where.ops->utilization}}};
}

std::string say_device_waits(const AdviceCase& where, const NamedFigures& figures) {
  const std::string how = ran_compiled(*where.data) ? "larger batches or CUDA graphs give"
                                                    : "larger batches, torch.compile or CUDA graphs give";
  return "busy for " + percent(value_of(figures, "utilization") / 100) +
         " of its time, it waited for launches in the rest: " + how + " it more at once";
}

std::optional<AdviceReason> outside_ops(const AdviceCase& where) {
  if (where.ops->op != "(outside ops)" || where.data->device_timed || ran_compiled(*where.data)) return std::nullopt;
  // Where most of it may be waiting for other ranks, the host's code is not what to look at.
  if (2 * where.data->collectives.exposed_ns.value_or(0) > where.ops->time_ns.value_or(0)) return std::nullopt;
  return AdviceReason{time_of(where), {}};
}

std::string say_outside_ops(const AdviceCase&, const NamedFigures&) {
  return "it is spent in the host's code between ops: larger batches give each op more to do, torch.compile takes that "
         "code out";
}

// ---- code that reaches no roof

// What is reached by ordinary code is a tenth at least, once a call is long against the start of an op or a kernel.
constexpr double kFarFromRoof = 10;
// Where all is far from the roofs, something else is slow: a machine that others use, or a model of short calls.
constexpr double kOthersReach = 20;
constexpr double kLongCall = 20e3;        // ns, on the host
constexpr double kLongDeviceCall = 10e3;  // ns

std::optional<AdviceReason> far_from_roof(const AdviceCase& where) {
  if (where.bucket == nullptr || !where.ops->percent_of_roof || of_roof(where) >= kFarFromRoof) return std::nullopt;
  if (where.ops->incomplete || where.ops->calls <= 0) return std::nullopt;
  if (where.total->percent_of_roof.value_or(0) < kOthersReach) return std::nullopt;
  const double call_ns = static_cast<double>(time_of(where)) / static_cast<double>(where.ops->calls);
  if (call_ns < (where.data->device_timed ? kLongDeviceCall : kLongCall)) return std::nullopt;
  return AdviceReason{wasted_in(where), {{"percent_of_roof", of_roof(where)}, {"time_per_call_us", call_ns / 1e3}}};
}

std::string say_far_from_roof(const AdviceCase&, const NamedFigures& figures) {
  return percent_of_roof(figures) + " in calls of " + text_of_microseconds(value_of(figures, "time_per_call_us")) +
         ", so its code bounds it, not the machine: try another memory format, type or implementation";
}

std::optional<AdviceReason> slow_max_pooling(const AdviceCase& where) {
  if (where.ops->op->find("max_pool") == std::string::npos || where.data->device_timed) return std::nullopt;
  return far_from_roof(where);
}

std::string say_slow_max_pooling(const AdviceCase&, const NamedFigures& figures) {
  return percent_of_roof(figures) +
         ", so its code bounds it, not the machine: on a CPU it is vectorised along the channels in "
         "memory_format=torch.channels_last alone";
}

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

std::string say_depthwise_convolution(const AdviceCase&, const NamedFigures& figures) {
  const bool slow = value_of(figures, "percent_of_roof") < kGoodForConvolution;
  return "depthwise, so few FLOPs for the bytes, " + under_the_ridge_text(figures) + ", at " +
         percent_of_roof(figures) +
         (slow ? ": try channels_last, or full convolutions where time counts, as Fused-MBConv has them"
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

std::string say_elementwise(const AdviceCase&, const NamedFigures& figures) {
  return under_the_ridge_text(figures) +
         ", so the time is that of passes over memory: fuse them with the ops beside them (torch.compile), or work in "
         "place";
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

std::optional<AdviceReason> lower_precision(const AdviceCase& where) {
  constexpr double kClearlyHigher = 1.5;
  if (where.bucket == nullptr || !is_bound(where, BoundKind::compute) || where.bucket->work.macs == 0)
    return std::nullopt;
  const DType dtype = where.bucket->dtype;
  const bool wide = dtype == DType::fp64 || dtype == DType::fp32 || dtype == DType::tf32;
  const auto* best = wide && where.ops->bound.resource == name_of(dtype) ? higher_roof(where) : nullptr;
  if (best == nullptr) return std::nullopt;
  const double ratio = best->operations_per_second / where.data->ceilings.compute_for(dtype)->operations_per_second;
  if (ratio < kClearlyHigher) return std::nullopt;
  return AdviceReason{part_of(where.ops->lower_bound_time_ns.value_or(0), 1 - 1 / ratio),
                      {{"percent_of_roof", of_roof(where)}, {"ratio_of_roofs", ratio}}};
}

std::string say_lower_precision(const AdviceCase& where, const NamedFigures& figures) {
  const DType narrower = higher_roof(where)->dtype;
  const std::string name(name_of(narrower));
  const std::string how = narrower == DType::tf32   ? "torch.backends.cuda.matmul.fp32_precision = \"tf32\""
                          : narrower == DType::fp32 ? "fp32"
                                                    : "autocast to " + name;
  return "compute-bound in " + std::string(name_of(where.bucket->dtype)) + " at " + percent_of_roof(figures) +
         ", while the roof of " + name + " is " + text_of(figures, "ratio_of_roofs") + " times as high: try " + how;
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
constexpr std::string_view kRoofline = "Williams et al. 2009, doi:10.1145/1498765.1498785";

// From the most special to the most general: the first that holds speaks.
constexpr std::array<AdviceRule, 13> kRules = {{
    {"older-kernel", built_for_older, say_built_for_older, "this report's kernels (built for)"},
    {"idle-device", device_waits, say_device_waits, "this report's utilization"},
    // Of calls on a host a tenth between ops is usual.
    {"outside-ops", outside_ops, say_outside_ops, "this report's time outside ops", 0.2},
    {"max-pooling", slow_max_pooling, say_slow_max_pooling, "ATen/native/cpu/MaxPoolKernel.cpp; this report's %roof"},
    {"depthwise-convolution", depthwise_convolution, say_depthwise_convolution,
     "ShuffleNet V2 G2, arXiv:1807.11164; EfficientNetV2, arXiv:2104.00298"},
    {"grouped-convolution", grouped_convolution, say_grouped_convolution, kShuffleNet2},
    {"tensor-core-multiples", off_multiples, say_off_multiples,
     "NVIDIA, Matrix Multiplication Background User's Guide, 'Requirements to use Tensor Cores'"},
    {"far-from-roof", far_from_roof, say_far_from_roof, "this report's %roof"},
    {"weights-read-again", weights_again, say_weights_again, "LLM Inference Unveiled, arXiv:2402.16363"},
    {"unequal-channels", unequal_channels, say_unequal_channels, kShuffleNet1},
    {"element-wise", elementwise, say_elementwise, kShuffleNet4},
    {"lower-precision", lower_precision, say_lower_precision, "this report's roofs"},
    // What cannot be helped by a change of code is said where it is most of the time.
    {"compute-bound", at_the_compute_roof, say_at_the_compute_roof, kRoofline, 0.25},
}};

}  // namespace

std::span<const AdviceRule> advice_rules() { return kRules; }

}  // namespace roofprof
