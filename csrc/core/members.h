#pragma once
// The members of observed data, named once: whatever writes it or reads it walks these lists.

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/member_list.h"
#include "core/profile_data.h"
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
ROOFPROF_MEMBERS(KeptReport, ALWAYS(rank, json))
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

// The keys that say of which kind a profile is: texts, empty where it is of another kind, and structs that are left out
// there. `Kind` is const where they are written. clang 14 needs the guides.
template <class Kind>
struct TextKey {
  Kind& kind;  // an optional struct of one text
  std::string text() const {
    if (!kind) return "";
    const auto& [text] = *kind;
    return text;
  }
  void set(std::string text) const { kind = typename Kind::value_type{std::move(text)}; }
  bool operator==(const TextKey& other) const { return kind == other.kind; }
};
template <class Kind>
TextKey(Kind&) -> TextKey<Kind>;
template <class Struct, class Kind>
struct KindKey {
  Kind& kind;
  const Struct* get() const { return std::get_if<Struct>(&kind); }
  void set(Struct of_kind) const { replace_kind(kind, std::move(of_kind)); }
  bool operator==(const KindKey& other) const {
    return get() == nullptr || other.get() == nullptr ? get() == other.get() : *get() == *other.get();
  }
};
template <class Struct>
inline constexpr auto kKindKey =
    [](auto& data) { return KindKey<Struct, std::remove_reference_t<decltype((data.kind))>>{data.kind}; };

inline constexpr auto kWithinKey = [](auto& data) { return TextKey{data.part}; };
inline constexpr auto kImportedKey = [](auto& data) { return TextKey{data.imported}; };

ROOFPROF_MEMBERS(ProfileData, ALWAYS(model, device), visit("scope", &ProfileData::mode, Written::always),
                 visit("within", kWithinKey, Written::unless_default),
                 visit("imported", kImportedKey, Written::unless_default),
                 visit("prediction", kKindKey<Predicted>, Written::unless_default), ALWAYS(partial),
                 UNLESS_DEFAULT(bypass_sought, common_error, crossings_known), ALWAYS(device_timed, busy_ns),
                 UNLESS_DEFAULT(idle_before_ns, idle_after_ns, idle_basis, observing_ns), ALWAYS(compute_capability),
                 UNLESS_DEFAULT(peak_memory, collectives),
                 visit("merged", kKindKey<MergedRanks>, Written::unless_default),
                 ALWAYS(counter_ranges, counter_passes, environment, ceilings, runs, unobserved, dropped_records,
                        unattributed_kernels, notes),
                 visit("region_paths", &ProfileData::regions, Written::unless_default), UNLESS_DEFAULT(token_calls),
                 ALWAYS(modules, ops, times), visit("kernel_buckets", &ProfileData::kernels, Written::always),
                 UNLESS_DEFAULT(compiled_kernels), ALWAYS(device_times, module_counters, counters),
                 UNLESS_DEFAULT(alive_at_peak, memory_timeline, events))

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
