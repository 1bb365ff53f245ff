#pragma once
// Gives the kernels of compiled code rows, and modules inside compiled regions their time.

#include "join/host_profile.h"

namespace roofprof {

// What was found of the kernels in the run of theirs that was chosen.
struct KernelsFound {
  std::vector<CompiledKernel> kernels;  // longest total first
  std::optional<Note> note;             // empty: there are no graphs
};

// Finds the kernels of each call of a graph, and moves the time of compiled regions in `host` to the modules whose
// kernels took it: the part of a region's time that a kernel took in its own run is its part of the region's time in
// each timed run. The time outside of kernels, and that of kernels of unknown modules, stays on the region's row.
// `timed`: whether times of regions were joined.
KernelsFound move_to_modules(const RunRecord& observed, HostProfile& host);

}  // namespace roofprof
