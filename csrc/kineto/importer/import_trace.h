#pragma once
// Reports of traces that torch.profiler recorded, here or on another machine.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/profile_data.h"
#include "kineto/trace_reader.h"
#include "kineto/trace_record.h"
#include "ncu/output.h"
#include "roofprof/ceilings.h"
#include "roofprof/report.h"

namespace roofprof {

// Returns the profile of one step, from that of `steps` steps (1 or more): every sum is divided by their number. If the
// steps did different work, counts are rounded down, and a note says so.
ProfileData mean_of_steps(ProfileData data, std::int64_t steps);

// Gives the record roofs: those given, else the published ones of the device that its environment names; where there
// are none, a note says so. `source`: what does not name it, "the trace".
void give_roofs(RunRecord& observed, const std::optional<Ceilings>& roofs, const std::string& source);

struct ImportOptions {
  std::optional<Ceilings> roofs = {};           // empty: the published ones of the device that the trace names
  std::optional<kineto::StepRange> steps = {};  // empty: everything that was recorded, in steps and outside
  bool mean = false;                            // the report is the mean of the steps, not their sum
  const kineto::CalledModel* model = nullptr;   // null: not known
  const ProfileData* counted = nullptr;         // a call of the model
  std::vector<kineto::Capture> captures = {};   // of the graphs that were replayed
  const ncu::Output* counters = nullptr;        // what ncu read of the same program; null: nothing
};

// Makes a report of the trace. Throws kineto::TraceError or ncu::NcuError, one sentence.
Report import_trace(kineto::Trace trace, ImportOptions options = {});

}  // namespace roofprof
