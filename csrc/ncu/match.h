#pragma once
// Finds which kernel of ncu's is which launch of a trace of the same program.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"
#include "ncu/output.h"

namespace roofprof::ncu {

// Returns the counters of the trace's kernels, as count_kernels (join/counter_join.h) takes them: a range for each
// kernel of the counted device, in launch order, without values where ncu counted no such kernel. Notes say what was
// matched, and how, and what was not.
// Both sequences are compared by name, grid and block: the longest stretch that they have in common is matched first,
// then what lies before it and after it. What then is left of the trace may take the counters of a stretch that was
// matched already, if the trace has several steps, or they are not marked (`steps` is 0): of a quarter of what ncu
// counted, or of nearly all of it. A shorter one may be other layers with the same kernels.
CounterTrace counters_for(const Output& output, const DeviceTrace& trace, const std::string& device,
                          std::string_view compute_capability, std::int64_t steps);

}  // namespace roofprof::ncu
