// Every public name: it compiles as long as programs that use them do. A name of a release that goes gets a deprecated
// alias and moves to the end of this file (docs/cpp.md promises it). No header of torch is included, so that it
// compiles quickly; user.cpp has what needs one.

#include <roofprof/ceilings.h>
#include <roofprof/collectives.h>
#include <roofprof/counters.h>
#include <roofprof/dtype.h>
#include <roofprof/error.h>
#include <roofprof/kinds.h>
#include <roofprof/note.h>
#include <roofprof/op_call.h>
#include <roofprof/op_costs.h>
#include <roofprof/prediction.h>
#include <roofprof/profiler.h>
#include <roofprof/ranks.h>
#include <roofprof/report.h>
#include <roofprof/rows.h>
#include <roofprof/scope.h>
#include <roofprof/version.h>
#include <roofprof/work.h>

#include <iostream>
#include <string>
#include <vector>

namespace roofprof {

template <class... Values>
void use(const Values&... /*values*/) {}

void names_of(const BandwidthCurve& x, const MemoryTraffic& traffic) {
  use(x.points, x.provenance, x.bytes_per_second(traffic), x.bytes_per_second(traffic, 1), x.empty(), x.spread_at(1));
}
void names_of(const BandwidthPoint& x) {
  use(x.copy, x.read, x.spread, x.triad, x.update, x.working_set_bytes, x.write);
}
void names_of(const CalibratedClass& x) {
  use(x.kernels, x.median_error, x.median_error_before, x.name, x.percentile_90);
}
void names_of(const CalibratedNumber& x) { use(x.name, x.value); }
void names_of(const Calibration& x) { use(x.classes, x.numbers, x.source); }
void names_of(const CardFacts& x) {
  use(x.compute_capability, x.inline_ecc, x.l2_bytes, x.link, x.link_bytes_per_second, x.memory_bytes,
      x.multiprocessors, x.tdp_watts);
}
void names_of(const Ceilings& x, const MemoryTraffic& traffic) {
  use(x.busy_share, x.calibration, x.compute, x.curve, x.device, x.facts, x.memory, x.network,
      x.compute_for(DType::fp32), x.empty(), x.memory_for(1), x.memory_level(kHostLink), x.memory_roof(traffic),
      x.memory_roof(traffic, 1));
}
void names_of(const ComputeCeiling& x) { use(x.dtype, x.operations_per_second, x.provenance, x.sustained, x.fastest); }
void names_of(const FastestWork& x) { use(x.kernel_name, x.missing, x.shape); }
void names_of(const SustainedRate& x) { use(x.clock_hz, x.operations_per_second, x.power_watts, x.seconds); }
void names_of(const MemoryCeiling& x) {
  use(x.bytes_per_second, x.capacity_bytes, x.counted_bytes_per_second, x.level, x.provenance);
}
void names_of(const MemoryRoof& x) { use(x.bytes_per_second, x.level, x.spread); }
void names_of(const MemoryTraffic& x) { use(x.read_bytes, x.updated_bytes, x.write_bytes, x.footprint_bytes()); }
void names_of(const NetworkCeiling& x) {
  use(x.backend, x.bytes_per_second, x.collective, x.latency_ns, x.provenance, x.ranks);
}
void names_of(const Provenance& x) { use(x.date, x.method, x.source, x.spread); }
void names_of(const Collective& x) {
  use(x.algorithm, x.algorithm_bandwidth, x.backend, x.bound, x.bus_bandwidth, x.bytes, x.calls, x.direct_bytes,
      x.dtype, x.exposed_ns, x.group, x.hosts, x.lower_bound_ns, x.module, x.name, x.op, x.percent_of_roof, x.phase,
      x.ranks, x.ring_bytes, x.shapes, x.time_ns, x.timed_calls, x.transfer_ns, x.tree_bytes, x.wait_ns, x.wasted_ns,
      x.wire_bytes, x.dtype_name(), x.known_hosts(), x.known_ranks(), x.phase_name());
}
void names_of(const Note& x) { use(x.code, x.count, x.level, x.text, x.where); }
void names_of(const ops::Argument& x) {
  use(x.keyword_only, x.kind, x.name, x.scalar, x.tensors, x.unknown, x.written);
}
void names_of(const OpCall& x) {
  use(x.arguments, x.declared_scalars, x.name, x.overload, x.results, x.trait, x.boolean("", false), x.compute_dtype(),
      x.find_tensor(""), x.has_argument(""), x.has_result(0), x.integer("", 0), x.integers(""), x.number("", 0.0),
      x.numbers(""), x.result(0), x.tensor(""), x.tensor(0), x.tensors(""), x.text(""));
}
void names_of(const TensorDesc& x) {
  use(x.channels_last, x.components, x.dtype, x.element_type, x.expanded, x.index_bytes, x.is_complex, x.item_bytes,
      x.place, x.repeated, x.sizes, x.stored, x.dim(), x.held_bytes(), x.held_numel(), x.is_known(), x.is_nested(),
      x.is_sparse(), x.numel(), x.size(0), x.stored_numel());
}
void names_of(const PredictionOptions& x) {
  use(x.autocast, x.bandwidth, x.batch, x.channels_last, x.host_seconds, x.mode, x.parallel, x.peak, x.precision,
      x.ranks);
}
void names_of(const ProfilerOptions& x) {
  use(x.ceilings, x.counters, x.depth, x.device, x.progress, x.repeat, x.threads, x.warmup);
}
void names_of(const Rank& x) {
  use(x.bytes, x.communication_ns, x.compute_ns, x.device, x.exposed_ns, x.flops, x.host, x.idle_ns, x.incomplete,
      x.lower_bound_ns, x.macs, x.model, x.partial, x.peak_memory, x.percent_of_roof, x.rank, x.step_ns, x.step_spread,
      x.steps, x.time_ns, x.waiting_ns, x.wall_ns, x.known_steps());
}
void names_of(const Coverage& x) {
  use(x.dropped_records, x.notes, x.unattributed_kernels, x.uncalled_modules, x.uncosted, x.uncosted_ops, x.unobserved);
}
void names_of(const Report& x) {
  use(x.bare_times(), x.bare_times_ns(), x.brief(), x.by_module(), x.by_phase(), x.ceilings(), x.collectives(),
      x.coverage(), x.environment(), x.findings(), x.flops_utilization(), x.group({"op"}), x.group({By::phase, "op"}),
      x.group(std::vector<std::string>{"op"}), x.kernels(), x.language_model(), x.markdown(),
      x.markdown(TableOptions{}), x.memory_at_peak(), x.memory_timeline(), x.missing_ranks(), x.parents(), x.partial(),
      x.predict(x.ceilings()), x.predict(x.ceilings(), PredictionOptions{}), x.prediction(), x.ranks(), x.regions(),
      x.report_of_rank(0), x.row(""), x.rows(), x.run_times(), x.run_times_ns(), x.siblings(), x.step_statistics(),
      x.step_times(), x.step_times_ns(), x.steps(), x.table(), x.table(TableOptions{}), x.to_csv(), x.to_csv("module"),
      x.to_csv(By::op), x.to_json(), x.total(), x.within(""), x.by_operator(), x.by_module_and_operator());
}
void names_of(const StepStatistics& x) {
  use(x.count, x.mean_ns, x.median_ns, x.slowest_index, x.slowest_ns, x.spread);
}
void names_of(const TableOptions& x) {
  use(x.by, x.columns, x.depth, x.expand, x.legend, x.limit, x.rows_only, x.sort, x.speech, x.width);
}
void names_of(const UncostedOp& x) { use(x.calls, x.module_count, x.modules, x.op, x.percent_of_time); }
void names_of(const Bound& x) { use(x.kind, x.resource); }
void names_of(const Figures& x) {
  use(x.achieved_bandwidth, x.achieved_flops, x.attainable, x.bound, x.busy_ns, x.bytes, x.causal_macs,
      x.compute_time_ns, x.dram_bandwidth, x.dram_bytes, x.dram_bytes_ratio, x.dram_intensity, x.dram_read_bytes,
      x.dram_read_ratio, x.dram_write_bytes, x.dram_write_ratio, x.executed_flops, x.flops, x.host_time_ns, x.idle_ns,
      x.incomplete, x.int_ops, x.intensity, x.kernel_count, x.l1_bytes, x.l1_intensity, x.l2_bytes, x.l2_intensity,
      x.lower_bound_time_ns, x.macs, x.memory_time_ns, x.op_time_ns, x.operations_by_dtype, x.percent_of_roof,
      x.percent_of_roof_counted, x.read_bytes, x.time_high_ns, x.time_low_ns, x.time_ns, x.time_spread, x.utilization,
      x.wall_ns, x.wasted_time_ns, x.write_bytes, x.busy(), x.compute_time(), x.counts_integers(), x.figure(""),
      x.host_time(), x.idle(), x.leading_operations(), x.lower_bound_time(), x.memory_time(), x.op_time(), x.time(),
      x.time_high(), x.time_low(), x.wall(), x.wasted_time());
}
void names_of(const Finding& x) {
  use(x.action, x.basis, x.because, x.bound, x.confidence, x.evidence, x.gain_high_ns, x.gain_low_ns, x.id, x.module,
      x.modules, x.op, x.ops, x.reference, x.rule, x.source, x.text, x.try_it, x.gain_high(), x.gain_low());
}
void names_of(const FlopsUtilization& x) { use(x.hfu, x.mfu, x.time_ns, x.time_of); }
void names_of(const GroupRow& x) {
  use(x.calls, x.dtype, x.input_elements, x.keys, x.module, x.op, x.output_elements, x.percent_of_time, x.phase,
      x.scope, x.shapes, x.work_elsewhere, x.figure(""));
}
void names_of(const KernelRow& x) {
  use(x.achieved_flops, x.average_ns, x.block, x.bound, x.built_for, x.bytes, x.code, x.copied, x.device,
      x.dram_bandwidth, x.dram_bytes, x.dram_intensity, x.executed_flops, x.flops, x.fused, x.grid, x.in_graph,
      x.incomplete, x.instances, x.intensity, x.kind, x.l1_bytes, x.l1_intensity, x.l2_bytes, x.l2_intensity,
      x.lower_bound_time_ns, x.max_ns, x.median_ns, x.min_ns, x.module, x.modules, x.name, x.op, x.percent_of_roof,
      x.percent_of_time, x.phase, x.scope, x.shared, x.source, x.stddev_ns, x.total_ns, x.unfused_bytes, x.average(),
      x.figure(""), x.kind_name(), x.max(), x.median(), x.min(), x.phase_name(), x.stddev(), x.total());
}
void names_of(const MemoryMoment& x) { use(x.bytes, x.first_op, x.is_peak, x.module, x.phase, x.phase_name()); }
void names_of(const MemoryRow& x) {
  use(x.before, x.bytes, x.category, x.module, x.percent_of_all, x.phase, x.phase_name(), x.storages);
}
void names_of(const RooflineRow& x) {
  use(x.buffer_bytes, x.calls, x.communication_ns, x.depth, x.exposed_communication_ns, x.fused_bound_time_ns,
      x.fused_bytes, x.hidden_communication_ns, x.idle_after_ns, x.idle_before_ns, x.idle_between_ns, x.imbalance,
      x.inferred, x.input_shapes, x.kept_memory, x.output_bytes, x.output_shapes, x.param_bytes, x.params,
      x.params_known, x.path, x.peak_memory, x.percent_of_fused, x.self, x.shared_time_ns, x.slowest_rank,
      x.time_max_ns, x.time_median_ns, x.time_min_ns, x.trainable_params, x.type, x.work_share, x.figure(""),
      x.known_buffer_bytes(), x.known_param_bytes(), x.known_params(), x.known_trainable_params(), x.idle_after(),
      x.idle_before(), x.idle_between());
}
void names_of(const Siblings& x) {
  use(x.count, x.name, x.paths, x.rows, x.slowest, x.slowest_ratio, x.spread, x.mean());
}
void names_of(const TokenPhase& x) {
  use(x.bytes, x.cache_bytes, x.calls, x.flops, x.flops_per_token, x.intensity, x.least_context, x.macs, x.most_context,
      x.name, x.sequences, x.time_ns, x.tokens, x.tokens_per_second, x.weight_bytes, x.time());
}
void names_of(const SourcePlace& x) { use(x.file, x.line); }
void names_of(const Work& x) {
  use(x.causal_macs, x.input_elements, x.lower_limit, x.macs, x.operations, x.output_elements, x.read_bytes,
      x.updated_bytes, x.write_bytes, x.bytes(), x.flops(), x.has_negative_count(), x.int_ops(),
      x.operations_in(DType::fp32), x.times(2));
}
void names_of_values() {
  use(Counters::automatic, Counters::flops, Counters::modules, Counters::off);
  use(DType::bf16, DType::boolean, DType::fp16, DType::fp32, DType::fp4, DType::fp64, DType::fp8, DType::int16,
      DType::int32, DType::int4, DType::int64, DType::int8, DType::other, DType::tf32, DType::uint8);
  use(NoteLevel::attention, NoteLevel::info, NoteLevel::warning);
  use(ops::ArgumentKind::dtype, ops::ArgumentKind::scalar, ops::ArgumentKind::tensor, ops::ArgumentKind::tensor_list);
  use(ops::Trait::none, ops::Trait::pointwise, ops::Trait::reduction, ops::Trait::view, ops::Trait::view_copy);
  use(LaunchMode::compiled, LaunchMode::eager, LaunchMode::graph);
  use(Parallel::ddp, Parallel::fsdp, Parallel::tp);
  use(Threads::all, Threads::own);
  use(Speech::cpp, Speech::python, Speech::shell);
  use(BoundKind::compute, BoundKind::latency, BoundKind::memory, BoundKind::network, BoundKind::overhead,
      BoundKind::unknown);
  use(Confidence::high, Confidence::low, Confidence::medium);
  use(Phase::backward, Phase::forward, Phase::optimizer, Phase::recompute);
  use(KernelKind::copy, KernelKind::fill, KernelKind::kernel);
  use(By::collective, By::dtype, By::kernel, By::memory, By::module, By::op, By::phase, By::rank, By::scope,
      By::shapes);
}
void names_of_functions(Report report, const Ceilings& roofs, const std::string& path, Work work, const void* data) {
  use(kSaturated, kDTypeCount, kDTypeNames, kHostLink, kLaunchModeNames, kParallelNames, kConfidenceNames, kPhaseCount,
      kPhaseNames, kKernelKindNames, kBoundKindNames, kByNames, TensorDesc::kRagged, TensorDesc::kUnknown);
  use(name_of(DType::fp32), name_of(Parallel::ddp), name_of(LaunchMode::eager), name_of(Confidence::low),
      name_of(Phase::forward), name_of(KernelKind::copy), name_of(BoundKind::memory), name_of(By::op), ByText(By::op),
      is_floating(DType::fp32), dtype_from_name("fp32"), to_string(Bound{}), saturating_add(1, 2),
      saturating_multiply(1, 2), SourcePlace::here());
  use(Ceilings::measure("cpu", Progress{}), Ceilings::published("H100"), Ceilings::load(path));
  roofs.save(path);
  report = Report::from_json(path);
  report = Report::from_json_text("{}");
  report = Report::from_trace(path, roofs);
  report = merge_reports({path});
  report.write_json(path);
  report.write_csv(path, "module");
  std::cout << report << report.coverage().notes.front();
  work.add_macs(1, DType::fp32);
  work.operations_in(DType::fp32) += 1;
  work += work;
  use(work == work, data, version());
  const OpCosts::Function cost = [](const OpCall& call, Work& counted) { use(call, counted); };
  OpCosts::add("mylib::op", cost, "words");
  OpCosts::remove("mylib::op");
  use(EnvironmentValue(1.0), Environment(), ops::Scalar());
}

void names_of_marks(const Work& work, const torch::nn::Module* module, Block& block) {
  ROOFPROF_SCOPE("region");
  ROOFPROF_SCOPE(module);
  ROOFPROF_WORK("kernel", work);
  const Scope region("region");
  const Scope call(*module);
  const DeclaredWork declared("kernel", work);
  block.step();
}
static_assert(ROOFPROF_VERSION_MAJOR >= 0 && ROOFPROF_VERSION_MINOR >= 0 && ROOFPROF_VERSION_PATCH >= 0);
static_assert(sizeof(ROOFPROF_VERSION) >= sizeof("0.1.0"));

void names_of_options() {
  const TableOptions table{.depth = 1,
                           .sort = "macs",
                           .columns = {},
                           .by = By::op,
                           .width = 0,
                           .limit = 0,
                           .legend = false,
                           .speech = Speech::cpp,
                           .expand = false,
                           .rows_only = false};
  const ProfilerOptions options{.warmup = 1,
                                .repeat = 1,
                                .depth = 1,
                                .ceilings = {},
                                .counters = Counters::off,
                                .device = "cpu",
                                .threads = Threads::all,
                                .keep_events = true,
                                .progress = {}};
  const PredictionOptions prediction{.precision = DType::fp16,
                                     .batch = 2,
                                     .bandwidth = 1,
                                     .peak = 1,
                                     .autocast = true,
                                     .channels_last = true,
                                     .mode = LaunchMode::graph,
                                     .host_seconds = 1e-6,
                                     .ranks = 1,
                                     .parallel = Parallel::ddp};
  use(table, options, prediction);
}

// Each error is an Error, and an exception of the standard library, which a program catches by either.
template <class Standard, class Thrown>
constexpr bool is_both = std::is_base_of_v<Error, Thrown> && std::is_base_of_v<Standard, Thrown>;
static_assert(is_both<std::invalid_argument, InvalidArgument> && is_both<std::out_of_range, OutOfRange> &&
              is_both<std::logic_error, LogicError> && is_both<std::runtime_error, RuntimeError> &&
              is_both<std::exception, ErrorOf<std::runtime_error>>);
void names_of(const Error& x) { use(x.what()); }

// A profiler of any model, and what a run leaves beside its report.
template <class Model>
void names_of(RooflineProfiler<Model>& prof, const Outcome<int>& outcome) {
  RooflineProfiler<>& any = prof;
  const auto closure = [] { return 1; };
  use(any.run(closure), any.count(closure), any.run_steps(1, closure), any.report(), prof.run_with_result(closure));
  use(outcome.report, outcome.result);
}

}  // namespace roofprof
