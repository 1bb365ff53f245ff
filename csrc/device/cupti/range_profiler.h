#pragma once
// Hardware counters of a run, by CUPTI's range profiler.

#include <functional>

#include "device/interface/collector.h"

namespace roofprof::cupti {

// Runs the body once for each pass that the counters need, and returns the counters of each kernel (the body is given
// null) or of each module (the body is given the marker, and tells it of modules). Where CUPTI takes fewer ranges than
// there are, the body runs again for those that are left, with a marker in either case. Counts on the device that the
// request names, else on this thread's current one, else on the first that the process uses. Throws CollectorError, or
// what the body throws. Nothing is left behind either way.
CounterTrace count_ranges(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body);

}  // namespace roofprof::cupti
