#pragma once
// The report of a profile: rows with counts, times and roofline figures. definitions.md has the meaning of every field.

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
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
#include "roofprof/collectives.h"
#include "roofprof/error.h"
#include "roofprof/note.h"
#include "roofprof/prediction.h"
#include "roofprof/ranks.h"
#include "roofprof/rows.h"

namespace roofprof {

class Analysis;

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

// Statistics of the times of a block's steps, over those that have times.
struct StepStatistics {
  std::int64_t count = 0;
  double mean_ns = 0;
  double median_ns = 0;
  double spread = 0;  // (max - min) / median
  std::int64_t slowest_ns = 0;
  std::int64_t slowest_index = 0;  // from 0; the first of equal ones
};

// The language in which hints name an option to the reader: ".depth = 3", "depth=3" or "--depth 3".
enum class Speech : std::uint8_t { cpp, python, shell };

namespace detail {
struct ReportParts;
}

struct TableOptions {
  std::optional<std::int64_t> depth = {};  // deepest row shown; empty: chosen so that the table stays readable
  std::string sort = {};                   // "": as the model defines them; else a column, largest first
  std::vector<std::string> columns = {};   // empty: the usual ones
  ByText by = By::module;    // the tree; kernels, regions (scope), ranks, collectives, memory; else keys of group
  std::int64_t width = 120;  // characters; 0: as many as it takes
  std::int64_t limit = 0;    // most rows shown, 0: all
  bool legend = true;        // the meaning of the columns, below the rows
  Speech speech = Speech::cpp;
  bool expand = false;     // each equal sibling has a line, not one for all
  bool rows_only = false;  // the rows below their headings, and nothing above or below them
};

// A report from a profiler or from a file. It needs neither the profiler nor the model any more. Copies share what they
// hold, and a report that was moved from is still the same report. Functions of a temporary report return by value:
// `for (const auto& row : prof.run(x).rows())` is right. Comparing reports and checking budgets are Python's
// (roofprof.compare, `roofprof compare`, `roofprof check`), which read what write_json wrote.
class Report {
 public:
  Report(const Report&) = default;  // no moves, which would leave a report without anything to read
  Report& operator=(const Report&) = default;
  ~Report() = default;

  [[nodiscard]] const std::vector<RooflineRow>& rows() const&;
  [[nodiscard]] std::vector<RooflineRow> rows() const&& { return std::as_const(*this).rows(); }
  // Returns for each row the index of its parent's row, which comes before it; -1 for the model and rows at its level.
  [[nodiscard]] const std::vector<std::int64_t>& parents() const&;
  [[nodiscard]] std::vector<std::int64_t> parents() const&& { return std::as_const(*this).parents(); }
  // Returns the sums over the model, "(outside)" and "(optimizer)", in all phases.
  [[nodiscard]] const RooflineRow& total() const&;
  [[nodiscard]] RooflineRow total() const&& { return std::as_const(*this).total(); }
  // Returns the row of that path; a region's bare name will do if no other has it.
  // Throws OutOfRange, naming the closest paths, if the report lacks such a row.
  [[nodiscard]] const RooflineRow& row(std::string_view path) const&;
  [[nodiscard]] RooflineRow row(std::string_view path) const&& { return std::as_const(*this).row(path); }
  // Returns groups of three or more equal siblings, in the model's order: `table` shows each as one line.
  [[nodiscard]] std::vector<Siblings> siblings() const;
  // Returns at most ten findings, each with what wastes time and what to do about it, largest gain first; empty if no
  // rule clearly holds, and without times or roofs.
  [[nodiscard]] std::vector<Finding> findings() const;
  // Returns sums over ops with equal keys, longest time first. Keys are "phase", "op", "module", "scope", "dtype" and
  // "shapes"; a scope is the innermost region that was open, "outer/inner", or "" where none was. Throws
  // InvalidArgument for any other key.
  [[nodiscard]] std::vector<GroupRow> group(std::span<const std::string> keys) const;
  [[nodiscard]] std::vector<GroupRow> group(std::initializer_list<ByText> keys) const;  // group({By::phase, "op"})
  // Return such sums by key: by operator ("aten::conv2d"); by module, for its ops without its children's; by module and
  // operator; by phase (forward, backward, recompute, optimizer).
  [[nodiscard]] std::map<std::string, GroupRow> by_operator() const;
  [[nodiscard]] std::map<std::string, GroupRow> by_module() const;
  [[nodiscard]] std::map<std::pair<std::string, std::string>, GroupRow> by_module_and_operator() const;
  [[nodiscard]] std::map<std::string, GroupRow> by_phase() const;

