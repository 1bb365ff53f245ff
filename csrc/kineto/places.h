#pragma once
// Where each event of the host ran: module, phase and region; and how long each of them was open.

#include <cstdint>
#include <string>
#include <vector>

#include "kineto/host_tree.h"
#include "kineto/trace.h"
#include "values/pass.h"
#include "values/profile_data.h"
#include "values/region_table.h"

namespace roofprof::kineto {

struct Place {
  ModuleId module = kOutside;
  Phase phase = Phase::forward;
  RegionId region = kNoRegion;
  auto operator<=>(const Place&) const = default;
};

// One call of a module in the forward, in order of their begin: which row it is, and that of the call around it.
struct ModuleCall {
  ModuleId module = kModel;
  std::int32_t around = kNone;  // index of the call that it is in
};

struct Places {
  std::vector<Module> modules;  // the rows of the model, without those of regions
  std::vector<Region> regions;
  std::vector<RegionInside> region_paths;
  bool more_regions = false;
  std::vector<Place> of_event;  // where what is inside the event runs
  std::vector<Pass::Clock> clocks;
  std::vector<Pass::RegionClock> region_clocks;
  std::vector<ModuleCall> calls;
  std::string model;  // its type; empty where the trace has no modules
  std::int64_t unknown_backward_nodes = 0;
};

// Modules are known by class and number ("Linear_3"): an instance stands below the one that it was first called in. A
// node of the backward belongs to the module of the last op before it with its sequence number. `begin_ns`, `end_ns`:
// of the window, which threads that are none of autograd's fill.
Places places_of(const Trace& trace, const HostTree& tree, std::int64_t begin_ns, std::int64_t end_ns);

// "ProfilerStep#7": 7; kNone for other ranges.
std::int64_t step_number(std::string_view range);

}  // namespace roofprof::kineto
