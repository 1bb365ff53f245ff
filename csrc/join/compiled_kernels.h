#pragma once
// Gives the kernels of compiled code rows, and modules inside compiled regions their time.

#include "join/device_launches.h"
#include "join/host_profile.h"

namespace roofprof {

// Kernels of compiled code that were found, and notes about them.
struct KernelsFound {
  std::vector<CompiledKernel> kernels;  // longest total first
  std::vector<Note> notes;
};

// Finds the kernels of each call of a graph, and moves the time of compiled regions in `host` to the modules whose
// kernels took it: in each timed run, a kernel gets the part of the region's time that it took in the median of the
// runs that time kernels. The time outside of kernels, and that of kernels of unknown modules, stays on the region's
// row.
KernelsFound move_to_modules(const RunRecord& observed, HostProfile& host);

// Does the same on a device: finds the launches of each kernel in the timed runs themselves, generated ones by their
// names and operators by the op that launched, in the order of the graph's code, and adds `owners` for them alone,
// which their traces name from then on. In replays of CUDA graphs no operator runs: there the order alone shows them,
// where it leaves no doubt. What is not found stays on the region's row. Does nothing where a run was not traced.
KernelsFound find_launches(RunRecord& observed, HostProfile& host, std::vector<LaunchOwner>& owners);

}  // namespace roofprof
