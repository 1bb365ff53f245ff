#pragma once
// Hardware counters of a run, by CUPTI's range profiler.

#include <functional>

#include "device/collector.h"

namespace roofprof::cupti {

// Runs the body once for each pass that the counters need, on the device whose context is current on this thread, and
// returns the counters of each kernel (the body is handed null) or of each module (the body is handed the marker to
// tell of them). Throws CollectorError; what the body throws comes through. Nothing is left behind either way.
CounterTrace count_ranges(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body);

}  // namespace roofprof::cupti
