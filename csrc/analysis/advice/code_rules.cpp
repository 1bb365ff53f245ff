#include "analysis/advice/code_rules.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "analysis/advice/advice_case.h"
#include "analysis/advice/sentence_figures.h"

namespace roofprof::rules {

namespace {

using cases::is_of_cpp;
using cases::kFarFromRoof;
using cases::of_roof;
using cases::ran_on_cpu;
using cases::time_of;
using cases::wasted_in;
using sentences::percent_of_roof;
using sentences::text_of_microseconds;
using sentences::value_of;

bool is_in_module(const AdviceCase& where, const OpBucket& bucket) {
  return where.data->modules[index_of(bucket.owner.module)].path == *where.ops->module;
}

bool is_product(std::string_view op) { return op == "aten::matmul" || op == "aten::bmm" || op == "aten::baddbmm"; }

double call_ns(const AdviceCase& where) {
  return static_cast<double>(time_of(where)) / static_cast<double>(where.ops->calls);
}

}  // namespace

// ---- attention

namespace {

constexpr std::string_view kAttention = "aten::scaled_dot_product_attention";

// Of the fused path softmax's backward is no op of its own. Without a backward its distance from what the rest of the
// model reaches tells.
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

}  // namespace

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

namespace {

// Where all is far from the roofs, something else is slow: a machine that others use, or a model of short calls.
constexpr double kOthersReach = 20;
constexpr double kLongCall = 20e3;        // ns, on the host
constexpr double kLongDeviceCall = 10e3;  // ns

}  // namespace

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
  // With one thread (docs/advice.md).
  return "on images in channels first, at " + percent_of_roof(figures) + ": try " + to +
         ", which made 13 networks of convolutions 1.0 to 1.8 times as fast";
}

}  // namespace roofprof::rules
