#include "analysis/advice/program_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "analysis/advice/advice_case.h"
#include "analysis/advice/sentence_figures.h"
#include "analysis/hotspots.h"
#include "analysis/kernel_arch.h"
#include "core/collective_kinds.h"
#include "core/phrases.h"

namespace roofprof::rules {

namespace {

using cases::is_of_cpp;
using cases::may_compile;
using cases::ran_compiled;
using cases::time_of;
using cases::wasted_in;
using sentences::text_of;
using sentences::value_of;

}  // namespace

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
  // Where most of it may be waiting for other ranks, the host's code is not what to look at.
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
         (may_compile(*where.data) ? ", or fuse casts with the ops beside them (torch.compile)" : "");
}

}  // namespace roofprof::rules
