#include "analysis/findings/finding_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "analysis/findings/finding_case.h"
#include "analysis/findings/waste_rules.h"
#include "analysis/hotspots.h"
#include "analysis/kernel_arch.h"
#include "core/collective_kinds.h"
#include "core/phrases.h"

namespace roofprof {
namespace {

using cases::kFarFromRoof;
using cases::kNearRoof;
using cases::part_of;
using sentences::number;
using sentences::text_of_microseconds;

// ---- devices

std::optional<Ruling> built_for_older(const FindingCase& where) {
  constexpr std::size_t kNameLength = 60;
  if (where.kernels.older == nullptr) return std::nullopt;
  const std::string& name = where.kernels.older->name;
  const auto built_for = architecture_in_name(name);
  const auto device = architecture_of_device(where.data->device->compute_capability);
  if (!built_for || !device) return std::nullopt;
  return Ruling{.at_stake_ns = where.kernels.older->total_ns,
                .evidence = {{"built_for", *built_for}, {"device", *device}},
                .text = "the kernel " + (name.size() > kNameLength ? name.substr(0, kNameLength) + "..." : name) +
                        " was built for sm_" + number(*built_for) + ", this device is sm_" + number(*device),
                .action = "another shape, layout, type or library version may get a newer one",
                .gain = {0, 0.5, kTimesOfReport, Confidence::low, "a library may have no newer kernel"},
                .reference = "this report's kernels (built for)"};
}

std::string channels_last_in(const FindingCase& where) {
  return where.is_of_cpp() ? "model->to and the input's in torch::MemoryFormat::ChannelsLast"
                           : "model and input .to(memory_format=torch.channels_last)";
}

// Convolutions take an image of either order where their weights are channels_last. Empty where weights of volumes
// would have to be.
std::string try_channels_last(const FindingCase& where) {
  constexpr std::size_t kDimensionsOfImages = 4;
  if (where.program->convolves_volumes) return "";
  const bool is_image = cases::takes_one_tensor(*where.data) &&
                        where.data->tree.modules[kModel].input_shapes.front().size() == kDimensionsOfImages;
  return std::string("model = model.to(memory_format=torch.channels_last)") +
         (is_image ? "; x = x.to(memory_format=torch.channels_last)" : "");
}

// cuDNN's kernels for tensor cores want the channels last: it brings them there before, and back afterwards.
std::optional<Ruling> reorders_channels(const FindingCase& where) {
  const std::int64_t reordered_ns = where.kernels.reordered_ns;
  if (reordered_ns <= 0 || where.time_ns() <= 0) return std::nullopt;
  const double percent_of_op = 100 * static_cast<double>(reordered_ns) / static_cast<double>(where.time_ns());
  return Ruling{.at_stake_ns = reordered_ns,
                .evidence = {{"percent_of_op", percent_of_op}},
                .text = percent(percent_of_op / 100) +
                        " of their time goes to kernels that only change the order of channels (nchwToNhwc, "
                        "nhwcToNchw)",
                .action = channels_last_in(where) + " needs none of them",
                .try_it = try_channels_last(where),
                .gain = {0.5, 1.2, kTimesOfReport, Confidence::medium, "these kernels do nothing else"},
                .reference = "this report's kernels (names); NVIDIA cuDNN developer guide, tensor layouts"};
}

// A device that is busy for most of the time has no gaps to fill.
std::optional<Ruling> device_waits(const FindingCase& where) {
  constexpr double kBusy = 70;
  const auto utilization = where.ops->utilization;
  if (where.ops->op != kIdleDevice || !utilization || *utilization >= kBusy) return std::nullopt;
  return Ruling{
      .at_stake_ns = where.time_ns(),
      .evidence = {{"utilization", *utilization}},
      .text =
          "busy for " + percent(*utilization / 100) + " of the time between its first launch and its last" +
          (where.data->device->timeline.idle_basis == IdleBasis::bare ? ""
                                                                      : ", what recording may have added left out") +
          ", it waited for launches in the rest",
      .action = std::string(where.may_compile() ? "larger batches, torch.compile or CUDA graphs give"
                                                : "larger batches or CUDA graphs give") +
                " it more at once",
      .try_it = "model = torch.compile(model, mode=\"reduce-overhead\")",
      .gain = {0.2, 1, "the device's idle time", Confidence::medium, "the device was seen to wait"},
      .reference = "this report's utilization"};
}

// ---- other ranks, data

std::optional<Ruling> exposed_communication(const FindingCase& where) {
  constexpr std::int64_t kDefaultBucket = 25'000'000;  // of DistributedDataParallel, bytes
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
  const std::int64_t bytes = message_bytes(*kind, op.work, group.ranks) / op.calls;
  const bool reduces = *kind == CollectiveKind::all_reduce;
  const bool in_small_parts = reduces && bytes < kDefaultBucket;
  const bool shards = *kind == CollectiveKind::all_gather || *kind == CollectiveKind::reduce_scatter;
  return Ruling{
      .at_stake_ns = where.wasted_ns(),
      .evidence = {{"collective", *kind}, {"bytes_per_call", bytes}},
      .text = "no op computed meanwhile, most of it in " + std::string(name_of(*kind)) + " of " + number(bytes) +
              "B a call",
      .action = in_small_parts ? "larger buckets send more at once, reducing while the backward runs overlaps more, "
                                 "gradient accumulation sends less often"
                : reduces      ? "reducing while the backward runs overlaps more, gradient accumulation sends less "
                                 "often, a shorter type sends less"
                : shards ? "larger sharded units send more at once, prefetching overlaps more, fewer shards send less"
                         : "work that does not need its result can run meanwhile, a shorter type sends less",
      .try_it = in_small_parts ? "model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=100)" : "",
      .gain = {0, 1, "lower bound of the network", Confidence::medium, "no op computed in that time"},
      .reference =
          "this report's exposed communication; PyTorch DDP, arXiv:2006.15704; PyTorch FSDP, "
          "arXiv:2304.11277"};
}

std::optional<Ruling> data_loading(const FindingCase& where) {
  const std::string& path = *where.ops->module;
  if (path != kDataLoading && !path.ends_with("." + std::string(kDataLoading))) return std::nullopt;
  return Ruling{.at_stake_ns = where.time_ns(),
                .text = "the program waits for its next batch",
                .action = std::string(where.is_of_cpp() ? "more workers of the data loader"
                                                        : "more workers (DataLoader's num_workers)") +
                          " or less work for each sample make it ready before",
                .try_it = "torch.utils.data.DataLoader(data, num_workers=4, persistent_workers=True)",
                .gain = {0.3, 1, kTimesOfReport, Confidence::high, "the program only waited in that time"},
                .reference = "this report's time in (data loading)"};
}

// ---- the optimizer

std::optional<Ruling> optimizer_op_by_op(const FindingCase& where) {
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
  return Ruling{.at_stake_ns = where.time_ns(),
                .evidence = {{"ops", passes.size()}, {"calls", calls}},
                .text = "it updates the parameters by " + number(calls) + " calls of " + number(passes.size()) +
                        " ops, each of which reads and writes memory",
                .action = where.is_of_cpp() ? "at::_fused_adamw_ and its like do it in one pass"
                                            : "fused=True (Adam, AdamW, SGD, Adagrad) does it in one pass",
                .try_it = "for group in optimizer.param_groups: group['fused'] = True",
                .gain = {0.2, 0.9, kTimesOfReport, Confidence::medium, "one pass over memory replaces several"},
                .reference = "this report's ops of (optimizer)"};
}

// ---- casts

std::optional<Ruling> casts(const FindingCase& where) {
  if (where.bucket == nullptr || !cases::is_cast(*where.bucket)) return std::nullopt;
  const bool model_in_bf16_runs = !where.program->casts_to_wider && cases::takes_one_tensor(*where.data);
  return Ruling{
      .at_stake_ns = where.time_ns(),
      .evidence = {{"calls", where.ops->calls}},
      .text = "tensors are converted from one type to another in each call",
      .action = std::string("hold weights and inputs in the type that computes (") +
                (where.is_of_cpp() ? "model->to(torch::kBFloat16)" : "model.to(torch.bfloat16)") +
                ") where its precision will do" +
                (where.may_compile() ? ", or fuse casts with neighbouring ops (torch.compile)" : ""),
      .try_it = model_in_bf16_runs
                    ? "model = model.to(torch.bfloat16); x = x.to(torch.bfloat16) if x.is_floating_point() else x"
                    : "",
      .gain = {0.2, 1, kTimesOfReport, Confidence::medium, "the result may have to stay in another type"},
      .reference = "this report's casts"};
}

// ---- attention

constexpr double kOthersAsNear = 4;  // times as near to their roofs

bool is_product(std::string_view op) { return op == "aten::matmul" || op == "aten::bmm" || op == "aten::baddbmm"; }

// Decides whether an attention ran unfused: the fused path has no separate op for softmax's backward. Without a
// backward it decides by how far the attention is behind the rest of the model.
bool is_unfused_attention(const FindingCase& where) {
  constexpr double kSlow = 10;
  if (!where.ops->percent_of_roof || where.ops->calls <= 0) return false;
  const double reached = where.of_roof();
  if (reached < kSlow && kOthersAsNear * reached < where.total->percent_of_roof.value_or(0)) return true;
  return std::ranges::any_of(where.data->counts.ops, [&](const OpBucket& bucket) {
    return bucket.op == "aten::_softmax_backward_data" && where.is_beside(bucket);
  });
}

// Scores that one product makes, softmax takes and another product reads: the softmax of these, or one of the products.
bool is_attention_by_hand(const FindingCase& where) {
  if (where.bucket == nullptr || where.bucket->calls <= 0) return false;
  std::set<std::int64_t> softmaxes, made, read;  // elements in a call
  for (const auto& bucket : where.data->counts.ops) {
    const Work& work = bucket.work;
    if (bucket.owner.phase != Phase::forward || bucket.calls <= 0 || !where.is_beside(bucket)) continue;
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
  return takes_scores || softmaxes.contains(own.output_elements / where.bucket->calls);
}

std::optional<Ruling> attention_op_by_op(const FindingCase& where) {
  const std::string& op = *where.ops->op;
  const bool fusible = op == "aten::scaled_dot_product_attention";
  const bool by_hand = is_product(op) || op.starts_with("aten::softmax") || op.starts_with("aten::_softmax");
  if (!(fusible && is_unfused_attention(where)) && !(by_hand && is_attention_by_hand(where))) return std::nullopt;
  Ruling ruling{.at_stake_ns = where.wasted_ns(),
                .evidence = {{"percent_of_roof", where.all.percent_of_roof}, {"by_hand", by_hand}},
                .text = "attention op by op, whose scores go through memory each time",
                .action = std::string(where.is_of_cpp() ? "at::scaled_dot_product_attention"
                                                        : "torch.nn.functional.scaled_dot_product_attention") +
                          " computes it in one",
                .try_it = "torch.nn.functional.scaled_dot_product_attention(q, k, v)",
                .gain = {0.1, 0.95, kLowerBound, Confidence::medium, "the fused path may refuse the mask or the type"},
                .reference = "FlashAttention, arXiv:2205.14135"};
  if (!by_hand) {
    ruling.evidence.emplace_back("time_per_call_us", where.all.call_us());
    ruling.text = where.all.roof_text() + " in calls of " + text_of_microseconds(where.all.call_us()) +
                  ", as on the path that is not fused, whose scores go through memory";
    ruling.action = std::string("dropout ") + (where.ran_on_cpu() ? "rules the fused one out on a CPU"
                                                                  : "or some kinds of mask rule the fused one out");
  }
  return ruling;
}

// ---- code that reaches no roof

// If everything is far from the roofs, something else is slow: a machine that others use, or a model of short calls.
constexpr double kOthersReach = 20;
constexpr double kLongCall = 20e3;        // ns, on the host
constexpr double kLongDeviceCall = 10e3;  // ns

bool is_long(const FindingCase& where) {
  return where.ops->calls > 0 && where.call_ns() >= (where.data->device ? kLongDeviceCall : kLongCall);
}

// Returns whether all else is far nearer to its roofs: what slows the whole machine slows that, too.
bool is_behind_the_rest(const FindingCase& where) {
  const auto rest_ns = static_cast<double>(where.total->time_ns.value_or(0) - where.time_ns());
  const auto least_ns =
      static_cast<double>(where.total->lower_bound_time_ns.value_or(0) - where.ops->lower_bound_time_ns.value_or(0));
  return rest_ns > 0 && 100 * least_ns / rest_ns >= kOthersAsNear * where.of_roof();
}

std::optional<Ruling> far_from_roof(const FindingCase& where) {
  if (where.bucket == nullptr || !where.ops->percent_of_roof || where.of_roof() >= kFarFromRoof) return std::nullopt;
  if (where.ops->incomplete || !is_long(where)) return std::nullopt;
  if (where.total->percent_of_roof.value_or(0) < kOthersReach && !is_behind_the_rest(where)) return std::nullopt;
  // torch.compile calls products as they are.
  const bool generates = where.ops->macs == 0 && where.may_compile();
  return Ruling{.at_stake_ns = part_of(where.wasted_ns(), 1 - where.interrupted_share()),
                .evidence = {{"percent_of_roof", where.all.percent_of_roof}, {"time_per_call_us", where.all.call_us()}},
                .text = where.all.roof_text() + " in calls of " + text_of_microseconds(where.all.call_us()) +
                        ", so its code bounds it, not the machine",
                .action = std::string("try another type or implementation") +
                          (generates ? ", such as the code that torch.compile makes" : ""),
                .gain = {0, 0.9, kLowerBound, Confidence::low, "the cause is not known"},
                .reference = "this report's %roof"};
}

std::optional<Ruling> slow_pooling(const FindingCase& where) {
  // An adaptive one that makes one pixel is a mean, as quick in either layout.
  const std::string& op = *where.ops->op;
  if (op.find("pool") == std::string::npos || op.find("adaptive") != std::string::npos || !where.ran_on_cpu())
    return std::nullopt;
  if (where.bucket == nullptr || !where.bucket->channels_first || where.of_roof() >= kFarFromRoof) return std::nullopt;
  if (where.ops->calls <= 0 || where.call_ns() < kLongCall) return std::nullopt;
  return Ruling{
      .at_stake_ns = where.wasted_ns(),
      .evidence = {{"percent_of_roof", where.all.percent_of_roof}},
      .text = where.all.roof_text() + ", so its code bounds it, not the machine",
      .action = "try model and input in channels_last: on a CPU it is vectorised along the channels there alone",
      .try_it = try_channels_last(where),
      .gain = {0.3, 1, kLowerBound, Confidence::high, "ATen vectorises it in channels_last alone"},
      .reference = "ATen/native/cpu/MaxPoolKernel.cpp, AvgPoolKernel.cpp; this report's %roof"};
}

constexpr std::string_view kMeasured = "this report's %roof; docs/findings.md";

// Convolutions in oneDNN compute with channels in blocks: other layouts are reordered before and after each call. What
// it brings was measured with one thread.
std::optional<Ruling> channels_first(const FindingCase& where) {
  if (!where.wants_channels_last()) return std::nullopt;
  return Ruling{.at_stake_ns = where.wasted_ns(),
                .evidence = {{"percent_of_roof", where.all.percent_of_roof}},
                .text = "on images in channels first, at " + where.all.roof_text(),
                .action = "try " + channels_last_in(where) +
                          ", which made 37 of 42 networks quicker, the quickest 1.9 times as fast",
                .try_it = try_channels_last(where),
                .gain = {0, 0.6, kMeasuredModels, Confidence::medium,
                         "42 models gained -12 to 48% of their time, 40 of them -3% or more"},
                .reference = kMeasured};
}

// ---- shapes that cost bytes

constexpr std::string_view kShapeHasToChange = "the model's shape has to change";

// Returns what both rules on groups state; empty where it does not hold.
std::optional<Ruling> split_convolution(const FindingCase& where, bool depthwise) {
  const auto sizes = where.convolution();
  const auto under = where.below_the_ridge();
  if (!sizes || sizes->groups == 1 || sizes->depthwise() != depthwise || !under) return std::nullopt;
  return Ruling{.at_stake_ns = where.time_ns(),
                .evidence = {{"groups", sizes->groups},
                             {"intensity", under->intensity},
                             {"ridge", under->ridge},
                             {"percent_of_roof", where.all.percent_of_roof}},
                .text = (depthwise ? "depthwise, so few FLOPs for the bytes, "
                                   : number(sizes->groups) + " groups raise the bytes for the FLOPs, ") +
                        under->text() + ", at " + where.all.roof_text(),
                .gain = {0, 0.5, kLowerBound, Confidence::low, kShapeHasToChange}};
}

std::optional<Ruling> depthwise_convolution(const FindingCase& where) {
  constexpr double kGood = 50;  // for any convolution
  auto ruling = split_convolution(where, true);
  if (!ruling) return std::nullopt;
  ruling->action = where.all.percent_of_roof >= kGood
                       ? "full convolutions may take less time with more FLOPs, as in Fused-MBConv"
                       : std::string(where.bucket->channels_first ? "try channels_last, or " : "try ") +
                             "full convolutions where time counts, as Fused-MBConv has them";
  ruling->gain.basis = kMeasuredModels;
  ruling->reference = "ShuffleNet V2 G2, arXiv:1807.11164; EfficientNetV2, arXiv:2104.00298";
  return ruling;
}

std::optional<Ruling> grouped_convolution(const FindingCase& where) {
  auto ruling = split_convolution(where, false);
  if (!ruling) return std::nullopt;
  ruling->action = "fewer groups may be quicker with more FLOPs";
  ruling->reference = "ShuffleNet V2 G2, arXiv:1807.11164";
  return ruling;
}

// A 1x1 convolution of c1 to c2 channels has (c1 + c2) activations per pixel, least at equal channels with the same
// product. From a ratio of 4 on that is a quarter more.
std::optional<Ruling> unequal_channels(const FindingCase& where) {
  constexpr double kMuchMore = 1.25;
  const auto sizes = where.convolution();
  if (!sizes || !sizes->pointwise || sizes->groups != 1 || !where.under_the_ridge()) return std::nullopt;
  const auto in = static_cast<double>(sizes->in_channels);
  const auto out = static_cast<double>(sizes->out_channels);
  const double ratio = (in + out) / (2 * std::sqrt(in * out));
  if (ratio < kMuchMore) return std::nullopt;
  return Ruling{.at_stake_ns = part_of(where.ops->lower_bound_time_ns.value_or(0), 1 - 1 / ratio),
                .evidence = {{"in_channels", in}, {"out_channels", out}, {"ratio", ratio}},
                .text = "memory-bound, with " + number(in) + " channels in and " + number(out) + " out it moves " +
                        number(ratio) + " times the activations that equal channels would for the same FLOPs",
                .action = "make its channels more equal",
                .gain = {0, 1, kLowerBound, Confidence::low, kShapeHasToChange},
                .reference = "ShuffleNet V2 G1, arXiv:1807.11164"};
}

// ---- tensor cores

// Returns the multiple that sizes should have: tensor cores work on pieces of 16 bytes along a dimension.
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

std::optional<Ruling> off_multiples(const FindingCase& where) {
  constexpr int kFirstTensorCores = 70;
  constexpr std::int64_t kFewChannels = 4;  // of an image, for which libraries have kernels of their own
  const auto device = architecture_of_device(where.data->device->compute_capability);
  if (!where.data->device || !device || *device < kFirstTensorCores || where.bucket == nullptr) return std::nullopt;
  const auto multiple = multiple_for(where.bucket->dtype);
  if (!multiple) return std::nullopt;
  std::array<std::int64_t, 2> sizes{};
  if (const auto linear = linear_sizes(*where.bucket)) {
    sizes = {linear->inner, linear->columns};
  } else if (const auto conv = where.convolution(); conv && conv->groups == 1) {
    sizes = {conv->in_channels <= kFewChannels ? 0 : conv->in_channels, conv->out_channels};
  }
  const auto size = std::ranges::find_if(sizes, [&](std::int64_t one) { return one % *multiple != 0; });
  if (size == sizes.end()) return std::nullopt;
  return Ruling{
      .at_stake_ns = where.wasted_ns(),
      .evidence = {{"size", *size}, {"multiple", *multiple}},
      .text = "a size of " + std::to_string(*size) + " is not a multiple of " + std::to_string(*multiple) + ", which " +
              std::string(name_of(where.bucket->dtype)) + " needs to fill the tensor cores",
      .action = "pad it to " + std::to_string((*size + *multiple - 1) / *multiple * *multiple),
      .gain = {0, 0.8, kLowerBound, Confidence::medium, "libraries may pad by themselves"},
      .reference = "NVIDIA, Matrix Multiplication Background User's Guide, 'Requirements to use Tensor Cores'"};
}

// ---- what bounds

std::optional<Ruling> weights_again(const FindingCase& where) {
  constexpr double kMostOfIt = 0.8;
  const auto under = where.under_the_ridge();
  const auto sizes = under ? linear_sizes(*where.bucket) : std::nullopt;
  if (!sizes || !is_floating(where.bucket->dtype)) return std::nullopt;
  const double weights = static_cast<double>(sizes->inner) * static_cast<double>(sizes->columns);
  const double others = static_cast<double>(sizes->rows) * static_cast<double>(sizes->inner + sizes->columns);
  const double share = weights / (weights + others);
  if (share < kMostOfIt) return std::nullopt;
  return Ruling{
      .at_stake_ns = part_of(where.time_ns(), share),  // of many rows, each takes little of it
      .evidence = {{"rows", sizes->rows},
                   {"weights", weights},
                   {"percent_of_bytes", 100 * share},
                   {"intensity", under->intensity},
                   {"ridge", under->ridge}},
      .text = "each call reads " + number(weights) + " weights for " + number(sizes->rows) +
              (sizes->rows == 1 ? " row" : " rows") + ", " + percent(100 * share / 100) + " of its bytes, " +
              under->text(),
      .action = "quantise them, or read them once for more rows by a larger batch",
      .try_it = "x = torch.cat([x] * 8)  # eight times as many rows in a call",
      .gain = {0.3, 1, kTimesOfReport, Confidence::medium,
               "for each row, where more can be had at once; code outside of ops then runs once for all of them"},
      .reference = "LLM Inference Unveiled, arXiv:2402.16363"};
}

// Holds for ops with one result for each element, without products: activations, additions, normalisations.
std::optional<Ruling> elementwise(const FindingCase& where) {
  // Far from its roof memory is not all that takes the time: pvt_v2_b0, with a twentieth of its time in such ops,
  // gained nothing by torch.compile. So only a fifth of the time is worth a finding.
  constexpr double kFarCounts = 0.25;
  const bool is_far = where.of_roof() < kFarFromRoof;
  if (is_far && !is_long(where)) return std::nullopt;  // its start takes the time
  const auto under = is_far ? where.below_the_ridge() : where.under_the_ridge();
  if (!under) return std::nullopt;
  const Work& work = where.bucket->work;
  const bool each = work.macs == 0 && work.output_elements > 0 && work.input_elements == work.output_elements;
  if (!each || where.ops->flops == 0) return std::nullopt;
  return Ruling{
      .at_stake_ns = part_of(where.time_ns(), is_far ? kFarCounts : 1),
      .evidence = {{"intensity", under->intensity},
                   {"ridge", under->ridge},
                   {"percent_of_roof", where.all.percent_of_roof}},
      .text = under->text() + (where.all.percent_of_roof >= kFarFromRoof
                                   ? ", so the time is that of passes over memory"
                                   : ", each a pass over memory of its own, at " + where.all.roof_text()),
      .action = std::string("fuse them with neighbouring ops") + (where.may_compile() ? " (torch.compile)" : ""),
      .try_it = std::string(kCompileIt),
      .gain = {0.1, 0.95, kTimesOfReport, Confidence::medium, "fused into a neighbour its bytes need not move"},
      .reference = "ShuffleNet V2 G4, arXiv:1807.11164"};
}

// Returns the highest roof of a type that is narrower than this one; null where none is higher.
const ComputeCeiling* higher_roof(DType dtype, const Ceilings& ceilings) {
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

// Returns code that computes in a narrower type.
std::string try_precision(DType narrower, bool on_cpu) {
  if (narrower == DType::tf32) return "torch.backends.cuda.matmul.fp32_precision = \"tf32\"";
  if (narrower == DType::fp32) return std::string(kToFp32);
  return "with torch.autocast(\"" + std::string(on_cpu ? "cpu" : "cuda") + "\", torch." +
         (narrower == DType::bf16 ? "bfloat16" : "float16") + "): model(x)";
}

// Holds if the arithmetic takes at least half of the op's time and a third of all time. Far from its roof something
// else takes the time; and a model changes its type as a whole, which puts casts between its other ops.
std::optional<Ruling> lower_precision(const FindingCase& where) {
  constexpr double kClearlyHigher = 1.5;
  constexpr double kMostOfOp = 0.5;
  constexpr double kMuchOfAll = 0.33;
  if (where.bucket == nullptr || !where.is_bound(BoundKind::compute) || where.bucket->work.macs == 0)
    return std::nullopt;
  const DType dtype = where.bucket->dtype;
  const Ceilings& ceilings = where.data->roofs;
  const bool wide = dtype == DType::fp64 || dtype == DType::fp32 || dtype == DType::tf32;
  const auto* best = wide && where.ops->bound.resource == name_of(dtype) ? higher_roof(dtype, ceilings) : nullptr;
  const auto takes = [](const Figures& figures, double part) {
    return figures.compute_time_ns.value_or(0) >= part_of(figures.time_ns.value_or(0), part);
  };
  if (best == nullptr || !takes(*where.ops, kMostOfOp) || !takes(*where.total, kMuchOfAll)) return std::nullopt;
  if (!are_weights_worth_a_cast(*where.data)) return std::nullopt;
  const double ratio = best->operations_per_second / ceilings.compute_for(dtype)->operations_per_second;
  if (ratio < kClearlyHigher) return std::nullopt;
  const DType narrower = best->dtype;
  const std::string name(name_of(narrower));
  const std::string code = try_precision(narrower, where.ran_on_cpu());
  const bool autocasts = narrower != DType::tf32 && narrower != DType::fp32;
  return Ruling{
      .at_stake_ns = part_of(where.ops->lower_bound_time_ns.value_or(0), 1 - 1 / ratio),
      .evidence = {{"percent_of_roof", where.all.percent_of_roof}, {"ratio_of_roofs", ratio}},
      .text = "compute-bound in " + std::string(name_of(dtype)) + " at " + where.all.roof_text() +
              ", while the roof of " + name + " is " + number(ratio) + " times as high",
      .action = "try " +
                (autocasts                 ? "autocast to " + name
                 : narrower == DType::tf32 ? code
                                           : name) +
                (where.ran_on_cpu()  // with one thread (docs/findings.md)
                     ? ", which made 13 models that ran as near to it 1.1 to 1.8 times as fast"
                     : ""),
      .try_it = code,
      .gain = {0.1, 1.2, kRoofOfOther, Confidence::medium, "other ops stay in their type, and casts take time"},
      .reference = kMeasured};
}

std::optional<Ruling> at_the_compute_roof(const FindingCase& where) {
  constexpr double kAtRoof = 95;  // where it is at the roof itself, there is nothing to say
  if (!where.is_bound(BoundKind::compute) || where.of_roof() < kNearRoof || where.of_roof() >= kAtRoof)
    return std::nullopt;
  return Ruling{.at_stake_ns = where.time_ns(),
                .evidence = {{"percent_of_roof", where.all.percent_of_roof}},
                .text = "at " + where.all.roof_text() + " of " + where.ops->bound.resource +
                        " little is left to gain from its code",
                .action = "only fewer operations (smaller inputs or layers) or a faster unit help",
                .gain = {0, 0, kLowerBound, Confidence::high, "it runs near the roof"},
                .reference = "Williams et al. 2009, doi:10.1145/1498765.1498785"};
}

constexpr FindingRule kRules[] = {
    {.name = "reordered-channels", .holds = reorders_channels},
    {.name = "older-kernel", .holds = built_for_older},
    {.name = kIdleRule, .holds = device_waits, .about = "the device", .names_modules = false},
    {.name = "exposed-communication",
     .holds = exposed_communication,
     .about = "exposed communication",
     .around_model = true},
    {.name = "data-loading",
     .holds = data_loading,
     .about = "data loading",
     .names_modules = false,
     .around_model = true},
    {.name = "optimizer-op-by-op",
     .holds = optimizer_op_by_op,
     .about = "the optimizer",
     .names_modules = false,
     .around_model = true},
    {.name = "host-sync", .holds = reads_on_host},
    {.name = kOutsideRule, .holds = outside_ops_of_host, .about = "code outside ops", .least_share = 0.2},
    {.name = "double-precision", .holds = double_precision},
    {.name = "made-in-forward", .holds = made_in_forward},
    {.name = "casts", .holds = casts},
    {.name = "joined-in-a-loop", .holds = joins_in_a_loop},
    {.name = "copies", .holds = copies},
    {.name = "attention-op-by-op", .holds = attention_op_by_op},
    {.name = "pooling", .holds = slow_pooling},
    {.name = "misaligned-channels", .holds = misaligned_channels},
    {.name = "channels-last", .holds = channels_first},
    {.name = "depthwise-convolution", .holds = depthwise_convolution},
    {.name = "grouped-convolution", .holds = grouped_convolution},
    {.name = "tensor-core-multiples", .holds = off_multiples},
    {.name = "far-from-roof", .holds = far_from_roof, .each_op_alone = true},
    // A larger batch changes all other ops, too: vgg11, whose linear layers take an eighth of its time, took longer for
    // an image in a batch of 8. So the rule holds only for a large part of the time.
    {.name = "weights-read-again", .holds = weights_again, .least_share = 0.25, .calls_less_often = true},
    {.name = "unequal-channels", .holds = unequal_channels},
    {.name = "element-wise", .holds = elementwise},
    {.name = "lower-precision", .holds = lower_precision},
    {.name = kShortCalls, .holds = short_calls, .least_share = 0.2},
    // A change of code cannot help here, so the rule holds only for a large part of the time.
    {.name = "compute-bound", .holds = at_the_compute_roof, .least_share = 0.25},
};

}  // namespace

std::span<const FindingRule> finding_rules() { return kRules; }

}  // namespace roofprof
