#include "analysis/findings/finding_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>

#include "analysis/findings/finding_case.h"
#include "analysis/findings/waste_rules.h"
#include "analysis/hotspots.h"
#include "analysis/kernel_arch.h"
#include "analysis/roofline.h"
#include "core/collective_kinds.h"
#include "core/phrases.h"

namespace roofprof {
namespace {

using cases::call_ns;
using cases::convolution;
using cases::is_bound;
using cases::is_in_module;
using cases::is_of_cpp;
using cases::kFarFromRoof;
using cases::kNearRoof;
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
using sentences::text_of_microseconds;
using sentences::value_of;

// ---- devices

std::optional<FindingReason> built_for_older(const FindingCase& where) {
  if (where.kernels.older == nullptr) return std::nullopt;
  const auto built_for = architecture_in_name(where.kernels.older->name);
  const auto device = architecture_of_device(where.data->device->compute_capability);
  if (!built_for || !device) return std::nullopt;
  return FindingReason{where.kernels.older->total_ns,
                       {{"built_for", static_cast<double>(*built_for)}, {"device", static_cast<double>(*device)}}};
}

Said say_built_for_older(const FindingCase& where, const NamedFigures& figures) {
  constexpr std::size_t kNameLength = 60;
  const std::string& name = where.kernels.older->name;
  return {"the kernel " + (name.size() > kNameLength ? name.substr(0, kNameLength) + "..." : name) +
              " was built for sm_" + text_of(figures, "built_for") + ", this device is sm_" +
              text_of(figures, "device"),
          "another shape, layout, type or library version may get a newer one"};
}

// cuDNN's kernels for tensor cores want the channels last: it brings them there before, and back afterwards.
std::optional<FindingReason> reorders_channels(const FindingCase& where) {
  const auto time = time_of(where);
  if (where.kernels.reordered_ns <= 0 || time <= 0) return std::nullopt;
  return FindingReason{
      where.kernels.reordered_ns,
      {{"percent_of_op", 100 * static_cast<double>(where.kernels.reordered_ns) / static_cast<double>(time)}}};
}

// Convolutions take an image of either order where their weights are channels_last. Empty where weights of volumes
// would have to be.
std::string try_channels_last(const Profile& data) {
  const auto is_of_volumes = [](const OpBucket& op) { return op.op.find("conv3d") != std::string::npos; };
  if (std::ranges::any_of(data.counts.ops, is_of_volumes)) return "";
  constexpr std::size_t kDimensionsOfImages = 4;
  const bool is_image =
      cases::takes_one_tensor(data) && data.tree.modules[kModel].input_shapes.front().size() == kDimensionsOfImages;
  return std::string("model = model.to(memory_format=torch.channels_last)") +
         (is_image ? "; x = x.to(memory_format=torch.channels_last)" : "");
}

Said say_reorders_channels(const FindingCase& where, const NamedFigures& figures) {
  const std::string to = is_of_cpp(*where.data) ? "model->to and the input's in torch::MemoryFormat::ChannelsLast"
                                                : "model and input .to(memory_format=torch.channels_last)";
  return {percent(value_of(figures, "percent_of_op") / 100) +
              " of their time goes to kernels that only change the order of channels (nchwToNhwc, nhwcToNchw)",
          to + " needs none of them", try_channels_last(*where.data)};
}

// A device that is busy for most of the time has no gaps to fill.
std::optional<FindingReason> device_waits(const FindingCase& where) {
  constexpr double kBusy = 70;
  if (where.ops->op != kIdleDevice || !where.ops->utilization || *where.ops->utilization >= kBusy) return std::nullopt;
  return FindingReason{time_of(where), {{"utilization", *where.ops->utilization}}};
}

Said say_device_waits(const FindingCase& where, const NamedFigures& figures) {
  const std::string how = may_compile(*where.data) ? "larger batches, torch.compile or CUDA graphs give"
                                                   : "larger batches or CUDA graphs give";
  return {
      "busy for " + percent(value_of(figures, "utilization") / 100) +
          " of the time between its first launch and its last" +
          (where.data->device->timeline.idle_basis == IdleBasis::bare ? ""
                                                                      : ", what recording may have added left out") +
          ", it waited for launches in the rest",
      how + " it more at once"};
}

// ---- other ranks, data

std::optional<FindingReason> exposed_communication(const FindingCase& where) {
  if (where.ops->op != kExposedCommunication) return std::nullopt;
  // The collectives of all modules, since a wait may be for another module's.
  const CollectiveBucket* largest = nullptr;
  for (const auto& collective : where.data->comms->collectives) {
    if (largest == nullptr || collective.exposed_ns > largest->exposed_ns) largest = &collective;
  }
  if (largest == nullptr || largest->calls <= 0) return std::nullopt;
  const auto& op = where.data->counts.ops[static_cast<std::size_t>(largest->bucket)];
  const auto& group = where.data->comms->groups[static_cast<std::size_t>(largest->group)];
  const auto kind = collective_of(op.op);
  if (!kind || op.calls <= 0) return std::nullopt;
  const std::int64_t bytes_per_call = message_bytes(*kind, op.work, group.ranks) / op.calls;
  return FindingReason{
      wasted_in(where),
      {{"collective", static_cast<double>(*kind)}, {"bytes_per_call", static_cast<double>(bytes_per_call)}}};
}

Said say_exposed_communication(const FindingCase&, const NamedFigures& figures) {
  const auto kind = static_cast<CollectiveKind>(static_cast<int>(value_of(figures, "collective")));
  constexpr double kDefaultBucket = 25e6;  // of DistributedDataParallel, bytes
  const bool reduces = kind == CollectiveKind::all_reduce;
  const bool in_small_parts = reduces && value_of(figures, "bytes_per_call") < kDefaultBucket;
  const bool shards = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  return {"no op computed meanwhile, most of it in " + std::string(name_of(kind)) + " of " +
              text_of(figures, "bytes_per_call") + "B a call",
          in_small_parts ? "larger buckets send more at once, reducing while the backward runs overlaps more, gradient "
                           "accumulation sends less often"
          : reduces      ? "reducing while the backward runs overlaps more, gradient accumulation sends less often, a "
                           "shorter type sends less"
          : shards       ? "larger sharded units send more at once, prefetching overlaps more, fewer shards send less"
                         : "work that does not need its result can run meanwhile, a shorter type sends less",
          in_small_parts ? "model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=100)" : ""};
}

std::optional<FindingReason> data_loading(const FindingCase& where) {
  const std::string& path = *where.ops->module;
  const bool named = path == kDataLoading || path.ends_with("." + std::string(kDataLoading));
  return named ? std::optional(FindingReason{time_of(where), {}}) : std::nullopt;
}

Said say_data_loading(const FindingCase& where, const NamedFigures&) {
  return {"the program waits for its next batch",
          std::string(is_of_cpp(*where.data) ? "more workers of the data loader"
                                             : "more workers (DataLoader's num_workers)") +
              " or less work for each sample make it ready before"};
}

// ---- the optimizer

std::optional<FindingReason> optimizer_op_by_op(const FindingCase& where) {
  constexpr std::size_t kManyPasses = 3;  // each op reads and writes all parameters or what is kept of them
  if (*where.ops->module != where.data->tree.modules[kOptimizer].path) return std::nullopt;
  std::set<std::string_view> passes;
  std::int64_t calls = 0;
  for (const auto& bucket : where.data->counts.ops) {
    if (bucket.owner.module != kOptimizer || bucket.work.bytes() == 0) continue;
    if (bucket.op.starts_with("aten::_fused_") || bucket.op == kCompiledRegion) return std::nullopt;
    passes.insert(bucket.op);
    calls = saturating_add(calls, bucket.calls);
  }
  if (passes.size() < kManyPasses) return std::nullopt;
  return FindingReason{time_of(where),
                       {{"ops", static_cast<double>(passes.size())}, {"calls", static_cast<double>(calls)}}};
}

Said say_optimizer_op_by_op(const FindingCase& where, const NamedFigures& figures) {
  return {"it updates the parameters by " + text_of(figures, "calls") + " calls of " + text_of(figures, "ops") +
              " ops, each of which reads and writes memory",
          is_of_cpp(*where.data) ? "at::_fused_adamw_ and its like do it in one pass"
                                 : "fused=True (Adam, AdamW, SGD, Adagrad) does it in one pass"};
}

// ---- casts

// Returns whether the shapes are two of the same sizes: "4096x512, 4096x512".
bool are_two_alike(std::string_view shapes) {
  constexpr std::string_view kBetween = ", ";
  const auto end = shapes.find(kBetween);
  return end != std::string_view::npos && shapes.substr(0, end) == shapes.substr(end + kBetween.size());
}

// Reads elements of one size and writes as many of another one. A copy that broadcasts also writes other bytes than it
// reads: of `copy_`, whose elements are those of what it writes, the shapes tell; a tensor that was expanded has fewer
// bytes than elements, or a part of what one takes.
bool is_cast(const OpBucket& op) {
  const Work& work = op.work;
  return cases::may_change_type(op.op) && op.link_bytes == 0 && work.input_elements > 0 &&
         work.input_elements == work.output_elements && work.read_bytes != work.write_bytes &&
         work.read_bytes % work.input_elements == 0 && (op.op != "aten::copy_" || are_two_alike(op.shapes));
}

std::optional<FindingReason> casts(const FindingCase& where) {
  if (where.bucket == nullptr || !is_cast(*where.bucket)) return std::nullopt;
  return FindingReason{time_of(where), {{"calls", static_cast<double>(where.ops->calls)}}};
}

// Returns whether the forward itself casts to a wider type, which narrower weights would then meet.
bool casts_to_wider(const Profile& data) {
  return std::ranges::any_of(data.counts.ops, [](const OpBucket& op) {
    return op.owner.phase == Phase::forward && is_cast(op) && op.work.write_bytes > op.work.read_bytes;
  });
}

Said say_casts(const FindingCase& where, const NamedFigures&) {
  return {"tensors are converted from one type to another in each call",
          std::string("hold weights and inputs in the type that computes (") +
              (is_of_cpp(*where.data) ? "model->to(torch::kBFloat16)" : "model.to(torch.bfloat16)") +
              ") where its precision will do" +
              (may_compile(*where.data) ? ", or fuse casts with neighbouring ops (torch.compile)" : ""),
          casts_to_wider(*where.data) || !cases::takes_one_tensor(*where.data)
              ? ""
              : "model = model.to(torch.bfloat16); x = x.to(torch.bfloat16) if x.is_floating_point() else x"};
}

bool is_product(std::string_view op) { return op == "aten::matmul" || op == "aten::bmm" || op == "aten::baddbmm"; }

// ---- attention

constexpr double kOthersAsNear = 4;  // times as near to their roofs

constexpr std::string_view kAttention = "aten::scaled_dot_product_attention";

// Decides whether an attention ran unfused: the fused path has no separate op for softmax's backward. Without a
// backward it decides by how far the attention is behind the rest of the model.
std::optional<FindingReason> unfused_attention(const FindingCase& where) {
  constexpr double kSlow = 10;
  if (!where.ops->percent_of_roof || where.ops->calls <= 0) return std::nullopt;
  const double reached = of_roof(where);
  const bool slow = reached < kSlow && kOthersAsNear * reached < where.total->percent_of_roof.value_or(0);
  const bool has_softmax = std::ranges::any_of(where.data->counts.ops, [&](const OpBucket& bucket) {
    return bucket.op == "aten::_softmax_backward_data" && is_in_module(where, bucket);
  });
  if (!slow && !has_softmax) return std::nullopt;
  return FindingReason{wasted_in(where),
                       {{"percent_of_roof", reached}, {"time_per_call_us", call_ns(where) / 1e3}, {"by_hand", 0}}};
}

// Scores that one product makes, softmax takes and another product reads: the softmax of these, or one of the products.
std::optional<FindingReason> attention_by_hand(const FindingCase& where) {
  if (where.bucket == nullptr || where.bucket->calls <= 0) return std::nullopt;
  std::set<std::int64_t> softmaxes, made, read;  // elements in a call
  for (const auto& bucket : where.data->counts.ops) {
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
  std::erase_if(softmaxes, [&](std::int64_t elements) { return !are_scores(elements); });
  const Work& own = where.bucket->work;
  const bool takes_scores = is_product(*where.ops->op) && softmaxes.contains(own.input_elements / where.bucket->calls);
  if (!takes_scores && !softmaxes.contains(own.output_elements / where.bucket->calls)) return std::nullopt;
  return FindingReason{wasted_in(where), {{"percent_of_roof", of_roof(where)}, {"by_hand", 1}}};
}

std::optional<FindingReason> attention_op_by_op(const FindingCase& where) {
  const std::string& op = *where.ops->op;
  if (op == kAttention) return unfused_attention(where);
  if (is_product(op) || op.starts_with("aten::softmax") || op.starts_with("aten::_softmax"))
    return attention_by_hand(where);
  return std::nullopt;
}

Said say_attention_op_by_op(const FindingCase& where, const NamedFigures& figures) {
  if (value_of(figures, "by_hand") > 0) {
    return {"attention op by op, whose scores go through memory each time",
            std::string(is_of_cpp(*where.data) ? "at::scaled_dot_product_attention"
                                               : "torch.nn.functional.scaled_dot_product_attention") +
                " computes it in one"};
  }
  return {percent_of_roof(figures) + " in calls of " + text_of_microseconds(value_of(figures, "time_per_call_us")) +
              ", as on the path that is not fused, whose scores go through memory",
          std::string("dropout ") + (ran_on_cpu(where) ? "rules the fused one out on a CPU"
                                                       : "or some kinds of mask rule the fused one out")};
}

// ---- code that reaches no roof

// If everything is far from the roofs, something else is slow: a machine that others use, or a model of short calls.
constexpr double kOthersReach = 20;
constexpr double kLongCall = 20e3;        // ns, on the host
constexpr double kLongDeviceCall = 10e3;  // ns

bool is_long(const FindingCase& where) {
  return where.ops->calls > 0 && call_ns(where) >= (where.data->device ? kLongDeviceCall : kLongCall);
}

// Returns whether all else is far nearer to its roofs: what slows the whole machine slows that, too.
bool is_behind_the_rest(const FindingCase& where) {
  const auto rest_ns = static_cast<double>(where.total->time_ns.value_or(0) - time_of(where));
  const auto least_ns =
      static_cast<double>(where.total->lower_bound_time_ns.value_or(0) - where.ops->lower_bound_time_ns.value_or(0));
  return rest_ns > 0 && 100 * least_ns / rest_ns >= kOthersAsNear * of_roof(where);
}

std::optional<FindingReason> far_from_roof(const FindingCase& where) {
  if (where.bucket == nullptr || !where.ops->percent_of_roof || of_roof(where) >= kFarFromRoof) return std::nullopt;
  if (where.ops->incomplete || !is_long(where)) return std::nullopt;
  if (where.total->percent_of_roof.value_or(0) < kOthersReach && !is_behind_the_rest(where)) return std::nullopt;
  return FindingReason{part_of(wasted_in(where), 1 - cases::interrupted_share(where)),
                       {{"percent_of_roof", of_roof(where)}, {"time_per_call_us", call_ns(where) / 1e3}}};
}

Said say_far_from_roof(const FindingCase& where, const NamedFigures& figures) {
  const bool generates = where.ops->macs == 0 && may_compile(*where.data);  // torch.compile calls products as they are
  return {percent_of_roof(figures) + " in calls of " + text_of_microseconds(value_of(figures, "time_per_call_us")) +
              ", so its code bounds it, not the machine",
          std::string("try another type or implementation") +
              (generates ? ", such as the code that torch.compile makes" : "")};
}

std::optional<FindingReason> slow_pooling(const FindingCase& where) {
  // An adaptive one that makes one pixel is a mean, as quick in either layout.
  const std::string& op = *where.ops->op;
  if (op.find("pool") == std::string::npos || op.find("adaptive") != std::string::npos || !ran_on_cpu(where))
    return std::nullopt;
  if (where.bucket == nullptr || !where.bucket->channels_first || of_roof(where) >= kFarFromRoof) return std::nullopt;
  if (where.ops->calls <= 0 || call_ns(where) < kLongCall) return std::nullopt;
  return FindingReason{wasted_in(where), {{"percent_of_roof", of_roof(where)}}};
}

Said say_slow_pooling(const FindingCase& where, const NamedFigures& figures) {
  return {percent_of_roof(figures) + ", so its code bounds it, not the machine",
          "try model and input in channels_last: on a CPU it is vectorised along the channels there alone",
          try_channels_last(*where.data)};
}

// Convolutions in oneDNN compute with channels in blocks: other layouts are reordered before and after each call.
std::optional<FindingReason> channels_first(const FindingCase& where) {
  if (!cases::wants_channels_last(where)) return std::nullopt;
  return FindingReason{wasted_in(where), {{"percent_of_roof", of_roof(where)}}};
}

Said say_channels_first(const FindingCase& where, const NamedFigures& figures) {
  const std::string to = is_of_cpp(*where.data) ? "model->to and the input's in torch::MemoryFormat::ChannelsLast"
                                                : "model and input .to(memory_format=torch.channels_last)";
  // Measured with one thread (docs/findings.md).
  return {"on images in channels first, at " + percent_of_roof(figures),
          "try " + to + ", which made 37 of 42 networks quicker, the quickest 1.9 times as fast",
          try_channels_last(*where.data)};
}

// ---- shapes that cost bytes

// Half of the roof: better is good for any convolution.
constexpr double kGoodForConvolution = 50;

std::optional<FindingReason> split_convolution(const FindingCase& where, bool depthwise) {
  const auto sizes = convolution(where);
  if (!sizes || sizes->groups == 1 || sizes->depthwise() != depthwise || !where.ops->intensity) return std::nullopt;
  const auto ridge = ridge_of(where);
  if (!ridge || *where.ops->intensity >= *ridge) return std::nullopt;
  return FindingReason{time_of(where),
                       {{"groups", static_cast<double>(sizes->groups)},
                        {"intensity", *where.ops->intensity},
                        {"ridge", *ridge},
                        {"percent_of_roof", of_roof(where)}}};
}

std::optional<FindingReason> depthwise_convolution(const FindingCase& where) { return split_convolution(where, true); }

Said say_depthwise_convolution(const FindingCase& where, const NamedFigures& figures) {
  const bool slow = value_of(figures, "percent_of_roof") < kGoodForConvolution;
  const std::string layout = where.bucket->channels_first ? "try channels_last, or " : "try ";
  return {
      "depthwise, so few FLOPs for the bytes, " + under_the_ridge_text(figures) + ", at " + percent_of_roof(figures),
      slow ? layout + "full convolutions where time counts, as Fused-MBConv has them"
           : "full convolutions may take less time with more FLOPs, as in Fused-MBConv"};
}

std::optional<FindingReason> grouped_convolution(const FindingCase& where) { return split_convolution(where, false); }

Said say_grouped_convolution(const FindingCase&, const NamedFigures& figures) {
  return {text_of(figures, "groups") + " groups raise the bytes for the FLOPs, " + under_the_ridge_text(figures) +
              ", at " + percent_of_roof(figures),
          "fewer groups may be quicker with more FLOPs"};
}

// Of a 1x1 convolution of c1 to c2 channels, activations are (c1 + c2) per pixel, least at equal channels with the same
// product. From a ratio of 4 on that is a quarter more.
std::optional<FindingReason> unequal_channels(const FindingCase& where) {
  constexpr double kMuchMore = 1.25;
  const auto sizes = convolution(where);
  if (!sizes || !sizes->pointwise || sizes->groups != 1 || !under_the_ridge(where)) return std::nullopt;
  const auto in = static_cast<double>(sizes->in_channels);
  const auto out = static_cast<double>(sizes->out_channels);
  const double ratio = (in + out) / (2 * std::sqrt(in * out));
  if (ratio < kMuchMore) return std::nullopt;
  const std::int64_t bound_ns = where.ops->lower_bound_time_ns.value_or(0);
  return FindingReason{part_of(bound_ns, 1 - 1 / ratio),
                       {{"in_channels", in}, {"out_channels", out}, {"ratio", ratio}}};
}

Said say_unequal_channels(const FindingCase&, const NamedFigures& figures) {
  return {"memory-bound, with " + text_of(figures, "in_channels") + " channels in and " +
              text_of(figures, "out_channels") + " out it moves " + text_of(figures, "ratio") +
              " times the activations that equal channels would for the same FLOPs",
          "make its channels more equal"};
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

std::optional<FindingReason> off_multiples(const FindingCase& where) {
  constexpr int kFirstTensorCores = 70;
  constexpr std::int64_t kFewChannels = 4;  // of an image, for which libraries have kernels of their own
  const auto device = architecture_of_device(where.data->device->compute_capability);
  if (!where.data->device || !device || *device < kFirstTensorCores || where.bucket == nullptr) return std::nullopt;
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
    return FindingReason{wasted_in(where),
                         {{"size", static_cast<double>(size)}, {"multiple", static_cast<double>(*multiple)}}};
  }
  return std::nullopt;
}

Said say_off_multiples(const FindingCase& where, const NamedFigures& figures) {
  const auto size = static_cast<std::int64_t>(value_of(figures, "size"));
  const auto multiple = static_cast<std::int64_t>(value_of(figures, "multiple"));
  return {"a size of " + std::to_string(size) + " is not a multiple of " + std::to_string(multiple) + ", which " +
              std::string(name_of(where.bucket->dtype)) + " needs to fill the tensor cores",
          "pad it to " + std::to_string((size + multiple - 1) / multiple * multiple)};
}

// ---- what bounds

std::optional<FindingReason> weights_again(const FindingCase& where) {
  constexpr double kMostOfIt = 0.8;
  const auto under = under_the_ridge(where);
  const auto sizes = under ? linear_sizes(*where.bucket) : std::nullopt;
  if (!sizes || !is_floating(where.bucket->dtype)) return std::nullopt;
  const double weights = static_cast<double>(sizes->inner) * static_cast<double>(sizes->columns);
  const double others = static_cast<double>(sizes->rows) * static_cast<double>(sizes->inner + sizes->columns);
  const double share = weights / (weights + others);
  if (share < kMostOfIt) return std::nullopt;
  // If there are many rows, each takes little of the time in which the weights are read.
  return FindingReason{part_of(time_of(where), share),
                       {{"rows", static_cast<double>(sizes->rows)},
                        {"weights", weights},
                        {"percent_of_bytes", 100 * share},
                        under->at(0),
                        under->at(1)}};
}

Said say_weights_again(const FindingCase&, const NamedFigures& figures) {
  return {"each call reads " + text_of(figures, "weights") + " weights for " + text_of(figures, "rows") +
              (value_of(figures, "rows") == 1 ? " row" : " rows") + ", " +
              percent(value_of(figures, "percent_of_bytes") / 100) + " of its bytes, " + under_the_ridge_text(figures),
          "quantise them, or read them once for more rows by a larger batch"};
}

// One result for each element, without products: activations, additions, normalisations.
std::optional<FindingReason> elementwise(const FindingCase& where) {
  const bool is_far = of_roof(where) < kFarFromRoof;
  if (is_far && !is_long(where)) return std::nullopt;  // its start takes the time
  const auto under = is_far ? cases::below_the_ridge(where) : under_the_ridge(where);
  if (!under) return std::nullopt;
  const Work& work = where.bucket->work;
  const bool each = work.macs == 0 && work.output_elements > 0 && work.input_elements == work.output_elements;
  if (!each || where.ops->flops == 0) return std::nullopt;
  // Far from its roof memory is not all that takes the time: pvt_v2_b0, with a twentieth of its time in such ops,
  // gained nothing by torch.compile. So only a fifth of the time is worth a finding.
  constexpr double kFarCounts = 0.25;
  FindingReason reason{part_of(time_of(where), is_far ? kFarCounts : 1), *under};
  reason.figures.emplace_back("percent_of_roof", of_roof(where));
  return reason;
}

Said say_elementwise(const FindingCase& where, const NamedFigures& figures) {
  const bool near = value_of(figures, "percent_of_roof") >= kFarFromRoof;
  return {
      under_the_ridge_text(figures) + (near ? ", so the time is that of passes over memory"
                                            : ", each a pass over memory of its own, at " + percent_of_roof(figures)),
      std::string("fuse them with neighbouring ops") + (may_compile(*where.data) ? " (torch.compile)" : "")};
}

// The highest roof of a type that is narrower than this one; null where none is higher.
const ComputeCeiling* higher_roof(const FindingCase& where) {
  const DType dtype = where.bucket->dtype;
  const Ceilings& ceilings = where.data->roofs;
  const ComputeCeiling* best = ceilings.compute_for(dtype);
  for (const DType narrower : {DType::fp32, DType::tf32, DType::bf16, DType::fp16}) {
    const auto* roof = narrower > dtype ? ceilings.compute_for(narrower) : nullptr;
    if (roof != nullptr && best != nullptr && roof->operations_per_second > best->operations_per_second) best = roof;
  }
  return best == nullptr || best->dtype == dtype ? nullptr : best;
}

// Autocast casts weights in each call. Of the models that were tried (docs/findings.md) vgg11, with 57 MACs for each
// weight, took longer, and those with 128 and more, at like distances from the roof, did not.
bool are_weights_worth_a_cast(const Profile& data) {
  constexpr std::int64_t kMacsForEach = 100;
  std::int64_t macs = 0;
  std::int64_t weights = 0;
  for (const auto& bucket : data.counts.ops) {
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
std::optional<FindingReason> lower_precision(const FindingCase& where) {
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
  const double ratio = best->operations_per_second / where.data->roofs.compute_for(dtype)->operations_per_second;
  if (ratio < kClearlyHigher) return std::nullopt;
  return FindingReason{part_of(where.ops->lower_bound_time_ns.value_or(0), 1 - 1 / ratio),
                       {{"percent_of_roof", of_roof(where)}, {"ratio_of_roofs", ratio}}};
}

// On a CPU, with one thread (docs/findings.md).
constexpr std::string_view kSeenOfAutocast = ", which made 13 models that ran as near to it 1.1 to 1.8 times as fast";

Said say_lower_precision(const FindingCase& where, const NamedFigures& figures) {
  const DType narrower = higher_roof(where)->dtype;
  const std::string name(name_of(narrower));
  const std::string how = narrower == DType::tf32   ? "torch.backends.cuda.matmul.fp32_precision = \"tf32\""
                          : narrower == DType::fp32 ? "fp32"
                                                    : "autocast to " + name;
  return {"compute-bound in " + std::string(name_of(where.bucket->dtype)) + " at " + percent_of_roof(figures) +
              ", while the roof of " + name + " is " + text_of(figures, "ratio_of_roofs") + " times as high",
          "try " + how + (ran_on_cpu(where) ? std::string(kSeenOfAutocast) : ""),
          narrower == DType::tf32 ? how
          : narrower == DType::fp32
              ? std::string(kToFp32)
              : "with torch.autocast(\"" + std::string(ran_on_cpu(where) ? "cpu" : "cuda") + "\", torch." +
                    (narrower == DType::bf16 ? "bfloat16" : "float16") + "): model(x)"};
}

std::optional<FindingReason> at_the_compute_roof(const FindingCase& where) {
  constexpr double kAtRoof = 95;  // where it is at the roof itself, there is nothing to say
  if (!is_bound(where, BoundKind::compute) || of_roof(where) < kNearRoof || of_roof(where) >= kAtRoof)
    return std::nullopt;
  return FindingReason{time_of(where), {{"percent_of_roof", of_roof(where)}}};
}

Said say_at_the_compute_roof(const FindingCase& where, const NamedFigures& figures) {
  return {
      "at " + percent_of_roof(figures) + " of " + where.ops->bound.resource + " little is left to gain from its code",
      "only fewer operations (smaller inputs or layers) or a faster unit help"};
}

constexpr std::string_view kShuffleNet1 = "ShuffleNet V2 G1, arXiv:1807.11164";
constexpr std::string_view kShuffleNet2 = "ShuffleNet V2 G2, arXiv:1807.11164";
constexpr std::string_view kShuffleNet4 = "ShuffleNet V2 G4, arXiv:1807.11164";
constexpr std::string_view kMeasured = "this report's %roof; docs/findings.md";
constexpr std::string_view kRoofline = "Williams et al. 2009, doi:10.1145/1498765.1498785";

constexpr std::string_view kLowerBound = "lower bound";
constexpr std::string_view kMeasuredModels = "measured on other models (docs/findings.md)";
constexpr std::string_view kTimesOfReport = "the time that it took";
constexpr std::string_view kRoofOfOther = "other precision's roof";

// The rules, from the most special to the most general; the first that holds makes the sentence.
constexpr FindingRule kRules[] = {
    {.name = "reordered-channels",
     .reason = reorders_channels,
     .sentence = say_reorders_channels,
     .reference = "this report's kernels (names); NVIDIA cuDNN developer guide, tensor layouts",
     .gain = {0.5, 1.2, kTimesOfReport, Confidence::medium, "these kernels do nothing else"}},
    {.name = "older-kernel",
     .reason = built_for_older,
     .sentence = say_built_for_older,
     .reference = "this report's kernels (built for)",
     .gain = {0, 0.5, kTimesOfReport, Confidence::low, "a library may have no newer kernel"}},
    {.name = kIdleRule,
     .reason = device_waits,
     .sentence = say_device_waits,
     .reference = "this report's utilization",
     .gain = {0.2, 1, "the device's idle time", Confidence::medium, "the device was seen to wait"},
     .try_it = "model = torch.compile(model, mode=\"reduce-overhead\")",
     .about = "the device",
     .names_modules = false},
    {.name = "exposed-communication",
     .reason = exposed_communication,
     .sentence = say_exposed_communication,
     .reference = "this report's exposed communication; PyTorch DDP, arXiv:2006.15704; PyTorch FSDP, arXiv:2304.11277",
     .gain = {0, 1, "lower bound of the network", Confidence::medium, "no op computed in that time"},
     .around_model = true,
     .about = "exposed communication"},
    {.name = "data-loading",
     .reason = data_loading,
     .sentence = say_data_loading,
     .reference = "this report's time in (data loading)",
     .gain = {0.3, 1, kTimesOfReport, Confidence::high, "the program only waited in that time"},
     .try_it = "torch.utils.data.DataLoader(data, num_workers=4, persistent_workers=True)",
     .around_model = true,
     .about = "data loading",
     .names_modules = false},
    {.name = "optimizer-op-by-op",
     .reason = optimizer_op_by_op,
     .sentence = say_optimizer_op_by_op,
     .reference = "this report's ops of (optimizer)",
     .gain = {0.2, 0.9, kTimesOfReport, Confidence::medium, "one pass over memory replaces several"},
     .try_it = "for group in optimizer.param_groups: group['fused'] = True",
     .around_model = true,
     .about = "the optimizer",
     .names_modules = false},
    {.name = "host-sync",
     .reason = reads_on_host,
     .sentence = say_reads_on_host,
     .reference = "this report's aten::_local_scalar_dense",
     .gain = {0.3, 1, kTimesOfReport, Confidence::high, "the calls that read values on the host were counted"}},
    // A call on a host usually spends a tenth of its time between ops.
    {.name = kOutsideRule,
     .reason = outside_ops_of_host,
     .sentence = say_outside_ops,
     .reference = "this report's time outside ops",
     .gain = {0.1, 0.95, kTimesOfReport, Confidence::medium, "the time was seen to pass outside of long ops"},
     .try_it = kCompileIt,
     .least_share = 0.2,
     .about = "code outside ops"},
    {.name = "double-precision",
     .reason = double_precision,
     .sentence = say_double_precision,
     .reference = "this report's dtypes and roofs",
     .gain = {0.5, 1.5, kRoofOfOther, Confidence::high, "bytes and operations follow from the type"}},
    {.name = "made-in-forward",
     .reason = made_in_forward,
     .sentence = say_made_in_forward,
     .reference = "this report's ops",
     .gain = {0.5, 1, kTimesOfReport, Confidence::high, "these ops depend on no input"},
     .names_modules = true},
    {.name = "casts",
     .reason = casts,
     .sentence = say_casts,
     .reference = "this report's casts",
     .gain = {0.2, 1, kTimesOfReport, Confidence::medium, "the result may have to stay in another type"}},
    {.name = "joined-in-a-loop",
     .reason = joins_in_a_loop,
     .sentence = say_joins_in_a_loop,
     .reference = "this report's ops without operations",
     .gain = {0.6, 1, kTimesOfReport, Confidence::high, "joined once, each part is copied once"}},
    {.name = "copies",
     .reason = copies,
     .sentence = say_copies,
     .reference = "this report's ops without operations",
     .gain = {0, 1, kTimesOfReport, Confidence::medium, "some ops need a copy in another layout"}},
    {.name = "attention-op-by-op",
     .reason = attention_op_by_op,
     .sentence = say_attention_op_by_op,
     .reference = "FlashAttention, arXiv:2205.14135",
     .gain = {0.1, 0.95, kLowerBound, Confidence::medium, "the fused path may refuse the mask or the type"},
     .try_it = "torch.nn.functional.scaled_dot_product_attention(q, k, v)"},
    {.name = "pooling",
     .reason = slow_pooling,
     .sentence = say_slow_pooling,
     .reference = "ATen/native/cpu/MaxPoolKernel.cpp, AvgPoolKernel.cpp; this report's %roof",
     .gain = {0.3, 1, kLowerBound, Confidence::high, "ATen vectorises it in channels_last alone"}},
    {.name = "misaligned-channels",
     .reason = misaligned_channels,
     .sentence = say_misaligned_channels,
     .reference = "oneDNN, blocks of 16 channels; docs/findings.md",
     .gain = {0.2, 1.5, "padding to whole vectors", Confidence::medium, "oneDNN may choose another block"}},
    {.name = "channels-last",
     .reason = channels_first,
     .sentence = say_channels_first,
     .reference = kMeasured,
     .gain = {0, 0.6, kMeasuredModels, Confidence::medium,
              "42 models gained -12 to 48% of their time, 40 of them -3% or more"}},
    {.name = "depthwise-convolution",
     .reason = depthwise_convolution,
     .sentence = say_depthwise_convolution,
     .reference = "ShuffleNet V2 G2, arXiv:1807.11164; EfficientNetV2, arXiv:2104.00298",
     .gain = {0, 0.5, kMeasuredModels, Confidence::low, "the model's shape has to change"}},
    {.name = "grouped-convolution",
     .reason = grouped_convolution,
     .sentence = say_grouped_convolution,
     .reference = kShuffleNet2,
     .gain = {0, 0.5, kLowerBound, Confidence::low, "the model's shape has to change"}},
    {.name = "tensor-core-multiples",
     .reason = off_multiples,
     .sentence = say_off_multiples,
     .reference = "NVIDIA, Matrix Multiplication Background User's Guide, 'Requirements to use Tensor Cores'",
     .gain = {0, 0.8, kLowerBound, Confidence::medium, "libraries may pad by themselves"}},
    {.name = "far-from-roof",
     .reason = far_from_roof,
     .sentence = say_far_from_roof,
     .reference = "this report's %roof",
     .gain = {0, 0.9, kLowerBound, Confidence::low, "the cause is not known"},
     .each_op_alone = true},
    // A larger batch changes all other ops, too: vgg11, whose linear layers take an eighth of its time, took longer for
    // an image in a batch of 8. So the rule holds only for a large part of the time.
    {.name = "weights-read-again",
     .reason = weights_again,
     .sentence = say_weights_again,
     .reference = "LLM Inference Unveiled, arXiv:2402.16363",
     .gain = {0.3, 1, kTimesOfReport, Confidence::medium,
              "for each row, where more can be had at once; code outside of ops then runs once for all of them"},
     .try_it = "x = torch.cat([x] * 8)  # eight times as many rows in a call",
     .least_share = 0.25,
     .calls_less_often = true},
    {.name = "unequal-channels",
     .reason = unequal_channels,
     .sentence = say_unequal_channels,
     .reference = kShuffleNet1,
     .gain = {0, 1, kLowerBound, Confidence::low, "the model's shape has to change"}},
    {.name = "element-wise",
     .reason = elementwise,
     .sentence = say_elementwise,
     .reference = kShuffleNet4,
     .gain = {0.1, 0.95, kTimesOfReport, Confidence::medium, "fused into a neighbour its bytes need not move"},
     .try_it = kCompileIt},
    {.name = "lower-precision",
     .reason = lower_precision,
     .sentence = say_lower_precision,
     .reference = kMeasured,
     .gain = {0.1, 1.2, kRoofOfOther, Confidence::medium, "other ops stay in their type, and casts take time"}},
    {.name = kShortCalls,
     .reason = short_calls,
     .sentence = say_outside_ops,
     .reference = "this report's calls and times",
     .gain = {0.1, 0.95, kTimesOfReport, Confidence::medium, "the time was seen to pass in short ops"},
     .try_it = kCompileIt,
     .least_share = 0.2},
    // A change of code cannot help here, so the rule holds only for a large part of the time.
    {.name = "compute-bound",
     .reason = at_the_compute_roof,
     .sentence = say_at_the_compute_roof,
     .reference = kRoofline,
     .gain = {0, 0, kLowerBound, Confidence::high, "it runs near the roof"},
     .least_share = 0.25},
};

}  // namespace

std::span<const FindingRule> finding_rules() { return kRules; }

}  // namespace roofprof