  // Returns a row for each region, outer before inner: path "outer/inner", calls, wall time, and the figures of all
  // that ran in it, of any module; self figures exclude the regions inside it. "(no region)" is last, if something ran
  // outside of all. Empty where no region was opened.
  [[nodiscard]] const std::vector<RooflineRow>& regions() const&;
  [[nodiscard]] std::vector<RooflineRow> regions() const&& { return std::as_const(*this).regions(); }
  // Returns the report of what ran while a region of that name was open, regions inside it included: "inner" is every
  // region of that name, "outer/inner" those directly inside an "outer". Its run times are the region's wall times.
  // Throws OutOfRange, naming the closest, if the report lacks such a region.
  [[nodiscard]] Report within(std::string_view region) const;

  // Returns prefill and decode of a language model; empty if roofprof could not distinguish them.
  [[nodiscard]] std::vector<TokenPhase> language_model() const;
  // Returns MFU and HFU; empty without times, and where a dtype of its MACs has no roof.
  [[nodiscard]] std::optional<FlopsUtilization> flops_utilization() const;

  // Returns the kernels, longest total first; empty where no device was traced.
  [[nodiscard]] const std::vector<KernelRow>& kernels() const&;
  [[nodiscard]] std::vector<KernelRow> kernels() const&& { return std::as_const(*this).kernels(); }
  // Returns the memory alive at its peak, by category, module and phase, largest first; empty where it is not known.
  [[nodiscard]] const std::vector<MemoryRow>& memory_at_peak() const&;
  [[nodiscard]] std::vector<MemoryRow> memory_at_peak() const&& { return std::as_const(*this).memory_at_peak(); }
  // Returns the memory over the ops that were counted, at most 1,024 moments; empty where it is not known.
  [[nodiscard]] std::vector<MemoryMoment> memory_timeline() const;
  // Returns the collectives, longest first; empty where none was called.
  [[nodiscard]] std::vector<Collective> collectives() const;
  // Returns the ranks of a merged report, in order; empty for one process.
  [[nodiscard]] const std::vector<Rank>& ranks() const&;
  [[nodiscard]] std::vector<Rank> ranks() const&& { return std::as_const(*this).ranks(); }
  // Returns the single report of a rank. A merged report keeps two, of the slowest and of the median rank. Throws
  // OutOfRange for others, naming these two.
  [[nodiscard]] Report report_of_rank(std::int64_t rank) const;
  // Returns the ranks that were to be merged and whose reports are missing.
  [[nodiscard]] const std::vector<std::int64_t>& missing_ranks() const&;
  [[nodiscard]] std::vector<std::int64_t> missing_ranks() const&& { return std::as_const(*this).missing_ranks(); }
  [[nodiscard]] const Coverage& coverage() const&;
  [[nodiscard]] Coverage coverage() const&& { return std::as_const(*this).coverage(); }
  [[nodiscard]] const Ceilings& ceilings() const&;
  [[nodiscard]] Ceilings ceilings() const&& { return std::as_const(*this).ceilings(); }
  [[nodiscard]] const Environment& environment() const&;
  [[nodiscard]] Environment environment() const&& { return std::as_const(*this).environment(); }
  // Returns true if an exception ended the profile: the report has only what ran before.
  [[nodiscard]] bool partial() const;
  // Returns the number of marked steps of a block (Block::step, run_steps; prof.step() in Python); empty if none was.
  // Rows and total are those of the whole block; the table's header has the mean of a step.
  [[nodiscard]] std::optional<std::int64_t> steps() const;
  // Returns the time of each of the first 10,000 steps by the host's clock, which waits for no device: from the end of
  // the step before it, the first from the block's start. Empty if no step was marked or nothing was timed.
  [[nodiscard]] const std::vector<std::int64_t>& step_times_ns() const&;
  [[nodiscard]] std::vector<std::int64_t> step_times_ns() const&& { return std::as_const(*this).step_times_ns(); }
  [[nodiscard]] std::vector<std::chrono::nanoseconds> step_times() const;
  [[nodiscard]] std::optional<StepStatistics> step_statistics() const;
  // Return the wall times of the timed runs under observation, and of the same runs without any observer.
  [[nodiscard]] const std::vector<std::int64_t>& run_times_ns() const&;
  [[nodiscard]] std::vector<std::int64_t> run_times_ns() const&& { return std::as_const(*this).run_times_ns(); }
  [[nodiscard]] const std::vector<std::int64_t>& bare_times_ns() const&;
  [[nodiscard]] std::vector<std::int64_t> bare_times_ns() const&& { return std::as_const(*this).bare_times_ns(); }
  [[nodiscard]] std::vector<std::chrono::nanoseconds> run_times() const;
  [[nodiscard]] std::vector<std::chrono::nanoseconds> bare_times() const;

