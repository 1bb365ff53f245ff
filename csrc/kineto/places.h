#pragma once
// Where each event of the host ran: module, phase and region; and how long each of them was open.

#include <cstdint>
#include <string>
#include <vector>

#include "core/pass.h"
#include "core/profile_data.h"
#include "core/region_table.h"
#include "kineto/align.h"
#include "kineto/host_tree.h"
#include "kineto/trace.h"

namespace roofprof::kineto {

struct Places {
  std::vector<Module> modules;  // the rows of the model, without those of regions
  std::vector<Region> regions;
  std::vector<RegionInside> region_paths;
  bool more_regions = false;
  std::vector<Owner> of_event;  // where what is inside the event runs
  std::vector<Pass::Clock> clocks;
  std::vector<Pass::RegionClock> region_clocks;
  std::string model;      // its type; empty where the trace has no modules
  std::string unaligned;  // why the model's modules are not those of the trace; empty: they are, or none was given
  std::int64_t unknown_backward_nodes = 0;
};

// Modules are known by class and number ("Linear_3"): an instance stands below the one that it was first called in. A
// node of the backward belongs to the module of the last op before it with its sequence number. `begin_ns`, `end_ns`:
// of the window, which the thread with most to do fills; others count what they did. `model`: the rows are its modules,
// and those of the trace that it has not are outside of it; null: none is known.
Places places_of(const Trace& trace, const HostTree& tree, std::int64_t begin_ns, std::int64_t end_ns,
                 const CalledModel* model = nullptr);

// "ProfilerStep#7": 7; kNone for other ranges.
std::int64_t step_number(std::string_view range);

}  // namespace roofprof::kineto
