#pragma once
// Turns passes into a profile: work by op, and times by the host's clock.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/pass.h"
#include "core/profile.h"
#include "core/run_record.h"

namespace roofprof {

// Finds what the first call of a model did that later calls did not: it made buffers, masks and anchors that the model
// keeps.

// Names the operators that `first` ran more or less often than a later call, and their modules; empty where it traced
// code and nothing else.
std::optional<Note> note_on_first_call(const Pass& first, const Pass& later, const std::vector<Module>& modules);

// TorchScript's executor may run other operators than its modules' code has: it folds, fuses and differentiates.

// Ops with times and without work.
struct OtherOps {
  std::vector<Pass::Op> ops;
  std::optional<Note> note;  // empty: none of them has work
};

// Returns the operators that TorchScript's executor ran instead of the counted ones, and a note that names them with
// their modules. Used where the model's code was counted and the executor's version of it was timed.
OtherOps other_ops(const Pass& counting, const Pass& timed, const std::vector<Module>& modules);

// Returns a note on the modules whose parts the executor differentiated as a whole, for a pass that was counted as the
// executor runs it; empty if there are none.
std::optional<Note> note_on_differentiated(const Pass& counting, const std::vector<Module>& modules);

struct HostProfile {
  std::vector<Module> modules;
  std::vector<Pass::Op> ops;  // those without a number stand for compiled code
  std::vector<ModuleTime> times;
  std::int64_t chosen = -1;  // the timed pass that the rows come from
  std::map<std::string, std::int64_t> unobserved;
  std::vector<Note> notes;
};

// Sets operators aside that ran on tensors without data in a call that has data: they compute shapes (tracing, export,
// shape inference), and are not part of the call's work. Does so in all passes, and returns a note.
std::optional<Note> set_tracing_aside(RunRecord& observed);

// Returns the index of the pass whose wall time is the median, the lower one of an even number; -1 without passes.
std::int64_t median_pass(const std::vector<Pass>& timed);

// Calls and work come from `counting`, times from the median pass of `timed`, spreads from all of them. Ops that only
// that timed pass has are added by TorchScript's executor alone (other_ops); where the pass ran compiled code, its time
// stands on the row of the region (compiled_regions.h). `modules` has the regions' rows. `in_block`: of a block, which
// is never repeated. `by_kernel`: the time of kernels in compiled code will be moved to modules (compiled_kernels.h).
HostProfile host_profile(std::vector<Module> modules, const Pass& counting, const std::vector<Pass>& timed,
                         bool in_block, const std::vector<PackageCalls>& packages = {}, bool by_kernel = false);

}  // namespace roofprof
