#pragma once
// The members of observed data, named once: whatever writes it or reads it walks these lists.

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/member_list.h"
#include "core/profile.h"
#include "roofprof/ceilings.h"

namespace roofprof {

ROOFPROF_MEMBERS(Note, ALWAYS(level, code, where, text, count))

// ---- modules and ops

ROOFPROF_MEMBERS(Module, ALWAYS(path, type),
                 UNLESS_DEFAULT(source, parent, has_forward, calls_visible, forward_of_torch, parameters_read,
                                parameters_tied, inferred, same_as, compiled_region, params_known, params,
                                trainable_params, param_bytes, buffer_bytes, input_shapes, output_shapes, output_bytes,
                                peak_memory, kept_memory))
ROOFPROF_MEMBERS(Work, ALWAYS(macs, causal_macs, operations, read_bytes, write_bytes),
                 UNLESS_DEFAULT(updated_bytes, input_elements, output_elements, lower_limit))
ROOFPROF_MEMBERS(ReusedBytes, ALWAYS(distance_bytes), UNLESS_DEFAULT(read_bytes, write_bytes, updated_bytes))
ROOFPROF_MEMBERS(Crossing, UNLESS_DEFAULT(levels, read_bytes, write_bytes, unread_bytes))
ROOFPROF_MEMBERS(CountedBytes, ALWAYS(dram_bytes), UNLESS_DEFAULT(dram_read_bytes, dram_write_bytes, uncounted_bytes))
ROOFPROF_MEMBERS(OpBucket, ALWAYS(op), OWNER, ALWAYS(dtype), UNLESS_DEFAULT(shapes, costed), ALWAYS(calls, work),
                 UNLESS_DEFAULT(time_ns, time_low_ns, time_high_ns, floor_ns, link_bytes, off_device, reuse, counted,
                                crossings, channels_first, fused, code))
ROOFPROF_MEMBERS(AliveMemory, ALWAYS(category, module, phase), UNLESS_DEFAULT(before), ALWAYS(storages, bytes))
ROOFPROF_MEMBERS(MemoryPoint, ALWAYS(bytes, module, phase))
ROOFPROF_MEMBERS(MemoryTimeline, ALWAYS(ops_per_point, peak_point, points))
ROOFPROF_MEMBERS(RegionPath, ALWAYS(name), UNLESS_DEFAULT(parent), ALWAYS(calls), UNLESS_DEFAULT(wall_ns))
ROOFPROF_MEMBERS(TokenCalls,
                 ALWAYS(region, calls, sequences, tokens, least_context, most_context, cache_bytes, weight_bytes))
ROOFPROF_MEMBERS(KernelPart, ALWAYS(module), UNLESS_DEFAULT(share))
ROOFPROF_MEMBERS(CompiledKernel, ALWAYS(name), UNLESS_DEFAULT(id), OWNER,
                 UNLESS_DEFAULT(attributed, ops, parts, code, source, costed), ALWAYS(work),
                 UNLESS_DEFAULT(unfused_bytes), ALWAYS(instances, total_ns),
                 UNLESS_DEFAULT(min_ns, max_ns, median_ns, stddev_ns))
ROOFPROF_MEMBERS(ModuleTime, OWNER, UNLESS_DEFAULT(calls, self_ns, host_self_ns))

// ---- on a device

ROOFPROF_MEMBERS(KernelBucket, ALWAYS(name, kind), UNLESS_DEFAULT(from, to, device, grid, block, in_graph), OWNER,
                 UNLESS_DEFAULT(op, bucket, compiled, attributed), ALWAYS(instances, total_ns),
                 UNLESS_DEFAULT(min_ns, max_ns, median_ns, stddev_ns, bytes, counters, counted, mismatched))
ROOFPROF_MEMBERS(DeviceTime, ALWAYS(module, busy_ns, idle_ns, self_busy_ns))
ROOFPROF_MEMBERS(ModuleCounters, OWNER, ALWAYS(counters))
ROOFPROF_MEMBERS(CounterSource, ALWAYS(counter), UNLESS_DEFAULT(metrics, formula, missing))

// ---- what a collector recorded

ROOFPROF_MEMBERS(KernelRecord, ALWAYS(kind, name, device, to_device, stream, correlation, graph_node, launch, start_ns,
                                      end_ns, grid, block, from, to, bytes))
ROOFPROF_MEMBERS(OthersWork, ALWAYS(device, start_ns, end_ns))
ROOFPROF_MEMBERS(DeviceTrace, UNLESS_DEFAULT(start_ns, end_ns, dropped, incomplete, foreign, notes),
                 ALWAYS(names, records), UNLESS_DEFAULT(others))
ROOFPROF_MEMBERS(CounterRecord, ALWAYS(range), UNLESS_DEFAULT(values))
ROOFPROF_MEMBERS(CounterTrace, UNLESS_DEFAULT(chip), ALWAYS(ranges), UNLESS_DEFAULT(dropped, passes, notes, sources),
                 ALWAYS(records))

// ---- events and collectives

ROOFPROF_MEMBERS(Event, ALWAYS(id, kind, thread), OWNER, ALWAYS(name, bucket, begin_ns, end_ns))
ROOFPROF_MEMBERS(LaunchEvent, ALWAYS(kind, name, event, device, stream), OWNER, ALWAYS(bucket, begin_ns, end_ns))
ROOFPROF_MEMBERS(Events, ALWAYS(kept, names, host, device, left_out))

ROOFPROF_MEMBERS(ProcessGroup, ALWAYS(name, backend, ranks), UNLESS_DEFAULT(hosts, members))
ROOFPROF_MEMBERS(CollectiveCall, ALWAYS(collective, sequence, begin_ns, end_ns))
ROOFPROF_MEMBERS(CollectiveBucket, ALWAYS(bucket, group, calls),
                 UNLESS_DEFAULT(timed_calls, time_ns, exposed_ns, exposed_known, waited_calls, wait_ns, transfer_ns,
                                uneven, algorithm))
ROOFPROF_MEMBERS(ExposedIn, ALWAYS(collective), OWNER, ALWAYS(exposed_ns))
ROOFPROF_MEMBERS(CollectiveData, ALWAYS(groups, collectives), UNLESS_DEFAULT(exposed_in, calls, time_ns, exposed_ns))

// ---- of several ranks

ROOFPROF_MEMBERS(Rank, ALWAYS(rank), UNLESS_DEFAULT(host), ALWAYS(device, model),
                 UNLESS_DEFAULT(partial, steps, wall_ns, step_ns, step_spread, time_ns, compute_ns, communication_ns,
                                exposed_ns, waiting_ns, idle_ns, lower_bound_ns, percent_of_roof, peak_memory,
                                incomplete),
                 ALWAYS(macs, flops, bytes))
ROOFPROF_MEMBERS(TimeOverRanks, ALWAYS(ranks, min_ns, median_ns, max_ns, mean_ns, slowest))
ROOFPROF_MEMBERS(ModuleOverRanks, ALWAYS(module, time))
ROOFPROF_MEMBERS(KeptReport, ALWAYS(rank), visit("json", &Self::report, Written::always))
ROOFPROF_MEMBERS(MergedRanks, ALWAYS(ranks), UNLESS_DEFAULT(missing, total), ALWAYS(modules), UNLESS_DEFAULT(kept))

// ---- of another device

ROOFPROF_MEMBERS(Predicted, ALWAYS(mode),
                 UNLESS_DEFAULT(precision, batch, counted_under_autocast, autocast, channels_last, host_seconds,
                                bandwidth, peak, ranks, parallel))

// ---- roofs

ROOFPROF_MEMBERS(Provenance, ALWAYS(source, method, date, spread))
ROOFPROF_MEMBERS(SustainedRate, ALWAYS(operations_per_second, seconds), UNLESS_DEFAULT(clock_hz, power_watts))
ROOFPROF_MEMBERS(FastestWork, ALWAYS(shape), UNLESS_DEFAULT(kernel_name, missing))
ROOFPROF_MEMBERS(ComputeCeiling, ALWAYS(dtype, operations_per_second, provenance), UNLESS_DEFAULT(sustained, fastest))
ROOFPROF_MEMBERS(MemoryCeiling, ALWAYS(level, bytes_per_second, capacity_bytes, provenance),
                 UNLESS_DEFAULT(counted_bytes_per_second))
ROOFPROF_MEMBERS(BandwidthPoint, ALWAYS(working_set_bytes, read, triad, copy, write, update, spread))
ROOFPROF_MEMBERS(BandwidthCurve, ALWAYS(points, provenance))
ROOFPROF_MEMBERS(NetworkCeiling, ALWAYS(collective, backend, ranks, latency_ns, bytes_per_second, provenance))
ROOFPROF_MEMBERS(CardFacts, UNLESS_DEFAULT(compute_capability, multiprocessors, l2_bytes, memory_bytes, tdp_watts, link,
                                           link_bytes_per_second, inline_ecc))
ROOFPROF_MEMBERS(CalibratedNumber, ALWAYS(name, value))
ROOFPROF_MEMBERS(CalibratedClass, ALWAYS(name, kernels, median_error, percentile_90, median_error_before))
ROOFPROF_MEMBERS(Calibration, ALWAYS(source, numbers, classes))
ROOFPROF_MEMBERS(Ceilings, ALWAYS(device, compute, memory),
                 UNLESS_DEFAULT(curve, network, facts, calibration, busy_share))

// ---- all of it

ROOFPROF_MEMBERS(AfterSteps, ALWAYS(wall_ns, work))
ROOFPROF_MEMBERS(Runs, ALWAYS(total_ns, chosen, bare_ns, warmup, steps),
                 UNLESS_DEFAULT(step_ns, after_steps, beside_others))

// ---- a profile: the keys of its parts side by side

// A member of a part that a profile may lack. Setting any value but the default makes the part.
template <class Part, class Member>
struct InMaybe {
  Maybe<Part>& part;
  Member member;
  using Value = std::remove_cvref_t<std::invoke_result_t<Member, const Part&>>;

