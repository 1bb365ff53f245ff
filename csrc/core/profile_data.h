#pragma once
// Holds what was observed, before any figure is derived from it: the join makes it, and a report's JSON keeps it.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective_data.h"
#include "core/crossings.h"
#include "core/device_data.h"
#include "core/ids.h"
#include "core/note_codes.h"
#include "core/profile_kind.h"
#include "core/reuse.h"
#include "core/shapes.h"
#include "roofprof/report.h"

namespace roofprof {

// The version of a report's JSON. It is raised when a reader of the older form would miss a key or misread one.
inline constexpr std::int64_t kReportSchemaVersion = 6;

// The op of a compiled region's code: its time, and its calls.
inline constexpr std::string_view kCompiledRegion = "compiled region";
// The op of what a region's code does besides its kernels, where these are known: then "compiled region" is theirs.
inline constexpr std::string_view kOutsideKernels = "(outside kernels)";
// Returns whether the op has a region's time and calls; its work is that of other ops.
constexpr bool is_time_of_region(std::string_view op) { return op == kCompiledRegion || op == kOutsideKernels; }
// The op of a call of an AOTInductor package, whose code is compiled, too. No module of the model runs inside.
inline constexpr std::string_view kCompiledPackage = "AOTInductor package";
constexpr bool is_compiled_code(std::string_view op) { return op == kCompiledRegion || op == kCompiledPackage; }

// Module::type of a region, which the user's code opened while it ran. No module: it has no parameters, shapes or
// forward.
inline constexpr std::string_view kRegionType = "region";

struct Module {
  std::string path;
  std::string type;
  std::string source;       // where its forward is written, "FILE:LINE"; empty: torch's own, in C++, or not known
  ModuleId parent = -1;     // -1: a root (the model, "(outside)", "(optimizer)")
  bool has_forward = true;  // containers (ModuleList, ModuleDict) have none and are never "uncalled"
  bool calls_visible = true;
  bool forward_of_torch = false;  // not the user's: others take its children (Sequential) or parameters instead
  bool parameters_read = false;   // ops read its own parameters, wherever they ran; unknown in C++
  bool parameters_tied = false;   // other modules have all of its own parameters, too; unknown in C++
  bool inferred = false;
  ModuleId same_as = -1;  // the first place of the same module, where it stands at several; -1: this is the first
  // Set where the module ran inside the compiled region of this module, whose row has the time of both; -1: its row has
  // its time.
  ModuleId compiled_region = -1;
  bool params_known = true;  // false: a trace was read, which does not tell them
  // Sums over the subtree, tied parameters once.
  std::int64_t params = 0;
  std::int64_t trainable_params = 0;
  std::int64_t param_bytes = 0;
  std::int64_t buffer_bytes = 0;
  // Shapes and bytes of the last call.
  std::vector<std::vector<std::int64_t>> input_shapes;
  std::vector<std::vector<std::int64_t>> output_shapes;
  std::optional<std::int64_t> output_bytes;
  // Memory in the counting call; empty where it was not measured.
  std::optional<std::int64_t> peak_memory;  // bytes above what was allocated before, of the call that had most
  std::optional<std::int64_t> kept_memory;  // bytes that all forward calls left allocated, without their outputs

  bool operator==(const Module&) const = default;
};

// What memory is for; docs/memory.md has the rules.
enum class MemoryCategory : std::uint8_t {
  parameters,
  buffers,
  inputs,
  gradients,
  optimizer_state,
  activations,
  outputs,
  temporaries,
  other
};
inline constexpr std::array<std::string_view, 9> kMemoryCategoryNames = {"parameters", "buffers",         "inputs",
                                                                         "gradients",  "optimizer state", "activations",
                                                                         "outputs",    "temporaries",     "other"};

// Storages that were alive when most memory was: of one category, module and phase.
struct AliveMemory {
  MemoryCategory category = MemoryCategory::other;
  ModuleId module = kModel;  // whose op allocated them; of what was there before, whose it is
  Phase phase = Phase::forward;
  bool before = false;  // they were there before what was counted: no phase, and not in the peak
  std::int64_t storages = 0;
  std::int64_t bytes = 0;

  bool operator==(const AliveMemory&) const = default;
};

// The most bytes that were allocated during an interval of ops, above those before, and who ran then.
struct MemoryPoint {
  std::int64_t bytes = 0;
  ModuleId module = kModel;
  Phase phase = Phase::forward;

  bool operator==(const MemoryPoint&) const = default;
};

// The memory of a counting call over its ops. Intervals are equally long.
struct MemoryTimeline {
  std::int64_t ops_per_point = 0;  // 0: not known
  std::int64_t peak_point = -1;    // index of the interval in which most was allocated; -1: nothing was
  std::vector<MemoryPoint> points;

