#pragma once
// The rows of a report and their figures. definitions.md gives the meaning of every field.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "roofprof/error.h"
#include "roofprof/kinds.h"
#include "roofprof/work.h"

namespace roofprof {

struct Bound {
  BoundKind kind = BoundKind::unknown;
  std::string resource;  // the dtype, memory level or backend that bounds; empty for overhead, latency and unknown
  bool operator==(const Bound&) const = default;
};

// "compute fp32", "memory L2", "network gloo", "overhead", "latency/code", "unknown"
[[nodiscard]] std::string to_string(const Bound& bound);

namespace detail {

using Nanoseconds = std::optional<std::chrono::nanoseconds>;

inline Nanoseconds duration_of(const std::optional<std::int64_t>& ns) { return ns ? Nanoseconds(*ns) : std::nullopt; }

}  // namespace detail

// The figures of a row, for its own ops alone (self) or for its subtree (inclusive). Members have the names of JSON and
// CSV. Times are nanoseconds; the functions behind them give the same as durations.
// An empty optional: not measured, or not defined; zero never stands for that.
struct Figures {
  std::int64_t macs = 0;
  std::int64_t causal_macs = 0;
  std::int64_t flops = 0;
  std::int64_t int_ops = 0;
  std::array<std::int64_t, kDTypeCount> operations_by_dtype{};
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t bytes = 0;

  std::optional<std::int64_t> time_ns;
  std::optional<std::int64_t> time_low_ns;  // of a predicted time: 80% of whole models take between these
  std::optional<std::int64_t> time_high_ns;
  std::optional<double> time_spread;       // (max - min) / median of this time over all timed runs
  std::optional<std::int64_t> op_time_ns;  // the part of time_ns that was spent inside counted ops
  std::optional<std::int64_t> busy_ns;     // GPU: union of kernel intervals
  std::optional<std::int64_t> idle_ns;     // GPU: nothing ran until a launch of these began; for the total: all of it
  std::optional<double> utilization;       // GPU: 100 x busy / (busy + idle)
  std::optional<std::int64_t> host_time_ns;
  std::optional<std::int64_t> wall_ns;

  // These count the leading operations: FLOPs, or integer operations where they are more.
  std::optional<double> intensity;           // operations per byte
  std::optional<double> attainable;          // operations per second under the roofs
  std::optional<double> achieved_flops;      // operations per second
  std::optional<double> achieved_bandwidth;  // B/s
  Bound bound;
  // The least time by the roofs of compute alone and of memory alone. The lower bound takes the larger one of each op.
  std::optional<std::int64_t> compute_time_ns;
  std::optional<std::int64_t> memory_time_ns;
  std::optional<std::int64_t> lower_bound_time_ns;
  std::optional<double> percent_of_roof;  // 0-100; above 100 is flagged in coverage
  // 0-100, by the bytes that DRAM moved as hardware counters saw it; percent_of_roof takes the bytes that must move.
  std::optional<double> percent_of_roof_counted;
  std::optional<std::int64_t> wasted_time_ns;

  std::optional<std::int64_t> dram_bytes;  // from hardware counters, as the next four
  std::optional<std::int64_t> dram_read_bytes;
  std::optional<std::int64_t> dram_write_bytes;
  std::optional<std::int64_t> l2_bytes;
  std::optional<std::int64_t> l1_bytes;
  std::optional<double> dram_intensity;  // operations per byte of dram_bytes, as the next two for theirs
  std::optional<double> l2_intensity;
  std::optional<double> l1_intensity;
  // Measured over analytic bytes, of all kernels. Ops that launched copies and fills alone are on neither side.
  std::optional<double> dram_bytes_ratio;
  std::optional<double> dram_read_ratio;       // of bytes read
  std::optional<double> dram_write_ratio;      // of bytes written: what a kernel left in the cache may be written later
  std::optional<double> dram_bandwidth;        // B/s: dram_bytes / time of kernels
  std::optional<std::int64_t> executed_flops;  // from hardware counters, on request
  std::optional<std::int64_t> kernel_count;

  bool incomplete = false;  // holds an op without a cost: counts are lower limits (">=")

