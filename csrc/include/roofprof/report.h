#pragma once
// What a profile says: rows with counts, times and roofline figures. definitions.md gives the meaning of every field.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "roofprof/ceilings.h"
#include "roofprof/note.h"
#include "roofprof/work.h"

namespace roofprof {

struct ProfileData;

// compute or memory: the larger share of the lower bound; overhead: most of the time is spent outside ops;
// unknown: no time, or no roof for the dtype.
enum class BoundKind : std::uint8_t { unknown, compute, memory, overhead };

struct Bound {
  BoundKind kind = BoundKind::unknown;
  std::string resource;  // the dtype or memory level that bounds; empty for overhead and unknown
  bool operator==(const Bound&) const = default;
};

// "compute fp32", "memory L2", "overhead", "unknown"
std::string to_string(const Bound& bound);

// The figures of a row, of its own ops alone (self) or of its subtree (inclusive). Times are nanoseconds.
// An empty optional: not measured, or not defined; never zero in its stead.
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
  std::optional<double> time_spread;       // (max - min) / median of this time over all timed runs
  std::optional<std::int64_t> op_time_ns;  // the part of time_ns that was spent inside counted ops
  std::optional<std::int64_t> busy_ns;     // GPU: union of kernel intervals
  std::optional<std::int64_t> idle_ns;     // GPU: it ran nothing until a launch of these began
  std::optional<double> utilization;       // GPU: 100 x busy / (busy + idle)
  std::optional<std::int64_t> host_time_ns;
  std::optional<std::int64_t> wall_ns;

  // Of the leading operations: FLOPs, or integer operations where those are more.
  std::optional<double> intensity;           // operations per byte
  std::optional<double> attainable;          // operations per second under the roofs
  std::optional<double> achieved_flops;      // operations per second
  std::optional<double> achieved_bandwidth;  // B/s
  Bound bound;
  std::optional<std::int64_t> lower_bound_ns;
  std::optional<double> percent_of_roof;  // 0-100; above 100 is flagged in coverage
  std::optional<std::int64_t> wasted_ns;

  std::optional<std::int64_t> dram_bytes;  // from hardware counters, as the next two
  std::optional<std::int64_t> l2_bytes;
  std::optional<std::int64_t> l1_bytes;
  std::optional<double> dram_intensity;  // operations per byte of dram_bytes, as the next two for theirs
  std::optional<double> l2_intensity;
  std::optional<double> l1_intensity;
  std::optional<double> dram_bytes_ratio;      // dram_bytes / bytes: measured over analytic
  std::optional<double> dram_bandwidth;        // B/s: dram_bytes / time
  std::optional<std::int64_t> executed_flops;  // from hardware counters, where they were asked for
  std::optional<std::int64_t> kernel_count;

  bool incomplete = false;  // holds an op without a cost: counts are lower limits (">=")

  bool counts_integers() const { return int_ops > flops; }
  std::int64_t leading_operations() const { return counts_integers() ? int_ops : flops; }
};

// One module; the inherited figures are those of its subtree.
struct RooflineRow : Figures {
  std::string path;  // "" is the model; "(outside)" and "(optimizer)" stand beside it
  std::string type;
  std::int64_t depth = 0;
  std::optional<std::int64_t> calls;  // empty where calls cannot be seen
  std::int64_t params = 0;            // distinct parameters of the subtree
  std::int64_t trainable_params = 0;
  std::int64_t param_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::vector<std::vector<std::int64_t>> input_shapes;  // of the last call
  std::vector<std::vector<std::int64_t>> output_shapes;
  std::optional<std::int64_t> output_bytes;
  bool inferred = false;  // attribution was inferred, not seen ("~")
  // Of the work of the compiled region that it runs in, 0-100: lower bounds, FLOPs where there are no roofs. Never a
  // time.
  std::optional<double> work_share;
  Figures self;
};

// A row of Report::group: the inherited figures are sums over the ops with these keys.
struct GroupRow : Figures {
  std::vector<std::string> keys;  // one value for each grouping key
  // The same by name; empty where it is no key of the grouping.
  std::optional<std::string> phase;
  std::optional<std::string> op;
  std::optional<std::string> module;
  std::optional<std::string> dtype;
  std::optional<std::string> shapes;
  std::int64_t calls = 0;
  std::int64_t input_elements = 0;        // of the first tensor argument, calls added up
  std::int64_t output_elements = 0;       // of the first result, calls added up
  std::optional<double> percent_of_time;  // 0-100, of the time inside all ops
};

