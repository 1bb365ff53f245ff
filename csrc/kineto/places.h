#pragma once
// Finds where each event of the host ran (module, phase and region), and how long each of these was open.

#include <cstdint>
#include <string>
#include <vector>

#include "core/pass.h"
#include "core/profile.h"
#include "core/region_table.h"
#include "kineto/align.h"
#include "kineto/counted_ops.h"
#include "kineto/trace.h"

namespace roofprof::kineto {

struct Places {
  std::vector<Module> modules;  // the rows of the model, without those of regions
  std::vector<Region> regions;
  std::vector<RegionPath> region_paths;
  bool more_regions = false;
  std::vector<Owner> of_event;  // where the code inside each event runs
  std::vector<Pass::Clock> clocks;
  std::vector<Pass::RegionClock> region_clocks;
  std::string model;      // the model's type; empty if the trace has no modules
  std::string unaligned;  // why the model's modules are not those of the trace; empty: they are, or none was given
  std::int64_t unknown_backward_nodes = 0;
};

// Finds the places of the trace's events. The trace names modules by class and number ("Linear_3"): an instance is
// placed below the one that it was first called in. A node of the backward belongs to the module of the last op before
// it with the same sequence number. The window from `begin_ns` to `end_ns` is the time of the thread that did most;
// other threads have the time of their events. If `model` is given, its modules are the rows, and the trace's other
// modules are outside of it.
Places places_of(const Trace& trace, const HostTree& tree, std::int64_t begin_ns, std::int64_t end_ns,
                 const CalledModel* model = nullptr);

// Returns 7 for "ProfilerStep#7"; kNone for other ranges.
std::int64_t step_number(std::string_view range);

}  // namespace roofprof::kineto