  [[nodiscard]] bool counts_integers() const { return int_ops > flops; }
  [[nodiscard]] std::int64_t leading_operations() const { return counts_integers() ? int_ops : flops; }

  [[nodiscard]] detail::Nanoseconds time() const { return detail::duration_of(time_ns); }
  [[nodiscard]] detail::Nanoseconds time_low() const { return detail::duration_of(time_low_ns); }
  [[nodiscard]] detail::Nanoseconds time_high() const { return detail::duration_of(time_high_ns); }
  [[nodiscard]] detail::Nanoseconds op_time() const { return detail::duration_of(op_time_ns); }
  [[nodiscard]] detail::Nanoseconds busy() const { return detail::duration_of(busy_ns); }
  [[nodiscard]] detail::Nanoseconds idle() const { return detail::duration_of(idle_ns); }
  [[nodiscard]] detail::Nanoseconds host_time() const { return detail::duration_of(host_time_ns); }
  [[nodiscard]] detail::Nanoseconds wall() const { return detail::duration_of(wall_ns); }
  [[nodiscard]] detail::Nanoseconds compute_time() const { return detail::duration_of(compute_time_ns); }
  [[nodiscard]] detail::Nanoseconds memory_time() const { return detail::duration_of(memory_time_ns); }
  [[nodiscard]] detail::Nanoseconds lower_bound_time() const { return detail::duration_of(lower_bound_time_ns); }
  [[nodiscard]] detail::Nanoseconds wasted_time() const { return detail::duration_of(wasted_time_ns); }

  // Returns the figure with this name in JSON and CSV: "percent_of_roof", "time_ns". A flag is 1 or 0. Empty where it
  // was not measured or is not defined. Throws InvalidArgument for a name that no figure has, naming the closest,
  // and for a figure that is not a number.
  [[nodiscard]] std::optional<double> figure(std::string_view name) const;
};

// One module; the inherited figures are those of its subtree.
struct RooflineRow : Figures {
  std::string path;  // "" is the model; "(outside)" and "(optimizer)" are further roots
  std::string type;
  std::int64_t depth = 0;
  std::optional<std::int64_t> calls;  // empty where calls cannot be seen
  // Distinct parameters of the subtree; not known for a trace that was read without its model.
  bool params_known = true;
  std::int64_t params = 0;
  std::int64_t trainable_params = 0;
  std::int64_t param_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::vector<std::vector<std::int64_t>> input_shapes;  // the sizes of each tensor of the last call; empty: not known
  std::vector<std::vector<std::int64_t>> output_shapes;
  std::optional<std::int64_t> output_bytes;  // of the last call
  // Bytes above what was allocated before the call; in the total it covers all calls.
  std::optional<std::int64_t> peak_memory;
  std::optional<std::int64_t> kept_memory;  // bytes that the forward left allocated, without its outputs
  // Figures of the subtree as if it were one fused op: the bytes that cross its boundary (inputs, outputs, parameters
  // and buffers once in each call, and what the backward needs), and the least time that the roofs allow for these
  // bytes and all its operations.
  std::optional<std::int64_t> fused_bytes;
  std::optional<std::int64_t> fused_bound_time_ns;
  std::optional<double> percent_of_fused;  // 0-100: 100 x fused bound / time
  // The subtree's share, by work, of the time of compiled kernels that counts in the row of a module above. Empty where
  // no kernels of compiled code are known.
  std::optional<std::int64_t> shared_time_ns;
  bool inferred = false;  // attribution was inferred, not seen ("~")
  // The module's share (0-100) of the work of the compiled region that it runs in: lower bounds, or FLOPs without
  // roofs. Never a share of time.
  std::optional<double> work_share;
  // Set only in a merged report, whose other figures are sums over ranks: this row's time on the fastest, the median
  // and the slowest rank that has it, the slowest rank, and 100 x (slowest - mean) / slowest.
  std::optional<std::int64_t> time_min_ns;
  std::optional<std::int64_t> time_median_ns;
  std::optional<std::int64_t> time_max_ns;
  std::optional<std::int64_t> slowest_rank;
  std::optional<double> imbalance;
  // The time of the collectives that it and the modules below it caused, from their calls to their ends. They may be
  // under way while others compute, so the row's time does not include it.
  std::optional<std::int64_t> communication_ns;
  // The part of its time in which collectives were under way, whichever module caused them, and no op computed.
  std::optional<std::int64_t> exposed_communication_ns;
  // The time of the collectives that it and the modules below it caused in which other work ran. It is in neither time
  // nor lower bound.
  std::optional<std::int64_t> hidden_communication_ns;
  // Set only for the total, whose idle time is their sum: the time of each device before its first launch, between
  // launches, and after the last one. A row's idle time is only between launches.
  std::optional<std::int64_t> idle_before_ns;
  std::optional<std::int64_t> idle_between_ns;
  std::optional<std::int64_t> idle_after_ns;
  Figures self;