// All launches of one kernel (copy, fill) in one module and phase. Times are nanoseconds, as nsys names them.
struct KernelRow {
  std::string name;
  std::string kind;    // "kernel", "copy", "fill"
  std::string copied;  // of a copy: "pinned to device"
  std::string module;  // path of its row
  std::string phase;
  std::string op;  // empty: none was seen around it
  std::array<std::int32_t, 3> grid{};
  std::array<std::int32_t, 3> block{};
  std::int64_t device = 0;
  bool in_graph = false;
  std::string built_for;       // architecture that its name tells, "sm_80"; empty: it tells none
  double percent_of_time = 0;  // 0-100, of all kernels' time
  std::int64_t total_ns = 0;
  std::int64_t instances = 0;
  double average_ns = 0;
  std::int64_t median_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  double stddev_ns = 0;
  std::int64_t bytes = 0;  // of copies and fills
  // From hardware counters, all instances together.
  std::optional<std::int64_t> dram_bytes;
  std::optional<std::int64_t> l2_bytes;
  std::optional<std::int64_t> l1_bytes;
  std::optional<std::int64_t> executed_flops;
  std::optional<double> dram_bandwidth;  // B/s
  // Executed FLOPs where they were measured, else its op's where it is the op's only kernel; and these per byte.
  std::optional<std::int64_t> flops;
  std::optional<double> dram_intensity;
  std::optional<double> l2_intensity;
  std::optional<double> l1_intensity;
};

// An op without a known cost, and how much that hides.
struct UncostedOp {
  std::string op;
  std::int64_t calls = 0;
  std::optional<double> percent_of_time;  // 0-100, of the time inside all ops; empty where ops have no times
  std::vector<std::string> modules;       // paths, in the model's order; the first few of module_count
  std::int64_t module_count = 0;
  bool operator==(const UncostedOp&) const = default;
};

struct Coverage {
  std::map<std::string, std::int64_t> uncosted;  // op name -> calls that nothing was counted for
  std::vector<UncostedOp> uncosted_ops;  // the same with where and how long, longest time first, then most calls
  std::vector<std::string> uncalled_modules;
  std::int64_t unattributed_kernels = 0;
  std::int64_t dropped_records = 0;
  std::map<std::string, std::int64_t> unobserved;  // module or function -> calls whose work bypassed the dispatcher
  std::vector<Note> notes;
  bool operator==(const Coverage&) const = default;
};

using EnvironmentValue = std::variant<std::string, std::int64_t, double>;
using Environment = std::vector<std::pair<std::string, EnvironmentValue>>;

struct TableOptions {
  std::optional<std::int64_t> depth = {};  // deepest row shown; empty: chosen so that the table stays readable
  std::string sort = {};                   // "": as the model defines them; else a column, largest first
  std::vector<std::string> columns = {};   // empty: the usual ones
  std::string by = "module";               // "module": the tree; "kernel"; else keys of group: "op", "op, phase"
  std::int64_t width = 120;                // characters
  std::int64_t limit = 0;                  // most rows shown, 0: all
  bool legend = true;                      // what the columns mean, below the rows
  bool for_shell = false;                  // hints name options as the shell does, "--depth 3" for "depth=3"
};

class Report {
 public:
  // Joins the data: pure arithmetic, nothing is measured here. `depth`: the deepest row of its tables where
  // TableOptions names none.
  explicit Report(std::shared_ptr<const ProfileData> data, std::optional<std::int64_t> depth = {});

  const std::vector<RooflineRow>& rows() const { return rows_; }
  // The model, "(outside)" and "(optimizer)", all phases.
  const RooflineRow& total() const { return total_; }
  // The row of that path; of a region its bare name will do where no other has it.
  // Throws std::out_of_range, naming the closest paths, where there is no such row.
  const RooflineRow& row(std::string_view path) const;
  // Sums over ops; keys among "phase", "op", "module", "dtype", "shapes".
  // Throws std::invalid_argument for any other key.
  std::vector<GroupRow> group(std::span<const std::string> keys) const;

  // Longest total first; empty where no device was traced.
  const std::vector<KernelRow>& kernels() const { return kernels_; }
  const Coverage& coverage() const { return coverage_; }
  const Ceilings& ceilings() const;
  const Environment& environment() const;
  // The model raised: only what ran before is in here.
  bool partial() const;
  // How many steps of a block were marked (prof.step() in Python); empty where none was.
  std::optional<std::int64_t> steps() const;
  // Wall times of the timed runs under observation, and of the same runs without any observer.
  const std::vector<std::int64_t>& run_times_ns() const;
  const std::vector<std::int64_t>& bare_times_ns() const;
  // What the report was made of (values/profile_data.h, not installed).
  const ProfileData& data() const { return *data_; }

  std::string table(const TableOptions& options = {}) const;
  std::string to_json() const;
  // A line for each row ("module") or kernel ("kernel"). Throws std::invalid_argument for anything else.
  std::string to_csv(std::string_view by = "module") const;
  // Written whole or not at all; throws std::runtime_error naming the path.
  void write_json(const std::string& path) const;
  void write_csv(const std::string& path, std::string_view by = "module") const;

  // The report that wrote that file, or that text. Throw std::runtime_error: one sentence that names the file (not of a
  // text) and says what is wrong with it.
  static Report from_json(const std::string& path);
  static Report from_json_text(std::string_view text);

 private:
  std::shared_ptr<const ProfileData> data_;
  std::optional<std::int64_t> depth_;
  std::vector<RooflineRow> rows_;
  RooflineRow total_;
  std::vector<KernelRow> kernels_;
  Coverage coverage_;
};

std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace roofprof