  bool operator==(const MemoryTimeline&) const = default;
};

// Returns whether the module is `above` or one of those below it.
inline bool is_within(ModuleId module, ModuleId above, const std::vector<Module>& modules) {
  while (module >= 0 && module != above) module = modules[index_of(module)].parent;
  return module == above;
}

// What hardware counters saw an op's kernels move to and from DRAM, all calls together.
struct CountedBytes {
  std::int64_t dram_bytes = 0;
  std::optional<std::int64_t> dram_read_bytes = {};  // these two where they were counted apart
  std::optional<std::int64_t> dram_write_bytes = {};
  // What its copies and fills move, which have no counters, by their records: what a copy reads and what it writes.
  std::int64_t uncounted_bytes = 0;

  bool operator==(const CountedBytes&) const = default;
};

// All calls of one op in one module and phase with one signature; the unit that everything is summed from.
struct OpBucket {
  std::string op;  // qualified name without overload: "aten::conv2d"
  Owner owner;
  DType dtype = DType::other;  // compute dtype: the first tensor input's
  OpShapes shapes;
  bool costed = true;  // false: nothing is known of its work
  std::int64_t calls = 0;
  Work work;                            // of all calls together
  std::optional<std::int64_t> time_ns;  // all calls together; of a profile, in the run that the rows come from
  // The 80% interval of a predicted time. Empty: the time was measured, or is not known.
  std::optional<std::int64_t> time_low_ns = {};
  std::optional<std::int64_t> time_high_ns = {};
  std::int64_t floor_ns = 0;  // of a predicted time, what calls take that do nothing
  // Copied between host and device, all calls together: held against the host link in place of a memory level.
  std::int64_t link_bytes = 0;
  // Of a profile with a device's times: the op launched nothing there. It ran on the host, or was captured into a
  // graph. Its work is counted, and no roof of the device holds it.
  bool off_device = false;
  // The reuse distances of the bytes of `work`, all calls together. Where it covers fewer bytes, the rest is at the
  // distance of one call's footprint.
  Reuse reuse = {};
  std::optional<CountedBytes> counted = {};  // empty: not all of its kernels were counted, one by one
  // All calls together; known where ProfileData::crossings_known says so.
  Crossings crossings = {};
  // A convolution or pooling of images none of which is channels_last, in its first call.
  bool channels_first = false;
  // Of a kernel that a compiler generated, as a trace has it: the ops in it, by its name; the file of its code.
  std::vector<std::string> fused = {};
  std::string code = {};

  bool operator==(const OpBucket&) const = default;
};

// The time that a module's own code took (children excluded) and its calls, in one phase and region.
struct ModuleTime {
  Owner owner;
  std::int64_t calls = 0;
  std::vector<std::int64_t> self_ns;       // one figure for each timed run; empty: not timed
  std::vector<std::int64_t> host_self_ns;  // the host's times, where self_ns has a device's; else empty

  bool operator==(const ModuleTime&) const = default;
};

// A region by what was open around it: "outer/inner". It is the same wherever in the model it was opened, while a
// region's row stands below the module that opened it.
struct RegionPath {
  RegionId parent = kNoRegion;  // the region around it; comes before it
  std::string name;
  std::int64_t calls = 0;             // how often it was opened; inside itself it is open already
  std::vector<std::int64_t> wall_ns;  // from its opening to its end, for each timed run; empty: not known

  bool operator==(const RegionPath&) const = default;
};

// Calls of a language model that are one of its phases, in the counting call or in a block.
struct TokenCalls {
  std::string region;  // "prefill", "decode"
  std::int64_t calls = 0;
  std::int64_t sequences = 0;      // of all calls together: batch sizes added up
  std::int64_t tokens = 0;         // new ones, of all sequences together
  std::int64_t least_context = 0;  // tokens of a sequence that a call attends to, cached and new; -1: not known
  std::int64_t most_context = 0;
  std::int64_t cache_bytes = 0;   // most that the cache held when a call began
  std::int64_t weight_bytes = 0;  // parameters of what was called, tied ones once

  bool operator==(const TokenCalls&) const = default;
};

// All launches of one kernel (copy, fill) in one module, phase and region, in the run that the rows come from.
struct KernelBucket {
  std::string name;  // demangled
  KernelKind kind = KernelKind::kernel;
  Memory from = Memory::unknown;  // of a copy
  Memory to = Memory::unknown;
  std::int64_t device = 0;
  std::array<std::int32_t, 3> grid{};
  std::array<std::int32_t, 3> block{};
  bool in_graph = false;  // launched by a CUDA graph
  Owner owner = {kOutside};
  std::string op;            // that launched it; empty: none was seen around it
  std::int64_t bucket = -1;  // of that op: index into ProfileData::ops; -1: none, or more than one
  std::int64_t compiled =
      0;                   // the CompiledKernel::id of the kernel of compiled code that launched it; 0: none is known
  bool attributed = true;  // false: launched outside of every scope; counted in (outside)
  std::int64_t instances = 0;
  std::int64_t total_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t median_ns = 0;
  double stddev_ns = 0;      // of the sample (n - 1); 0 for one instance
  std::int64_t bytes = 0;    // of copies and fills, all together
  CounterValues counters{};  // summed over `counted` instances
  std::int64_t counted = 0;  // instances that counters were read for
  bool mismatched = false;   // the counters' run launched something else in their place