  [[nodiscard]] std::optional<std::int64_t> known_params() const { return if_known(params); }
  [[nodiscard]] std::optional<std::int64_t> known_trainable_params() const { return if_known(trainable_params); }
  [[nodiscard]] std::optional<std::int64_t> known_param_bytes() const { return if_known(param_bytes); }
  [[nodiscard]] std::optional<std::int64_t> known_buffer_bytes() const { return if_known(buffer_bytes); }

  [[nodiscard]] detail::Nanoseconds idle_before() const { return detail::duration_of(idle_before_ns); }
  [[nodiscard]] detail::Nanoseconds idle_between() const { return detail::duration_of(idle_between_ns); }
  [[nodiscard]] detail::Nanoseconds idle_after() const { return detail::duration_of(idle_after_ns); }

  // Takes the names of Figures::figure, "calls", "params" and its like, and "self_time_ns" for self.time_ns.
  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method)
  [[nodiscard]] std::optional<double> figure(std::string_view name) const;

 private:
  std::optional<std::int64_t> if_known(std::int64_t count) const {
    return params_known ? std::optional(count) : std::nullopt;
  }
};

// Equal modules below one parent, such as the layers of a transformer: whole subtrees of equal types, shapes, work,
// calls and parameters. Tables show them as one line.
struct Siblings {
  std::string name;  // "layers.0-79"; "layers.0-3, 5"
  // The paths of all members; if their parent is folded too, of the members below each equal parent.
  std::vector<std::string> paths;
  std::int64_t count = 0;  // the number of members below one parent: "x80"
  // The mean of all members, then the modules below it, folded in the same way. Additive figures are those of one
  // member on average; rates and percentages are those of the members' sums.
  std::vector<RooflineRow> rows;
  std::optional<double> spread;         // (max - min) / median of the members' times
  std::optional<std::string> slowest;   // path of the slowest, where it stands out from the others
  std::optional<double> slowest_ratio;  // its time / the median

  // Throws LogicError if `rows` is empty: these Siblings do not come from a report, or were moved from.
  [[nodiscard]] const RooflineRow& mean() const&;
  [[nodiscard]] RooflineRow mean() const&& { return mean(); }
};

// Calls of a language model that fill its cache ("prefill") or add a token by it ("decode"): docs/language-models.md.
struct TokenPhase {
  std::string name;
  std::int64_t calls = 0;
  std::int64_t sequences = 0;                 // batch sizes, calls added up
  std::int64_t tokens = 0;                    // new ones, of all sequences and calls
  std::optional<std::int64_t> least_context;  // tokens of a sequence that a call attends to, cached and new
  std::optional<std::int64_t> most_context;
  std::int64_t weight_bytes = 0;  // parameters of the model, tied ones once
  std::int64_t cache_bytes = 0;   // most that the cache held when a call began
  std::int64_t macs = 0;          // of all calls, as the rest
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
  std::optional<double> intensity;        // FLOPs per byte
  std::optional<double> flops_per_token;  // empty without tokens
  std::optional<std::int64_t> time_ns;    // wall time
  std::optional<double> tokens_per_second;

  [[nodiscard]] detail::Nanoseconds time() const { return detail::duration_of(time_ns); }
};

