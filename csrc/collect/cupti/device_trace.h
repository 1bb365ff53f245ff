#pragma once
// Makes a DeviceTrace of what CUPTI delivered.

#include "collect/cupti/activity_inbox.h"
#include "collect/cupti/graph_nodes.h"
#include "values/device_data.h"

namespace roofprof::cupti {

// What is known of CUDA graphs: `watched` says whether CUPTI reported captures at all.
struct Captures {
  const GraphNodes& nodes;
  bool watched = false;
};

// Adds names (demangled), records with the ids that they were launched under, counts and notes. Throws CollectorError
// where most times lie outside of the trace.
void add_received(Received&& received, const Captures& captures, DeviceTrace& trace);

}  // namespace roofprof::cupti
