#pragma once
// Makes a DeviceTrace of what CUPTI delivered.

#include "core/device_data.h"
#include "device/cupti/activity_inbox.h"
#include "device/cupti/graph_nodes.h"

namespace roofprof::cupti {

// The knowledge about CUDA graphs: `watched` says whether CUPTI reported captures at all.
struct Captures {
  const GraphNodes& nodes;
  bool watched = false;
};

// Adds names (demangled), records with the ids that they were launched under, counts and notes. Throws CollectorError
// where most times lie outside of the trace.
void add_received(Received&& received, const Captures& captures, DeviceTrace& trace);

}  // namespace roofprof::cupti
