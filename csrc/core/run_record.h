#pragma once
// Holds what a run or a block observed when it has ended: the join makes a profile of it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/pass.h"
#include "core/profile_kind.h"
#include "core/run_info.h"
#include "core/tree.h"

namespace roofprof {

// A row that the user's code opened while it ran, below another row.
struct Region {
  ModuleId parent = kModel;
  std::string name;
};

// The owner of the launches with one LaunchId, as the observer marked them.
struct LaunchKey {
  OpKey key{0, {kOutside}};  // the signature is that of the op's inputs
  std::string op;            // its name; empty: no op, the module itself
};

// The way in which the calls of a torch::nn model's module become known.
enum class CallSight : std::uint8_t {
  no_module,   // (outside), (optimizer), a region
  container,   // nobody calls it: it only holds other modules
  custom,      // seen where its code says so (ROOFPROF_SCOPE)
  intercepted  // by libroofprof_nn
};

struct TorchNn {
  std::vector<CallSight> sights;  // by module
  bool intercepting = true;       // false: libroofprof_nn is linked in the wrong place, and intercepts nothing
};

// The facts about a device that the traces of the passes do not hold.
struct DeviceFacts {
  bool simulated = false;
  bool by_host_clock = true;                 // false: its times are of a simulated clock, or of another time
  std::optional<std::int64_t> observing_ns;  // what observing adds to a launch; empty: it was not measured
  std::string compute_capability;            // "9.0"; empty: not known
  bool counters_wanted = false;
  std::optional<CounterTrace> counters;
  std::vector<Note> notes;  // of what could not be collected
};

// Counts calls of a run's model that other code made while the run's own were observed. They are left out.
struct OtherCalls {
  std::int64_t calls = 0;
  bool inferred = false;  // found by calls of the model's modules on threads that the run is not known to have started
  std::int64_t unclear = 0;  // calls of modules that may have been the run's own
  bool helped = false;       // modules were counted on threads that the run is not known to have started
  bool mixed = false;        // modules were counted on threads that may have worked for these calls
};

// Calls of an AOTInductor package in the counting call.
struct PackageCalls {
  ModuleId place = kModel;                // the package's row; the modules that it was exported from are below
  std::shared_ptr<const Profile> counts;  // of one call of the program that it was compiled from; null: not known
  std::int64_t calls = 1;                 // for which these counts hold
  std::string why_not;                    // the counts are not known; empty: nobody wrote them into the package
};

// A graph that was compiled once more, so that each of its kernels tells its time.
struct CompiledGraph {
  struct Kernel {
    CompiledKernel kernel;  // of one call, without times; a part of module -1 is the caller's own
    std::string range;      // the name of the range around it
  };
  std::vector<Kernel> kernels;  // in the order of their calls
};

// `run.runs` lacks what follows from the passes: the times of the timed ones, and which of them was chosen. `tree`
// lacks the rows of regions, and the calls and times of their paths.
struct RunRecord {
  RunInfo run;
  Tree tree;
  std::optional<Imported> imported;  // empty: it was observed here
  Ceilings roofs;
  bool holds_data = true;          // false: the model's tensors are on the meta device, or fake
  std::vector<Region> regions;     // by id, behind the modules
  bool more_regions = false;       // true: some regions got no row or no path
  Pass counting;                   // has the calls and the work
  std::optional<Pass> first_call;  // where it did other work than those after it, which were counted
  std::vector<Pass> timed;
  std::vector<CompiledGraph> graphs;     // empty: nobody asked for the kernels of compiled code
  std::vector<Pass> kernel_passes;       // the runs of these graphs
  std::vector<LaunchKey> launches;       // by LaunchId
  std::optional<DeviceFacts> on_device;  // empty: no device that is waited for
  std::optional<TorchNn> torch_nn;       // of a torch::nn model
  OtherCalls others;
  std::vector<PackageCalls> packages;
  std::vector<Note> notes;           // of what came before
  std::vector<Note> notes_on_model;  // they come after all other notes
};

}  // namespace roofprof