  bool operator==(const KernelBucket&) const = default;
};

// A module whose ops a kernel of compiled code runs, and its part of the kernel's work.
struct KernelPart {
  ModuleId module = kModel;
  double share = 1;  // 0-1, of the kernel's work

  bool operator==(const KernelPart&) const = default;
};

// A kernel that torch.compile generated, or an operator that its code calls, in one place of that code; all its calls
// in one run.
struct CompiledKernel {
  std::string name;
  std::int64_t id = 0;             // from 1 on, where its launches on a device are known; 0: it ran on a CPU
  Owner owner = {kModel};          // the innermost module that holds all parts; that of the region where none is known
  bool attributed = true;          // false: none is known
  std::vector<std::string> ops;    // that it runs, each once
  std::vector<KernelPart> parts;   // largest first
  std::string code;                // where it is generated or called, "FILE:LINE"; empty: not known
  std::string source;              // the line of the user's code that it comes from
  bool costed = true;              // false: the work of some of its ops is not known
  Work work;                       // of all calls; bytes are those of its own inputs and outputs
  std::int64_t unfused_bytes = 0;  // that its ops would move one by one
  std::int64_t instances = 0;
  std::int64_t total_ns = 0;  // its part of the region's time, in the run that the rows come from
  std::int64_t min_ns = 0;    // of the calls in all runs of the kernels
  std::int64_t max_ns = 0;
  std::int64_t median_ns = 0;
  double stddev_ns = 0;

  bool operator==(const CompiledKernel&) const = default;
};

// The busy and idle time of devices for a module, in the run that the rows come from.
struct DeviceTime {
  ModuleId module = kModel;
  std::int64_t busy_ns = 0;  // union of its subtree's intervals, devices added up: not additive
  // Between two launches: a device ran nothing until one of the module itself began. Additive.
  std::int64_t idle_ns = 0;
  std::int64_t self_busy_ns = 0;  // union of the intervals of the module's own launches, devices added up

  bool operator==(const DeviceTime&) const = default;
};

// How the idle time of a device came to be known.
enum class IdleBasis : std::uint8_t {
  unsettled,  // no device was traced; or an older report's, as recorded: before and after are in the modules' times
  bare,       // of the calls without any observer: their median time less the busy time
  observing,  // as recorded, without what a launch was found to cost while it is observed
  seen        // as recorded: the observer's own time is in it
};
inline constexpr std::array<std::string_view, 4> kIdleBasisNames = {"", "bare", "observing", "seen"};

// Counters of a module's own launches, where whole modules were the ranges.
struct ModuleCounters {
  Owner owner;
  CounterValues counters{};

  bool operator==(const ModuleCounters&) const = default;
};

// The number of steps of a block that get times; all are counted.
inline constexpr std::size_t kStepsTimed = 10'000;

// What a block did outside of its steps: after the last one, or between them.
struct AfterSteps {
  std::int64_t wall_ns = 0;  // by the host's clock
  Work work;

  bool operator==(const AfterSteps&) const = default;
};

struct Runs {
  std::vector<std::int64_t> total_ns;  // wall time of each timed run under observation
  std::int64_t chosen = -1;            // the run that the rows come from: the median one; -1: none
  std::vector<std::int64_t> bare_ns;   // wall time of runs without any observer
  std::int64_t warmup = 0;
  std::int64_t steps = 0;                 // prof.step() calls of a block; 0: not marked
  std::vector<std::int64_t> step_ns;      // of the first kStepsTimed of them; empty: not timed
  std::optional<AfterSteps> after_steps;  // empty: not known, or no steps
  bool beside_others = false;             // other processes were busy meanwhile, whether or not a note says so

  bool operator==(const Runs&) const = default;
};

// What a run, block or trace was: whoever observed it tells this, and its profile keeps it.
struct RunInfo {
  std::string model;                    // the model's type, for titles
  std::string device;                   // "cpu", "cuda:0", "meta"
  std::string mode;                     // "run", "count" or "block"
  bool partial = false;                 // an exception ended it; what ran before is here
  bool bypass_sought = true;            // work that bypasses the dispatcher was looked for; C++'s profiler does not
  std::optional<Imported> imported;     // empty: it was observed here
  std::vector<TokenCalls> token_calls;  // of language models, by region
  Runs runs;
  Ceilings ceilings;
  Environment environment;

