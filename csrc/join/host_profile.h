#pragma once
// Turns passes into a profile: work by op, and times by the host's clock.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/pass.h"
#include "core/profile_data.h"
#include "core/run_record.h"

namespace roofprof {

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

// Calls and work come from `counting`, times from the pass of `timed` whose wall time is the median (the lower one of
// an even number), spreads from all of them. Ops that only that timed pass has are added by TorchScript's executor
// alone (script_times.h); where the pass ran compiled code, its time stands on the row of the region
// (compiled_regions.h). `modules` has the regions' rows. `in_block`: of a block, which is never repeated.
HostProfile host_profile(std::vector<Module> modules, const Pass& counting, const std::vector<Pass>& timed,
                         bool in_block);

}  // namespace roofprof