// Percent (0-100) of the peak FLOP/s: MFU as PaLM defines it (Chowdhery et al. 2022, appendix B), HFU with what was
// recomputed (Korthikanti et al. 2022, section 6).
struct FlopsUtilization {
  double mfu = 0;            // 2 x MACs of forward and backward
  double hfu = 0;            // the same, with the forwards that the backward runs again
  std::int64_t time_ns = 0;  // the time that both divide by
  std::string time_of;       // what that time is: "its wall time"
};

// The certainty of a finding.
enum class Confidence : std::uint8_t { low, medium, high };
inline constexpr std::array<std::string_view, 3> kConfidenceNames = {"low", "medium", "high"};
[[nodiscard]] constexpr std::string_view name_of(Confidence confidence) {
  return kConfidenceNames[static_cast<std::size_t>(confidence)];
}

// Something that wastes time, and what to do about it, by one rule (docs/findings.md).
struct Finding {
  std::string id;                    // the same in every run: "depthwise-convolution/features.3/aten::conv2d"
  std::string rule;                  // "depthwise-convolution"
  std::string module;                // path of the module with most of that time; of equal siblings "layers.0-79.mlp"
  std::vector<std::string> modules;  // paths of all that the rule holds for, most time first, equal siblings one by one
  std::optional<std::string> op;     // the one with most of that time: "aten::conv2d", "(outside ops)"; empty: all
  std::vector<std::string> ops;      // all that the rule holds for
  std::optional<std::string> source;  // the user's code, "FILE:LINE"; empty: not known
  std::string bound;                  // what bounds these ops, "memory DRAM"
  std::string text;                   // one sentence: what is wrong, and by how much
  std::string action;                 // what to do
  std::int64_t gain_low_ns = 0;       // how much of the total's time that saves
  std::int64_t gain_high_ns = 0;
  std::string basis;  // what the gain is known from: "lower bound", "fused bound", "other precision's roof"
  Confidence confidence = Confidence::medium;
  std::string because;                     // the reason for this confidence
  std::optional<std::string> try_it;       // code that tries it; empty: no short code does
  std::map<std::string, double> evidence;  // figures that call for it
  std::string reference;                   // where the rule is from

  [[nodiscard]] detail::Nanoseconds gain_low() const { return std::chrono::nanoseconds(gain_low_ns); }
  [[nodiscard]] detail::Nanoseconds gain_high() const { return std::chrono::nanoseconds(gain_high_ns); }

  bool operator==(const Finding&) const = default;
};

// A row of Report::group: the inherited figures are sums over the ops with these keys.
struct GroupRow : Figures {
  std::vector<std::string> keys;  // one value for each grouping key
  // The same values by name; empty if the grouping lacks that key.
  std::optional<Phase> phase;
  std::optional<std::string> op;
  std::optional<std::string> module;
  std::optional<std::string> scope;
  std::optional<std::string> dtype;
  std::optional<std::string> shapes;  // of the ops' inputs: "1x3x224x224, 64x3x7x7"
  std::int64_t calls = 0;
  std::int64_t input_elements = 0;        // of the first tensor argument, calls added up
  std::int64_t output_elements = 0;       // of the first result, calls added up
  std::optional<double> percent_of_time;  // 0-100, of the time inside all ops
  // True for the time of compiled code. Its work counts with the ops that it ran, or is not known, so the counts here
  // are 0, and tables show n/a.
  bool work_elsewhere = false;

  // Takes the names of Figures::figure, and "calls" and its like.
  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method)
  [[nodiscard]] std::optional<double> figure(std::string_view name) const;
};