  bool operator==(const RunInfo&) const = default;
};

// The key of the environment under which a trace says what the host ran before the first launch, for most of that time.
inline constexpr std::string_view kHostBeforeLaunches = "host_before_launches";

// The number of events of a run that are kept where they are requested; as many launches are kept.
inline constexpr std::int64_t kEventsKept = 1'000'000;

enum class EventKind : std::uint8_t {
  op,
  transparent,  // an op that may launch kernels, where ops that it called count in its place
  module,
  region
};
inline constexpr std::array<std::string_view, 4> kEventKindNames = {"op", "transparent", "module", "region"};

// One call of an op or a module, or a region from its opening to its end, by the host's clock. Ops are those that
// count: what each of them took without those inside it adds up to the clock's time of its bucket.
struct Event {
  std::int64_t id = 0;  // from 1 on, another one for each event of the run
  EventKind kind = EventKind::op;
  std::int64_t thread = 0;  // 0 is that of the first event
  // The module whose row it is in, or where a region without a row was opened; the region that was open, or a region's
  // own.
  Owner owner = {};
  std::int64_t name = -1;     // of an op: index into Events::names; -1: none
  std::int64_t bucket = -1;   // of an op: index into ProfileData::ops; -1: it is in none by itself
  std::int64_t begin_ns = 0;  // from the run's start on
  std::int64_t end_ns = 0;

  bool operator==(const Event&) const = default;
};

// One launch, by the same clock.
struct LaunchEvent {
  KernelKind kind = KernelKind::kernel;
  std::int64_t name = -1;  // index into Events::names; -1: none
  std::int64_t event = 0;  // the op's that launched it; 0: none, or it is not known
  std::int64_t device = 0;
  std::int64_t stream = 0;
  Owner owner = {kOutside};
  std::int64_t bucket = -1;  // index into ProfileData::ops; -1: none, or more than one
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  bool operator==(const LaunchEvent&) const = default;
};

// The single events of the run that the rows come from.
struct Events {
  bool kept = false;                // they were requested
  std::vector<std::string> names;   // of ops and kernels
  std::vector<Event> host;          // by their begin, outer ones first
  std::vector<LaunchEvent> device;  // by their begin
  std::int64_t left_out = 0;        // left out for lack of room

  bool operator==(const Events&) const = default;
};

struct ProfileData : RunInfo {
  ProfileKind kind;
  std::optional<Part> part;         // empty: it has everything that was observed
  std::vector<RegionPath> regions;  // outer ones before those inside
  std::vector<Module> modules;      // the first three are kModel, kOutside, kOptimizer; parents before children
  std::vector<OpBucket> ops;
  std::vector<ModuleTime> times;
  double common_error = 1;            // of predicted times: the share of the squared error that all have in common
  bool crossings_known = false;       // those of all ops
  bool device_timed = false;          // times are those of a device's kernels, below; else the clock's
  std::vector<KernelBucket> kernels;  // longest total first; of equal ones the first launched
  std::vector<CompiledKernel> compiled_kernels;  // longest total first; empty: nobody asked
  std::vector<DeviceTime> device_times;
  std::int64_t busy_ns = 0;         // union of all intervals, devices added up
  std::int64_t idle_before_ns = 0;  // until the first launch of each device
  std::int64_t idle_after_ns = 0;   // after its last one
  IdleBasis idle_basis = IdleBasis::unsettled;
  std::int64_t observing_ns = 0;  // what observing adds to a launch, where that was measured and taken off
  std::vector<ModuleCounters> module_counters;
  std::vector<CounterSource> counters;  // what was asked of the hardware and what was got; empty: nothing was asked
  CounterRanges counter_ranges = CounterRanges::kernels;
  std::int64_t counter_passes = 0;
  std::optional<std::int64_t> peak_memory;  // of the whole counting call; empty: not measured
  std::vector<AliveMemory> alive_at_peak;   // largest first; empty: not known
  MemoryTimeline memory_timeline;
  CollectiveData collectives;
  std::string compute_capability;  // of the device, "9.0"; empty: not known
  Events events;
  // Notes of the observer; the join adds those that follow from the data itself.
  std::map<std::string, std::int64_t> unobserved;
  std::int64_t dropped_records = 0;
  std::int64_t unattributed_kernels = 0;
  std::vector<Note> notes;

  // Returns null where the profile is of another kind.
  const Predicted* predicted() const { return std::get_if<Predicted>(&kind); }
  const MergedRanks* merged() const { return std::get_if<MergedRanks>(&kind); }

  bool operator==(const ProfileData&) const = default;
};

}  // namespace roofprof
