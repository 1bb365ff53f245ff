#pragma once
// Reports of traces that torch.profiler recorded, here or on another machine.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device_data.h"
#include "core/profile.h"
#include "kineto/trace_reader.h"
#include "kineto/trace_record.h"
#include "roofprof/ceilings.h"
#include "roofprof/report.h"

namespace roofprof {

// A kernel that the traced program launched.
struct TracedKernel {
  std::string name;
  std::array<std::int32_t, 3> grid{};
  std::array<std::int32_t, 3> block{};
  std::vector<std::string> ranges;  // around the launch, the outermost first
  std::int64_t time_ns = 0;
};

// Returns what was counted of these kernels in another run, each a range, and the device's compute capability, empty
// where it is not known. They are those of the trace's device, in launch order. `steps`: 0 where they are not marked.
using CountKernels =
    std::function<std::pair<CounterTrace, std::string>(const std::vector<TracedKernel>& kernels, std::uint32_t device,
                                                       const std::string& compute_capability, std::int64_t steps)>;

struct ImportOptions {
  std::optional<Ceilings> roofs = {};           // empty: the published ones of the device that the trace names
  std::optional<kineto::StepRange> steps = {};  // empty: everything that was recorded, in steps and outside
  bool mean = false;                            // the report is the mean of the steps, not their sum
  const kineto::CalledModel* model = nullptr;   // null: not known
  const Profile* counted = nullptr;             // a call of the model
  std::vector<kineto::Capture> captures = {};   // of the graphs that were replayed
  CountKernels counters = {};                   // of Nsight Compute; empty: nothing was counted
  bool alone = false;  // the trace was made of what was counted: its kernels ran one by one, nobody knows when
};

// Makes a report of the trace. Throws kineto::TraceError, one sentence, and what `counters` throws.
Report import_trace(kineto::Trace trace, ImportOptions options = {});

}  // namespace roofprof