  // Returns the report of one call on another device, made of what was counted here: every time is predicted, from
  // roofs such as Ceilings::published("RTX 4090"), with an interval (docs/prediction.md). Throws InvalidArgument,
  // one sentence: nothing was counted, no peak for a type, a batch that cannot be scaled to, a merged report.
  [[nodiscard]] Report predict(const Ceilings& device, const PredictionOptions& options = {}) const;
  // Returns the options under which the times were predicted; empty if they were measured.
  [[nodiscard]] std::string prediction() const;

  // Returns the table as text. Throws InvalidArgument for names that are not known and for options below 0.
  [[nodiscard]] std::string table(const TableOptions& options = {}) const;
  // Returns at most 40 lines of ASCII: what ran and where, the total, the findings, what is not covered and how to see
  // more.
  [[nodiscard]] std::string brief() const;
  // Returns the heading, the findings, rows and the coverage as Markdown with tables that GitHub shows; 25 rows where
  // no limit is given. Throws as `table` does.
  [[nodiscard]] std::string markdown(const TableOptions& options = {}) const;
  [[nodiscard]] std::string to_json() const;
  // Returns a line for each row of the table that `by` names. A text that a spreadsheet would take for a formula has an
  // apostrophe before it. Throws InvalidArgument for names that no table has.
  [[nodiscard]] std::string to_csv(const ByText& by = By::module) const;
  // Write the file whole or not at all. Throw RuntimeError naming the path.
  void write_json(const std::string& path) const;
  void write_csv(const std::string& path, const ByText& by = By::module) const;

  // Return the report in a file of write_json, or in a text of to_json. Throw RuntimeError: one sentence that
  // says what is wrong with it, and names the file.
  [[nodiscard]] static Report from_json(const std::string& path);
  [[nodiscard]] static Report from_json_text(std::string_view text);
  // Returns the report of what ran while torch.profiler recorded a trace, here or on another machine: the JSON,
  // unpacked, that export_chrome_trace wrote. `roofs`: empty for the published ones of the device that the trace names.
  // Operators whose shapes torch computes in Python alone (conv2d among them) have no cost in a C++ program;
  // roofprof.from_trace has no such gap. Throws RuntimeError: one sentence that names the file and says what is
  // wrong with it.
  [[nodiscard]] static Report from_trace(const std::string& path, const std::optional<Ceilings>& roofs = {});

 private:
  friend struct detail::ReportParts;
  Report(std::shared_ptr<const Analysis> analysis, std::optional<std::int64_t> depth)
      : analysis_(std::move(analysis)), depth_(depth) {}

  std::shared_ptr<const Analysis> analysis_;  // copies of a report share it
  std::optional<std::int64_t> depth_;
};

std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace roofprof