  // Returns null where the part is not there.
  Value* if_there() const { return part ? &std::invoke(member, part.make()) : nullptr; }
  void set(Value value) const {
    if (value != std::invoke(member, *Maybe<Part>())) std::invoke(member, part.make()) = std::move(value);
  }
};
template <class Part, class Member>
constexpr auto in_maybe(Maybe<Part> Profile::* part, Member member) {
  return [=](auto& profile) -> decltype(auto) {
    if constexpr (std::is_const_v<std::remove_reference_t<decltype(profile)>>) {
      return static_cast<const typename InMaybe<Part, Member>::Value&>(std::invoke(member, *(profile.*part)));
    } else {
      return InMaybe<Part, Member>{profile.*part, member};
    }
  };
}

// A part, as lists of members name it: how a profile's member is made of one of the part's.
template <class Part, class Reach>
struct PartOf {
  using Members = Part;
  Reach reach;

  constexpr auto operator()(auto member) const { return reach(member); }
};
template <class Part, class Reach>
constexpr PartOf<Part, Reach> part_of(Reach reach) {
  return {reach};
}
namespace parts {
inline constexpr auto run = part_of<RunInfo>([](auto member) { return within(&Profile::run, member); });
inline constexpr auto tree = part_of<Tree>([](auto member) { return within(&Profile::tree, member); });
inline constexpr auto counts = part_of<Counts>([](auto member) { return within(&Profile::counts, member); });
inline constexpr auto memory =
    part_of<CountedMemory>([](auto member) { return counts(within(&Counts::memory, member)); });
inline constexpr auto times = part_of<Times>([](auto member) { return in_maybe(&Profile::times, member); });
inline constexpr auto device = part_of<DeviceWork>([](auto member) { return in_maybe(&Profile::device, member); });
inline constexpr auto timeline =
    part_of<DeviceTimeline>([](auto member) { return device(within(&DeviceWork::timeline, member)); });
inline constexpr auto counters =
    part_of<DeviceCounters>([](auto member) { return device(within(&DeviceWork::counters, member)); });
}  // namespace parts

// The keys that say where a profile's figures come from: texts, empty where it is of another kind, and structs that are
// left out there. `Profile` is const where they are written. clang 14 needs the guides.
template <class Holder>
struct TextKey {
  Holder& holder;  // an optional struct of one text
  std::string text() const {
    if (!holder) return "";
    const auto& [text] = *holder;
    return text;
  }
  void set(std::string text) const { holder = typename Holder::value_type{std::move(text)}; }
  bool operator==(const TextKey& other) const { return holder == other.holder; }
};
template <class Holder>
TextKey(Holder&) -> TextKey<Holder>;

// Throws std::invalid_argument where it is of another kind than OneRun already.
inline void set_kind(Origin& origin, std::variant<OneRun, Predicted, MergedRanks> kind) {
  if (!std::holds_alternative<OneRun>(origin.kind)) {
    throw InvalidArgument("a profile is predicted or merged, and this has both 'prediction' and 'merged'");
  }
  origin.kind = std::move(kind);
}
template <class Struct, class Origin>
struct KindKey {
  Origin& origin;
  const Struct* get() const { return std::get_if<Struct>(&origin.kind); }
  void set(Struct of_kind) const { set_kind(origin, std::move(of_kind)); }
  bool operator==(const KindKey& other) const {
    return get() == nullptr || other.get() == nullptr ? get() == other.get() : *get() == *other.get();
  }
};
template <class Struct>
inline constexpr auto kKindKey =
    [](auto& profile) { return KindKey<Struct, std::remove_pointer_t<decltype(&profile.origin)>>{profile.origin}; };
// Times are those of a device's kernels.
template <class Part>
struct DeviceKey {
  Part& device;
  bool there() const { return device.has_value(); }
  void set(bool timed) const {
    if (timed) device.make();
  }
  bool operator==(const DeviceKey& other) const { return there() == other.there(); }
};
template <class Part>
DeviceKey(Part&) -> DeviceKey<Part>;

inline constexpr auto kWithinKey = [](auto& profile) { return TextKey{profile.origin.part}; };
inline constexpr auto kImportedKey = [](auto& profile) { return TextKey{profile.origin.imported}; };
inline constexpr auto kDeviceKey = [](auto& profile) { return DeviceKey{profile.device}; };
// All of it or nothing.
inline constexpr auto kCommsKey = in_maybe(&Profile::comms, std::identity());

ROOFPROF_MEMBERS(Profile, OF(parts::run, always, model, device),
                 visit("scope", parts::run(&RunInfo::mode), Written::always),
                 visit("within", kWithinKey, Written::unless_default),
                 visit("imported", kImportedKey, Written::unless_default),
                 visit("prediction", kKindKey<Predicted>, Written::unless_default), OF(parts::run, always, partial),
                 OF(parts::run, unless_default, bypass_sought), OF(parts::times, unless_default, common_error),
                 OF(parts::counts, unless_default, crossings_known), visit("device_timed", kDeviceKey, Written::always),
                 OF(parts::timeline, always, busy_ns),
                 OF(parts::timeline, unless_default, idle_before_ns, idle_after_ns, idle_basis, observing_ns),
                 OF(parts::device, always, compute_capability),
                 visit("peak_memory", parts::memory(&CountedMemory::peak_bytes), Written::unless_default),
                 visit("collectives", kCommsKey, Written::unless_default),
                 visit("merged", kKindKey<MergedRanks>, Written::unless_default),
                 visit("counter_ranges", parts::counters(&DeviceCounters::ranges), Written::always),
                 visit("counter_passes", parts::counters(&DeviceCounters::passes), Written::always),
                 OF(parts::run, always, environment), visit("ceilings", &Self::roofs, Written::always),
                 OF(parts::run, always, runs), OF(parts::counts, always, unobserved),
                 OF(parts::device, always, dropped_records, unattributed_kernels), ALWAYS(notes),
                 visit("region_paths", parts::tree(&Tree::regions), Written::unless_default),
                 OF(parts::run, unless_default, token_calls), OF(parts::tree, always, modules),
                 OF(parts::counts, always, ops), visit("times", parts::times(&Times::modules), Written::always),
                 visit("kernel_buckets", parts::device(&DeviceWork::kernels), Written::always),
                 OF(parts::times, unless_default, compiled_kernels),
                 visit("device_times", parts::timeline(&DeviceTimeline::modules), Written::always),
                 visit("module_counters", parts::counters(&DeviceCounters::modules), Written::always),
                 visit("counters", parts::counters(&DeviceCounters::sources), Written::always),
                 visit("alive_at_peak", parts::memory(&CountedMemory::alive), Written::unless_default),
                 visit("memory_timeline", parts::memory(&CountedMemory::timeline), Written::unless_default),
                 OF(parts::times, unless_default, events))

// ---- what is derived from it, and written in the same form for every other reader

ROOFPROF_MEMBERS(StepStatistics, ALWAYS(count, mean_ns, median_ns, spread, slowest_ns, slowest_index))
ROOFPROF_MEMBERS(TokenPhase,
                 ALWAYS(name, calls, sequences, tokens, least_context, most_context, weight_bytes, cache_bytes, macs,
                        flops, bytes, intensity, flops_per_token, time_ns, tokens_per_second))
ROOFPROF_MEMBERS(FlopsUtilization, ALWAYS(mfu, hfu, time_ns, time_of))
ROOFPROF_MEMBERS(Finding, ALWAYS(id, rule, module, modules, op, ops, source, bound, text, action, gain_low_ns,
                                 gain_high_ns, basis, confidence, because, try_it, evidence, reference))
ROOFPROF_MEMBERS(UncostedOp, ALWAYS(op, calls, percent_of_time, modules, module_count))
ROOFPROF_MEMBERS(Coverage, ALWAYS(uncosted, uncosted_ops, uncalled_modules, unattributed_kernels, dropped_records,
                                  unobserved, notes))

}  // namespace roofprof
