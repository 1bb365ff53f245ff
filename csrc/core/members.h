#pragma once
// The members of observed data, named once: whatever writes it or reads it walks these lists.

#include <string>
#include <utility>
#include <variant>

#include "core/ceiling_members.h"
#include "core/collective_members.h"
#include "core/event_members.h"
#include "core/member_list.h"
#include "core/profile_data.h"

namespace roofprof {

template <class Visitor>
void for_each_member(Of<Note>, Visitor&& visit) {
  visit("level", &Note::level, Written::always);
  visit("code", &Note::code, Written::always);
  visit("where", &Note::where, Written::always);
  visit("text", &Note::text, Written::always);
  visit("count", &Note::count, Written::always);
}

// ---- modules and ops

template <class Visitor>
void for_each_member(Of<Module>, Visitor&& visit) {
  visit("path", &Module::path, Written::always);
  visit("type", &Module::type, Written::always);
  visit("source", &Module::source, Written::unless_default);
  visit("parent", &Module::parent, Written::unless_default);
  visit("has_forward", &Module::has_forward, Written::unless_default);
  visit("calls_visible", &Module::calls_visible, Written::unless_default);
  visit("forward_of_torch", &Module::forward_of_torch, Written::unless_default);
  visit("parameters_read", &Module::parameters_read, Written::unless_default);
  visit("parameters_tied", &Module::parameters_tied, Written::unless_default);
  visit("inferred", &Module::inferred, Written::unless_default);
  visit("same_as", &Module::same_as, Written::unless_default);
  visit("compiled_region", &Module::compiled_region, Written::unless_default);
  visit("params_known", &Module::params_known, Written::unless_default);
  visit("params", &Module::params, Written::unless_default);
  visit("trainable_params", &Module::trainable_params, Written::unless_default);
  visit("param_bytes", &Module::param_bytes, Written::unless_default);
  visit("buffer_bytes", &Module::buffer_bytes, Written::unless_default);
  visit("input_shapes", &Module::input_shapes, Written::unless_default);
  visit("output_shapes", &Module::output_shapes, Written::unless_default);
  visit("output_bytes", &Module::output_bytes, Written::unless_default);
  visit("peak_memory", &Module::peak_memory, Written::unless_default);
  visit("kept_memory", &Module::kept_memory, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<Work>, Visitor&& visit) {
  visit("macs", &Work::macs, Written::always);
  visit("causal_macs", &Work::causal_macs, Written::always);
  visit("operations", &Work::operations, Written::always);
  visit("read_bytes", &Work::read_bytes, Written::always);
  visit("write_bytes", &Work::write_bytes, Written::always);
  visit("updated_bytes", &Work::updated_bytes, Written::unless_default);
  visit("input_elements", &Work::input_elements, Written::unless_default);
  visit("output_elements", &Work::output_elements, Written::unless_default);
  visit("lower_limit", &Work::lower_limit, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<ReusedBytes>, Visitor&& visit) {
  visit("distance_bytes", &ReusedBytes::distance_bytes, Written::always);
  visit("read_bytes", &ReusedBytes::read_bytes, Written::unless_default);
  visit("write_bytes", &ReusedBytes::write_bytes, Written::unless_default);
  visit("updated_bytes", &ReusedBytes::updated_bytes, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<Crossing>, Visitor&& visit) {
  visit("levels", &Crossing::levels, Written::unless_default);
  visit("read_bytes", &Crossing::read_bytes, Written::unless_default);
  visit("write_bytes", &Crossing::write_bytes, Written::unless_default);
  visit("unread_bytes", &Crossing::unread_bytes, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<CountedBytes>, Visitor&& visit) {
  visit("dram_bytes", &CountedBytes::dram_bytes, Written::always);
  visit("dram_read_bytes", &CountedBytes::dram_read_bytes, Written::unless_default);
  visit("dram_write_bytes", &CountedBytes::dram_write_bytes, Written::unless_default);
  visit("uncounted_bytes", &CountedBytes::uncounted_bytes, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<OpBucket>, Visitor&& visit) {
  visit("op", &OpBucket::op, Written::always);
  visit_owner(&OpBucket::owner, Written::unless_default, visit);
  visit("dtype", &OpBucket::dtype, Written::always);
  visit("shapes", &OpBucket::shapes, Written::unless_default);
  visit("costed", &OpBucket::costed, Written::unless_default);
  visit("calls", &OpBucket::calls, Written::always);
  visit("work", &OpBucket::work, Written::always);
  visit("time_ns", &OpBucket::time_ns, Written::unless_default);
  visit("time_low_ns", &OpBucket::time_low_ns, Written::unless_default);
  visit("time_high_ns", &OpBucket::time_high_ns, Written::unless_default);
  visit("floor_ns", &OpBucket::floor_ns, Written::unless_default);
  visit("link_bytes", &OpBucket::link_bytes, Written::unless_default);
  visit("off_device", &OpBucket::off_device, Written::unless_default);
  visit("reuse", &OpBucket::reuse, Written::unless_default);
  visit("counted", &OpBucket::counted, Written::unless_default);
  visit("crossings", &OpBucket::crossings, Written::unless_default);
  visit("channels_first", &OpBucket::channels_first, Written::unless_default);
  visit("fused", &OpBucket::fused, Written::unless_default);
  visit("code", &OpBucket::code, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<AliveMemory>, Visitor&& visit) {
  visit("category", &AliveMemory::category, Written::always);
  visit("module", &AliveMemory::module, Written::always);
  visit("phase", &AliveMemory::phase, Written::always);
  visit("before", &AliveMemory::before, Written::unless_default);
  visit("storages", &AliveMemory::storages, Written::always);
  visit("bytes", &AliveMemory::bytes, Written::always);
}

template <class Visitor>
void for_each_member(Of<MemoryPoint>, Visitor&& visit) {
  visit("bytes", &MemoryPoint::bytes, Written::always);
  visit("module", &MemoryPoint::module, Written::always);
  visit("phase", &MemoryPoint::phase, Written::always);
}

template <class Visitor>
void for_each_member(Of<MemoryTimeline>, Visitor&& visit) {
  visit("ops_per_point", &MemoryTimeline::ops_per_point, Written::always);
  visit("peak_point", &MemoryTimeline::peak_point, Written::always);
  visit("points", &MemoryTimeline::points, Written::always);
}

template <class Visitor>
void for_each_member(Of<RegionPath>, Visitor&& visit) {
  visit("name", &RegionPath::name, Written::always);
  visit("parent", &RegionPath::parent, Written::unless_default);
  visit("calls", &RegionPath::calls, Written::always);
  visit("wall_ns", &RegionPath::wall_ns, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<TokenCalls>, Visitor&& visit) {
  visit("region", &TokenCalls::region, Written::always);
  visit("calls", &TokenCalls::calls, Written::always);
  visit("sequences", &TokenCalls::sequences, Written::always);
  visit("tokens", &TokenCalls::tokens, Written::always);
  visit("least_context", &TokenCalls::least_context, Written::always);
  visit("most_context", &TokenCalls::most_context, Written::always);
  visit("cache_bytes", &TokenCalls::cache_bytes, Written::always);
  visit("weight_bytes", &TokenCalls::weight_bytes, Written::always);
}

template <class Visitor>
void for_each_member(Of<KernelPart>, Visitor&& visit) {
  visit("module", &KernelPart::module, Written::always);
  visit("share", &KernelPart::share, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<CompiledKernel>, Visitor&& visit) {
  visit("name", &CompiledKernel::name, Written::always);
  visit("id", &CompiledKernel::id, Written::unless_default);
  visit_owner(&CompiledKernel::owner, Written::unless_default, visit);
  visit("attributed", &CompiledKernel::attributed, Written::unless_default);
  visit("ops", &CompiledKernel::ops, Written::unless_default);
  visit("parts", &CompiledKernel::parts, Written::unless_default);
  visit("code", &CompiledKernel::code, Written::unless_default);
  visit("source", &CompiledKernel::source, Written::unless_default);
  visit("costed", &CompiledKernel::costed, Written::unless_default);
  visit("work", &CompiledKernel::work, Written::always);
  visit("unfused_bytes", &CompiledKernel::unfused_bytes, Written::unless_default);
  visit("instances", &CompiledKernel::instances, Written::always);
  visit("total_ns", &CompiledKernel::total_ns, Written::always);
  visit("min_ns", &CompiledKernel::min_ns, Written::unless_default);
  visit("max_ns", &CompiledKernel::max_ns, Written::unless_default);
  visit("median_ns", &CompiledKernel::median_ns, Written::unless_default);
  visit("stddev_ns", &CompiledKernel::stddev_ns, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<ModuleTime>, Visitor&& visit) {
  visit_owner(&ModuleTime::owner, Written::unless_default, visit);
  visit("calls", &ModuleTime::calls, Written::unless_default);
  visit("self_ns", &ModuleTime::self_ns, Written::unless_default);
  visit("host_self_ns", &ModuleTime::host_self_ns, Written::unless_default);
}

// ---- on a device

template <class Visitor>
void for_each_member(Of<KernelBucket>, Visitor&& visit) {
  visit("name", &KernelBucket::name, Written::always);
  visit("kind", &KernelBucket::kind, Written::always);
  visit("from", &KernelBucket::from, Written::unless_default);
  visit("to", &KernelBucket::to, Written::unless_default);
  visit("device", &KernelBucket::device, Written::unless_default);
  visit("grid", &KernelBucket::grid, Written::unless_default);
  visit("block", &KernelBucket::block, Written::unless_default);
  visit("in_graph", &KernelBucket::in_graph, Written::unless_default);
  visit_owner(&KernelBucket::owner, Written::unless_default, visit);
  visit("op", &KernelBucket::op, Written::unless_default);
  visit("bucket", &KernelBucket::bucket, Written::unless_default);
  visit("compiled", &KernelBucket::compiled, Written::unless_default);
  visit("attributed", &KernelBucket::attributed, Written::unless_default);
  visit("instances", &KernelBucket::instances, Written::always);
  visit("total_ns", &KernelBucket::total_ns, Written::always);
  visit("min_ns", &KernelBucket::min_ns, Written::unless_default);
  visit("max_ns", &KernelBucket::max_ns, Written::unless_default);
  visit("median_ns", &KernelBucket::median_ns, Written::unless_default);
  visit("stddev_ns", &KernelBucket::stddev_ns, Written::unless_default);
  visit("bytes", &KernelBucket::bytes, Written::unless_default);
  visit("counters", &KernelBucket::counters, Written::unless_default);
  visit("counted", &KernelBucket::counted, Written::unless_default);
  visit("mismatched", &KernelBucket::mismatched, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<DeviceTime>, Visitor&& visit) {
  visit("module", &DeviceTime::module, Written::always);
  visit("busy_ns", &DeviceTime::busy_ns, Written::always);
  visit("idle_ns", &DeviceTime::idle_ns, Written::always);
  visit("self_busy_ns", &DeviceTime::self_busy_ns, Written::always);
}

template <class Visitor>
void for_each_member(Of<ModuleCounters>, Visitor&& visit) {
  visit_owner(&ModuleCounters::owner, Written::unless_default, visit);
  visit("counters", &ModuleCounters::counters, Written::always);
}

template <class Visitor>
void for_each_member(Of<CounterSource>, Visitor&& visit) {
  visit("counter", &CounterSource::counter, Written::always);
  visit("metrics", &CounterSource::metrics, Written::unless_default);
  visit("formula", &CounterSource::formula, Written::unless_default);
  visit("missing", &CounterSource::missing, Written::unless_default);
}

// ---- what a collector recorded

template <class Visitor>
void for_each_member(Of<KernelRecord>, Visitor&& visit) {
  visit("kind", &KernelRecord::kind, Written::always);
  visit("name", &KernelRecord::name, Written::always);
  visit("device", &KernelRecord::device, Written::always);
  visit("to_device", &KernelRecord::to_device, Written::always);
  visit("stream", &KernelRecord::stream, Written::always);
  visit("correlation", &KernelRecord::correlation, Written::always);
  visit("graph_node", &KernelRecord::graph_node, Written::always);
  visit("launch", &KernelRecord::launch, Written::always);
  visit("start_ns", &KernelRecord::start_ns, Written::always);
  visit("end_ns", &KernelRecord::end_ns, Written::always);
  visit("grid", &KernelRecord::grid, Written::always);
  visit("block", &KernelRecord::block, Written::always);
  visit("from", &KernelRecord::from, Written::always);
  visit("to", &KernelRecord::to, Written::always);
  visit("bytes", &KernelRecord::bytes, Written::always);
}

template <class Visitor>
void for_each_member(Of<OthersWork>, Visitor&& visit) {
  visit("device", &OthersWork::device, Written::always);
  visit("start_ns", &OthersWork::start_ns, Written::always);
  visit("end_ns", &OthersWork::end_ns, Written::always);
}

template <class Visitor>
void for_each_member(Of<DeviceTrace>, Visitor&& visit) {
  visit("start_ns", &DeviceTrace::start_ns, Written::unless_default);
  visit("end_ns", &DeviceTrace::end_ns, Written::unless_default);
  visit("dropped", &DeviceTrace::dropped, Written::unless_default);
  visit("incomplete", &DeviceTrace::incomplete, Written::unless_default);
  visit("foreign", &DeviceTrace::foreign, Written::unless_default);
  visit("notes", &DeviceTrace::notes, Written::unless_default);
  visit("names", &DeviceTrace::names, Written::always);
  visit("records", &DeviceTrace::records, Written::always);
  visit("others", &DeviceTrace::others, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<CounterRecord>, Visitor&& visit) {
  visit("range", &CounterRecord::range, Written::always);
  visit("values", &CounterRecord::values, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<CounterTrace>, Visitor&& visit) {
  visit("chip", &CounterTrace::chip, Written::unless_default);
  visit("ranges", &CounterTrace::ranges, Written::always);
  visit("dropped", &CounterTrace::dropped, Written::unless_default);
  visit("passes", &CounterTrace::passes, Written::unless_default);
  visit("notes", &CounterTrace::notes, Written::unless_default);
  visit("sources", &CounterTrace::sources, Written::unless_default);
  visit("records", &CounterTrace::records, Written::always);
}

// ---- of several ranks

template <class Visitor>
void for_each_member(Of<Rank>, Visitor&& visit) {
  visit("rank", &Rank::rank, Written::always);
  visit("host", &Rank::host, Written::unless_default);
  visit("device", &Rank::device, Written::always);
  visit("model", &Rank::model, Written::always);
  visit("partial", &Rank::partial, Written::unless_default);
  visit("steps", &Rank::steps, Written::unless_default);
  visit("wall_ns", &Rank::wall_ns, Written::unless_default);
  visit("step_ns", &Rank::step_ns, Written::unless_default);
  visit("step_spread", &Rank::step_spread, Written::unless_default);
  visit("time_ns", &Rank::time_ns, Written::unless_default);
  visit("compute_ns", &Rank::compute_ns, Written::unless_default);
  visit("communication_ns", &Rank::communication_ns, Written::unless_default);
  visit("exposed_ns", &Rank::exposed_ns, Written::unless_default);
  visit("waiting_ns", &Rank::waiting_ns, Written::unless_default);
  visit("idle_ns", &Rank::idle_ns, Written::unless_default);
  visit("lower_bound_ns", &Rank::lower_bound_ns, Written::unless_default);
  visit("percent_of_roof", &Rank::percent_of_roof, Written::unless_default);
  visit("peak_memory", &Rank::peak_memory, Written::unless_default);
  visit("incomplete", &Rank::incomplete, Written::unless_default);
  visit("macs", &Rank::macs, Written::always);
  visit("flops", &Rank::flops, Written::always);
  visit("bytes", &Rank::bytes, Written::always);
}

template <class Visitor>
void for_each_member(Of<TimeOverRanks>, Visitor&& visit) {
  visit("ranks", &TimeOverRanks::ranks, Written::always);
  visit("min_ns", &TimeOverRanks::min_ns, Written::always);
  visit("median_ns", &TimeOverRanks::median_ns, Written::always);
  visit("max_ns", &TimeOverRanks::max_ns, Written::always);
  visit("mean_ns", &TimeOverRanks::mean_ns, Written::always);
  visit("slowest", &TimeOverRanks::slowest, Written::always);
}

template <class Visitor>
void for_each_member(Of<ModuleOverRanks>, Visitor&& visit) {
  visit("module", &ModuleOverRanks::module, Written::always);
  visit("time", &ModuleOverRanks::time, Written::always);
}

template <class Visitor>
void for_each_member(Of<KeptReport>, Visitor&& visit) {
  visit("rank", &KeptReport::rank, Written::always);
  visit("json", &KeptReport::json, Written::always);
}

template <class Visitor>
void for_each_member(Of<MergedRanks>, Visitor&& visit) {
  visit("ranks", &MergedRanks::ranks, Written::always);
  visit("missing", &MergedRanks::missing, Written::unless_default);
  visit("total", &MergedRanks::total, Written::unless_default);
  visit("modules", &MergedRanks::modules, Written::always);
  visit("kept", &MergedRanks::kept, Written::unless_default);
}

// ---- all of it

template <class Visitor>
void for_each_member(Of<AfterSteps>, Visitor&& visit) {
  visit("wall_ns", &AfterSteps::wall_ns, Written::always);
  visit("work", &AfterSteps::work, Written::always);
}

template <class Visitor>
void for_each_member(Of<Runs>, Visitor&& visit) {
  visit("total_ns", &Runs::total_ns, Written::always);
  visit("chosen", &Runs::chosen, Written::always);
  visit("bare_ns", &Runs::bare_ns, Written::always);
  visit("warmup", &Runs::warmup, Written::always);
  visit("steps", &Runs::steps, Written::always);
  visit("step_ns", &Runs::step_ns, Written::unless_default);
  visit("after_steps", &Runs::after_steps, Written::unless_default);
  visit("beside_others", &Runs::beside_others, Written::unless_default);
}

// The keys that say of which kind a profile is: texts, empty where it is of another kind, and a struct that is left out
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
template <class Kind>
struct PredictionKey {
  Kind& kind;
  std::string text() const {
    const auto* predicted = std::get_if<Predicted>(&kind);
    return predicted == nullptr ? "" : words_of(*predicted);
  }
  void set(const std::string& text) const { replace_kind(kind, options_in_words(text)); }
  bool operator==(const PredictionKey& other) const { return text() == other.text(); }
};
template <class Kind>
PredictionKey(Kind&) -> PredictionKey<Kind>;
template <class Kind>
struct MergedKey {
  Kind& kind;
  const MergedRanks* merged() const { return std::get_if<MergedRanks>(&kind); }
  void set(MergedRanks merged) const { replace_kind(kind, std::move(merged)); }
  bool operator==(const MergedKey& other) const {
    return merged() == nullptr || other.merged() == nullptr ? merged() == other.merged() : *merged() == *other.merged();
  }
};
template <class Kind>
MergedKey(Kind&) -> MergedKey<Kind>;

template <class Visitor>
void for_each_member(Of<ProfileData>, Visitor&& visit) {
  visit("model", &ProfileData::model, Written::always);
  visit("device", &ProfileData::device, Written::always);
  visit("scope", &ProfileData::mode, Written::always);
  visit("within", [](auto& data) { return TextKey{data.part}; }, Written::unless_default);
  visit("imported", [](auto& data) { return TextKey{data.imported}; }, Written::unless_default);
  visit("prediction", [](auto& data) { return PredictionKey{data.kind}; }, Written::unless_default);
  visit("partial", &ProfileData::partial, Written::always);
  visit("bypass_sought", &ProfileData::bypass_sought, Written::unless_default);
  visit("common_error", &ProfileData::common_error, Written::unless_default);
  visit("crossings_known", &ProfileData::crossings_known, Written::unless_default);
  visit("device_timed", &ProfileData::device_timed, Written::always);
  visit("busy_ns", &ProfileData::busy_ns, Written::always);
  visit("idle_before_ns", &ProfileData::idle_before_ns, Written::unless_default);
  visit("idle_after_ns", &ProfileData::idle_after_ns, Written::unless_default);
  visit("idle_basis", &ProfileData::idle_basis, Written::unless_default);
  visit("observing_ns", &ProfileData::observing_ns, Written::unless_default);
  visit("compute_capability", &ProfileData::compute_capability, Written::always);
  visit("peak_memory", &ProfileData::peak_memory, Written::unless_default);
  visit("collectives", &ProfileData::collectives, Written::unless_default);
  visit("merged", [](auto& data) { return MergedKey{data.kind}; }, Written::unless_default);
  visit("counter_ranges", &ProfileData::counter_ranges, Written::always);
  visit("counter_passes", &ProfileData::counter_passes, Written::always);
  visit("environment", &ProfileData::environment, Written::always);
  visit("ceilings", &ProfileData::ceilings, Written::always);
  visit("runs", &ProfileData::runs, Written::always);
  visit("unobserved", &ProfileData::unobserved, Written::always);
  visit("dropped_records", &ProfileData::dropped_records, Written::always);
  visit("unattributed_kernels", &ProfileData::unattributed_kernels, Written::always);
  visit("notes", &ProfileData::notes, Written::always);
  visit("region_paths", &ProfileData::regions, Written::unless_default);
  visit("token_calls", &ProfileData::token_calls, Written::unless_default);
  visit("modules", &ProfileData::modules, Written::always);
  visit("ops", &ProfileData::ops, Written::always);
  visit("times", &ProfileData::times, Written::always);
  visit("kernel_buckets", &ProfileData::kernels, Written::always);
  visit("compiled_kernels", &ProfileData::compiled_kernels, Written::unless_default);
  visit("device_times", &ProfileData::device_times, Written::always);
  visit("module_counters", &ProfileData::module_counters, Written::always);
  visit("counters", &ProfileData::counters, Written::always);
  visit("alive_at_peak", &ProfileData::alive_at_peak, Written::unless_default);
  visit("memory_timeline", &ProfileData::memory_timeline, Written::unless_default);
  visit("events", &ProfileData::events, Written::unless_default);
}

}  // namespace roofprof
