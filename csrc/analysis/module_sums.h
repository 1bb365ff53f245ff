#pragma once
// Sums work, times and counters over modules and subtrees, before any figure is derived.

#include <map>
#include <vector>

#include "analysis/device_sums.h"
#include "analysis/roofline.h"

namespace roofprof {

// Self times of one module or subtree, one figure for each run.
struct RunTimes {
  std::vector<std::int64_t> by_run;

  // Entries that cover fewer runs leave the later runs without a figure for the whole sum.
  void add(const std::vector<std::int64_t>& times);
  // Takes hidden time off each run. It is known of the chosen run alone; the other runs lose as much.
  void take_off(std::int64_t ns);
  // Returns the time of the chosen run; empty where it was not timed.
  std::optional<std::int64_t> at(std::int64_t chosen) const;
  Timing timing(std::int64_t chosen) const;
};

struct ModuleSums {
  Tally tally;
  RunTimes times;
  RunTimes host_times;
  DeviceSums device;

  void add(const ModuleSums& other);
  // Takes off what other work hid of the time of its kernels.
  void take_off(std::int64_t ns);
};

// Return sums by module id.
std::vector<ModuleSums> sum_self(const Profile& data);
std::vector<ModuleSums> sum_subtrees(const Profile& data, const std::vector<ModuleSums>& self);

// The compiled region that a module runs.
struct CompiledRegion {
  bool reaches_out = false;  // of what ran inside, some is not below the module: a compiled step calls the model
  ModuleSums sums;           // of all that ran inside, and of what is below the module
};

// Returns each compiled region by the module that runs it.
std::map<ModuleId, CompiledRegion> compiled_regions(const Profile& data, const std::vector<ModuleSums>& self,
                                                    const std::vector<ModuleSums>& inclusive);

// Returns all figures of the sums. `busy_ns`: the union of their intervals, which no sum gives; empty: not known, nor
// is when the device was idle. `ends_ns`: idle time before the first launch and after the last, where the sums are
// those of the whole run.
Figures figures_of(const ModuleSums& sums, std::optional<std::int64_t> busy_ns, const Profile& data,
                   std::int64_t ends_ns = 0);

}  // namespace roofprof