// All launches of one kernel (copy, fill) in one module and phase. Times are nanoseconds, as nsys names them.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of the columns
struct KernelRow {
  std::string name;
  KernelKind kind = KernelKind::kernel;
  std::string copied;  // of a copy: "pinned to device"
  std::string module;  // path of its row
  Phase phase = Phase::forward;
  std::string scope;  // the region that it was launched in, "outer/inner"; empty: none
  std::string op;     // empty: none was seen around it
  std::array<std::int32_t, 3> grid{};
  std::array<std::int32_t, 3> block{};
  std::int64_t device = 0;
  bool in_graph = false;
  std::string built_for;       // the architecture in its name, "sm_80"; empty: none
  double percent_of_time = 0;  // 0-100, of all kernels' time
  std::int64_t total_ns = 0;
  std::int64_t instances = 0;
  double average_ns = 0;
  std::int64_t median_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  double stddev_ns = 0;
  // Bytes that a copy or fill moves; for a kernel of compiled code, the bytes of its inputs and outputs.
  std::optional<std::int64_t> bytes;
  bool incomplete = false;  // its bytes, and what follows from them, are lower limits (">=")
  // Set for a kernel of compiled code: the bytes that its ops would move one by one, the ops, their modules with their
  // shares ("fc1 80%, act 20%"), true if there are several, and the places of its code and of the user's line.
  std::optional<std::int64_t> unfused_bytes;
  std::string fused;
  std::string modules;
  bool shared = false;
  std::string code;
  std::string source;
  std::optional<double> intensity;  // FLOPs per byte of `bytes`
  // The hardware counters' figures, all instances together.
  std::optional<std::int64_t> dram_bytes;
  std::optional<std::int64_t> l2_bytes;
  std::optional<std::int64_t> l1_bytes;
  std::optional<std::int64_t> executed_flops;
  std::optional<double> dram_bandwidth;  // B/s
  // Executed FLOPs where they were measured, else those of its op if it is the op's only kernel; then rates by these.
  std::optional<std::int64_t> flops;
  std::optional<double> achieved_flops;  // operations per second
  std::optional<double> dram_intensity;
  std::optional<double> l2_intensity;
  std::optional<double> l1_intensity;
  // The longest of the times that its counted operations need at their peaks, and its counted bytes at the bandwidth of
  // DRAM and of the L2.
  std::optional<std::int64_t> lower_bound_time_ns;
  std::optional<double> percent_of_roof;  // 100 x lower bound / total
  Bound bound;

  [[nodiscard]] std::string kind_name() const { return std::string(name_of(kind)); }
  [[nodiscard]] std::string phase_name() const { return std::string(name_of(phase)); }

  [[nodiscard]] std::chrono::nanoseconds total() const { return std::chrono::nanoseconds(total_ns); }
  [[nodiscard]] std::chrono::duration<double, std::nano> average() const {
    return std::chrono::duration<double, std::nano>(average_ns);
  }
  [[nodiscard]] std::chrono::nanoseconds median() const { return std::chrono::nanoseconds(median_ns); }
  [[nodiscard]] std::chrono::nanoseconds min() const { return std::chrono::nanoseconds(min_ns); }
  [[nodiscard]] std::chrono::nanoseconds max() const { return std::chrono::nanoseconds(max_ns); }
  [[nodiscard]] std::chrono::duration<double, std::nano> stddev() const {
    return std::chrono::duration<double, std::nano>(stddev_ns);
  }

  // Returns the figure of that name, with the rules of Figures::figure.
  [[nodiscard]] std::optional<double> figure(std::string_view name) const;
};

// The storages of one category, module and phase that were alive at the peak of memory (docs/memory.md).
struct MemoryRow {
  std::string category = {};  // "parameters", "buffers", "inputs", "gradients", "optimizer state", "activations",
                              // "outputs", "temporaries" or "other"
  std::string module = {};    // path of the module whose op allocated them, or that owns them (parameters, buffers)
  std::optional<Phase> phase = {};  // the phase of their allocation; empty: they were there before
  bool before = false;              // they were there before; the others add up to the total's peak_memory
  std::int64_t storages = 0;
  std::int64_t bytes = 0;
  double percent_of_all = 0;  // 0-100, of the bytes of all rows

  [[nodiscard]] std::string phase_name() const { return phase ? std::string(name_of(*phase)) : ""; }
};

// The most memory during a stretch of ops that begins with `first_op`: bytes above those that were there before. All
// stretches have equally many ops.
struct MemoryMoment {
  std::int64_t first_op = 0;
  std::int64_t bytes = 0;
  std::string module = {};  // path of the row that allocated then
  Phase phase = Phase::forward;
  bool is_peak = false;  // true for the ops with the most of all

  [[nodiscard]] std::string phase_name() const { return std::string(name_of(phase)); }
};

}  // namespace roofprof
