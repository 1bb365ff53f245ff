#include "analysis/advice/advice_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>

#include "analysis/advice/advice_case.h"
#include "analysis/hotspots.h"
#include "analysis/kernel_arch.h"
#include "analysis/roofline.h"
#include "core/collective_kinds.h"
#include "core/phrases.h"

namespace roofprof {
namespace {

using cases::convolution;
using cases::is_bound;
using cases::is_of_cpp;
using cases::kFarFromRoof;
using cases::may_compile;
using cases::of_roof;
using cases::part_of;
using cases::ran_compiled;
using cases::ran_on_cpu;
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

// ---- devices

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
  const std::string how = may_compile(*where.data) ? "larger batches, torch.compile or CUDA graphs give"
                                                   : "larger batches or CUDA graphs give";
  return "busy for " + percent(value_of(figures, "utilization") / 100) +
         " of its time, it waited for launches in the rest: " + how + " it more at once";
}

// ---- other ranks, data

std::optional<AdviceReason> exposed_communication(const AdviceCase& where) {
  if (where.ops->op != kExposedCommunication) return std::nullopt;
  // The collectives of all modules, since a wait may be for another module's.
  const CollectiveBucket* largest = nullptr;
  for (const auto& collective : where.data->collectives.collectives) {
    if (largest == nullptr || collective.exposed_ns > largest->exposed_ns) largest = &collective;
  }
  if (largest == nullptr || largest->calls <= 0) return std::nullopt;
  const auto& op = where.data->ops[static_cast<std::size_t>(largest->bucket)];
  const auto& group = where.data->collectives.groups[static_cast<std::size_t>(largest->group)];
  const auto kind = collective_of(op.op);
  if (!kind || op.calls <= 0) return std::nullopt;
  const std::int64_t bytes_per_call = message_bytes(*kind, op.work, group.ranks) / op.calls;
  return AdviceReason{
      wasted_in(where),
      {{"collective", static_cast<double>(*kind)}, {"bytes_per_call", static_cast<double>(bytes_per_call)}}};
}

std::string say_exposed_communication(const AdviceCase&, const NamedFigures& figures) {
  const auto kind = static_cast<CollectiveKind>(static_cast<int>(value_of(figures, "collective")));
  return "no op computed meanwhile, most of it in " + std::string(name_of(kind)) + " of " +
         text_of(figures, "bytes_per_call") +
         "B a call: larger buckets or larger sharded units send more at once, prefetching or reducing while the "
         "backward runs overlaps more, fewer shards or gradient accumulation send less";
}

std::optional<AdviceReason> data_loading(const AdviceCase& where) {
  const std::string& path = *where.ops->module;
  const bool named = path == kDataLoading || path.ends_with("." + std::string(kDataLoading));
  return named ? std::optional(AdviceReason{time_of(where), {}}) : std::nullopt;
}

std::string say_data_loading(const AdviceCase& where, const NamedFigures&) {
  return std::string("the program waits for its next batch: ") +
         (is_of_cpp(*where.data) ? "more workers of the data loader" : "more workers (DataLoader's num_workers)") +
         " or less work for each sample make it ready before";
}

// ---- the optimizer

std::optional<AdviceReason> optimizer_op_by_op(const AdviceCase& where) {
  constexpr std::size_t kManyPasses = 3;  // each op reads and writes all parameters or what is kept of them
  if (*where.ops->module != where.data->modules[kOptimizer].path) return std::nullopt;
  std::set<std::string_view> passes;
  std::int64_t calls = 0;
  for (const auto& bucket : where.data->ops) {
    if (bucket.owner.module != kOptimizer || bucket.work.bytes() == 0) continue;
    if (bucket.op.starts_with("aten::_fused_") || bucket.op == kCompiledRegion) return std::nullopt;
    passes.insert(bucket.op);
    calls = saturating_add(calls, bucket.calls);
  }
  if (passes.size() < kManyPasses) return std::nullopt;
  return AdviceReason{time_of(where),
                      {{"ops", static_cast<double>(passes.size())}, {"calls", static_cast<double>(calls)}}};
}

std::string say_optimizer_op_by_op(const AdviceCase& where, const NamedFigures& figures) {
  return "it updates the parameters by " + text_of(figures, "calls") + " calls of " + text_of(figures, "ops") +
         " ops, each of which reads and writes memory: " +
         (is_of_cpp(*where.data) ? "at::_fused_adamw_ and its like do it in one pass"
                                 : "fused=True (Adam, AdamW, SGD, Adagrad) does it in one pass");
}

// ---- code between ops

std::optional<AdviceReason> outside_ops(const AdviceCase& where) {
  if (where.ops->op != kOutsideOps || where.data->device_timed || ran_compiled(*where.data)) return std::nullopt;
  // If most of it may be waiting for other ranks, the host's code is not the cause.
  const auto& collectives = where.data->collectives;
  if (collectives.exposed_in.empty() && 2 * collectives.exposed_ns.value_or(0) > time_of(where)) return std::nullopt;
  return AdviceReason{time_of(where), {}};
}

std::string say_outside_ops(const AdviceCase& where, const NamedFigures&) {
  return std::string("it is spent in the host's code between ops: larger batches give each op more to do") +
         (may_compile(*where.data) ? ", torch.compile takes that code out" : "");
}

// ---- casts

// Reads elements of one size and writes as many of another one.
std::optional<AdviceReason> casts(const AdviceCase& where) {
  constexpr std::array<std::string_view, 3> kCopies = {"aten::_to_copy", "aten::to", "aten::copy_"};
  if (where.bucket == nullptr || std::ranges::find(kCopies, *where.ops->op) == kCopies.end()) return std::nullopt;
  const Work& work = where.bucket->work;
  if (where.bucket->link_bytes > 0 || work.input_elements <= 0 || work.input_elements != work.output_elements ||
      work.read_bytes == work.write_bytes) {
    return std::nullopt;
  }
  return AdviceReason{time_of(where), {{"calls", static_cast<double>(where.ops->calls)}}};
}

std::string say_casts(const AdviceCase& where, const NamedFigures&) {
  const bool cpp = is_of_cpp(*where.data);
  return std::string(
             "tensors are converted from one type to another in each call: hold weights and inputs in the type ") +
         "that computes (" + (cpp ? "model->to(torch::kBFloat16)" : "model.to(torch.bfloat16)") +
         ") where its precision will do" +
         (may_compile(*where.data) ? ", or fuse casts with neighbouring ops (torch.compile)" : "");
}

bool is_in_module(const AdviceCase& where, const OpBucket& bucket) {
  return where.data->modules[index_of(bucket.owner.module)].path == *where.ops->module;
}

bool is_product(std::string_view op) { return op == "aten::matmul" || op == "aten::bmm" || op == "aten::baddbmm"; }

double call_ns(const AdviceCase& where) {
  return static_cast<double>(time_of(where)) / static_cast<double>(where.ops->calls);
}

// ---- attention

constexpr std::string_view kAttention = "aten::scaled_dot_product_attention";

// Decides whether an attention ran unfused: the fused path has no separate op for softmax's backward. Without a
// backward it decides by how far the attention is behind the rest of the model.
std::optional<AdviceReason> unfused_attention(const AdviceCase& where) {
  constexpr double kSlow = 10;
  constexpr double kOthers = 4;  // times as near to their roofs
  if (!where.ops->percent_of_roof || where.ops->calls <= 0) return std::nullopt;
  const double reached = of_roof(where);
  const bool slow = reached < kSlow && kOthers * reached < where.total->percent_of_roof.value_or(0);
  const bool has_softmax = std::ranges::any_of(where.data->ops, [&](const OpBucket& bucket) {
    return bucket.op == "aten::_softmax_backward_data" && is_in_module(where, bucket);
  });
  if (!slow && !has_softmax) return std::nullopt;
  return AdviceReason{wasted_in(where),
                      {{"percent_of_roof", reached}, {"time_per_call_us", call_ns(where) / 1e3}, {"by_hand", 0}}};
}

// Scores that one product makes, softmax takes and another product reads.
std::optional<AdviceReason> attention_by_hand(const AdviceCase& where) {
  std::set<std::int64_t> softmaxes, made, read;  // elements in a call
  for (const auto& bucket : where.data->ops) {
    const Work& work = bucket.work;
    if (bucket.owner.phase != Phase::forward || bucket.calls <= 0 || !is_in_module(where, bucket)) continue;
    if (bucket.op == "aten::softmax" || bucket.op == "aten::_softmax") {
      softmaxes.insert(work.output_elements / bucket.calls);
    } else if (is_product(bucket.op)) {
      made.insert(work.output_elements / bucket.calls);
      read.insert(work.input_elements / bucket.calls);
    }
  }
  const auto are_scores = [&](std::int64_t elements) { return made.contains(elements) && read.contains(elements); };
  if (std::ranges::none_of(softmaxes, are_scores)) return std::nullopt;
  return AdviceReason{wasted_in(where), {{"percent_of_roof", of_roof(where)}, {"by_hand", 1}}};
}

std::optional<AdviceReason> attention_op_by_op(const AdviceCase& where) {
  const std::string& op = *where.ops->op;
  if (op == kAttention) return unfused_attention(where);
  if (is_product(op) || op.find("softmax") != std::string::npos) return attention_by_hand(where);
  return std::nullopt;
}

std::string say_attention_op_by_op(const AdviceCase& where, const NamedFigures& figures) {
  if (value_of(figures, "by_hand") > 0) {
    return std::string("attention op by op, whose scores go through memory each time: ") +
           (is_of_cpp(*where.data) ? "at::scaled_dot_product_attention"
                                   : "torch.nn.functional.scaled_dot_product_attention") +
           " computes it in one";
  }
  return percent_of_roof(figures) + " in calls of " + text_of_microseconds(value_of(figures, "time_per_call_us")) +
         ", as on the path that is not fused, whose scores go through memory: dropout " +
         (ran_on_cpu(where) ? "rules the fused one out on a CPU" : "or some kinds of mask rule the fused one out");
}

// ---- code that reaches no roof

// If everything is far from the roofs, something else is slow: a machine that others use, or a model of short calls.
constexpr double kOthersReach = 20;
constexpr double kLongCall = 20e3;        // ns, on the host
constexpr double kLongDeviceCall = 10e3;  // ns

std::optional<AdviceReason> far_from_roof(const AdviceCase& where) {
  if (where.bucket == nullptr || !where.ops->percent_of_roof || of_roof(where) >= kFarFromRoof) return std::nullopt;
  if (where.ops->incomplete || where.ops->calls <= 0) return std::nullopt;
  if (where.total->percent_of_roof.value_or(0) < kOthersReach) return std::nullopt;
  if (call_ns(where) < (where.data->device_timed ? kLongDeviceCall : kLongCall)) return std::nullopt;
  return AdviceReason{wasted_in(where),
                      {{"percent_of_roof", of_roof(where)}, {"time_per_call_us", call_ns(where) / 1e3}}};
}

std::string say_far_from_roof(const AdviceCase&, const NamedFigures& figures) {
  return percent_of_roof(figures) + " in calls of " + text_of_microseconds(value_of(figures, "time_per_call_us")) +
         ", so its code bounds it, not the machine: try another type or implementation";
}

std::optional<AdviceReason> slow_max_pooling(const AdviceCase& where) {
  if (where.ops->op->find("max_pool") == std::string::npos || !ran_on_cpu(where)) return std::nullopt;
  if (where.bucket == nullptr || !where.bucket->channels_first) return std::nullopt;
  return far_from_roof(where);
}

std::string say_slow_max_pooling(const AdviceCase&, const NamedFigures& figures) {
  return percent_of_roof(figures) +
         ", so its code bounds it, not the machine: on a CPU it is vectorised along the channels in "
         "channels_last alone";
}

// Convolutions in oneDNN compute with channels in blocks: other layouts are reordered before and after each call.
std::optional<AdviceReason> channels_first(const AdviceCase& where) {
  constexpr double kNearRoof = 75;
  if (where.bucket == nullptr || !where.bucket->channels_first || !ran_on_cpu(where)) return std::nullopt;
  if (where.ops->op->find("conv") == std::string::npos || !is_floating(where.bucket->dtype)) return std::nullopt;
  if (of_roof(where) >= kNearRoof) return std::nullopt;
  return AdviceReason{wasted_in(where), {{"percent_of_roof", of_roof(where)}}};
}

std::string say_channels_first(const AdviceCase& where, const NamedFigures& figures) {
  const std::string to = is_of_cpp(*where.data) ? "model->to and the input's in torch::MemoryFormat::ChannelsLast"
                                                : "model and input .to(memory_format=torch.channels_last)";
  // Measured with one thread (docs/advice.md).
  return "on images in channels first, at " + percent_of_roof(figures) + ": try " + to +
         ", which made 13 networks of convolutions 1.0 to 1.8 times as fast";
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
  return "a size of " + std::to_string(size) + " is not a multiple of " + std::to_string(multiple) + ", which " +
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
         ", so the time is that of passes over memory: fuse them with neighbouring ops" +
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

// Holds if the arithmetic takes at least half of the op's time and a third of all time. Far from its roof something
// else takes the time; and a model changes its type as a whole, which puts casts between its other ops.
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

// The rules, from the most special to the most general; the first that holds makes the sentence.
constexpr std::array<AdviceRule, 19> kRules = {{
    {"older-kernel", built_for_older, say_built_for_older, "this report's kernels (built for)"},
    {"idle-device", device_waits, say_device_waits, "this report's utilization", 0.05, false, "the device", false},
    {"exposed-communication", exposed_communication, say_exposed_communication,
     "this report's exposed communication; PyTorch DDP, arXiv:2006.15704; PyTorch FSDP, arXiv:2304.11277", 0.05, true,
     "exposed communication"},
    {"data-loading", data_loading, say_data_loading, "this report's time in (data loading)", 0.05, true, "data loading",
     false},
    {"optimizer-op-by-op", optimizer_op_by_op, say_optimizer_op_by_op, "this report's ops of (optimizer)", 0.05, true,
     "the optimizer", false},
    // A call on a host usually spends a tenth of its time between ops.
    {"outside-ops", outside_ops, say_outside_ops, "this report's time outside ops", 0.2, false, "code outside ops"},
    {"casts", casts, say_casts, "this report's casts"},
    {"attention-op-by-op", attention_op_by_op, say_attention_op_by_op, "FlashAttention, arXiv:2205.14135"},
    {"max-pooling", slow_max_pooling, say_slow_max_pooling, "ATen/native/cpu/MaxPoolKernel.cpp; this report's %roof"},
    {"channels-last", channels_first, say_channels_first, kMeasured},
    {"depthwise-convolution", depthwise_convolution, say_depthwise_convolution,
     "ShuffleNet V2 G2, arXiv:1807.11164; EfficientNetV2, arXiv:2104.00298"},
    {"grouped-convolution", grouped_convolution, say_grouped_convolution, kShuffleNet2},
    {"tensor-core-multiples", off_multiples, say_off_multiples,
     "NVIDIA, Matrix Multiplication Background User's Guide, 'Requirements to use Tensor Cores'"},
    {"far-from-roof", far_from_roof, say_far_from_roof, "this report's %roof"},
    {"weights-read-again", weights_again, say_weights_again, "LLM Inference Unveiled, arXiv:2402.16363"},
    {"unequal-channels", unequal_channels, say_unequal_channels, kShuffleNet1},
    {"element-wise", elementwise, say_elementwise, kShuffleNet4},
    {"lower-precision", lower_precision, say_lower_precision, kMeasured},
    // A change of code cannot help here, so the rule holds only for a large part of the time.
    {"compute-bound", at_the_compute_roof, say_at_the_compute_roof, kRoofline, 0.25},
}};

}  // namespace

std::span<const AdviceRule> advice_rules() { return kRules; }

}  // namespace roofprof
